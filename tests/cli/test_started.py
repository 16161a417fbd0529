"""A copy of a process that has read the modules does what the command does that is started."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import PREFLIGHT, Ran, preflight
from tests.cli.started import started
from tests.conftest import sample_bytes

BRAKE = sample_bytes("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["gpu-health", "--help"],
        ["explain", "79"],
        ["gpu-health", "--from", "-", "--only", "gpu.throttle.*", "-v"],
        ["gpu-health", "--from", "-", "-q"],
        ["gpu-heatlh"],
        ["report", "here.json"],
        [],
    ],
)
def test_it_ends_and_says_the_same(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run([PREFLIGHT, *words], input=BRAKE, capture_output=True, cwd=tmp_path)
    there = Ran(done.returncode, timeless(done.stdout.decode()), done.stderr.decode())
    ran = preflight(*words, stdin=BRAKE, cwd=tmp_path)
    assert Ran(ran.rc, timeless(ran.out), ran.err) == there
    assert ran.out + ran.err


def timeless(text: str) -> str:
    """Without when it was run, and how long it took."""
    return re.sub(r", \d{4}-\d\d-\d\d [\d:]+ UTC, [\d.]+ m?s\n", "\n", text)


def test_nothing_of_one_run_is_in_the_next() -> None:
    asked = ("gpu-health", "--from", "-", "-q")
    first, other, again = (preflight(*asked, *more, stdin=BRAKE) for more in ((), ("-h",), ()))
    assert first == again != other
    assert first.rc == 1


def test_what_python_looks_at_before_is_no_copy() -> None:
    assert started().alike(os.environ)
    assert started().alike({**os.environ, "NO_COLOR": "1", "PATH": "/bin"})
    for name in ("PYTHONUTF8", "LC_ALL", "LD_LIBRARY_PATH"):
        assert not started().alike({**os.environ, name: "odd"}), name
