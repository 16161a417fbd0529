"""A training run that is interrupted leaves nothing behind, whenever that happens."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import require


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("begun", [".preflight-*", ".preflight-train-*/checkpoints"])
def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals, begun: str) -> None:
    require("torch", importlib.util.find_spec("torch") is not None)
    folder = tmp_path / "tmp"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "preflight", "micro-train", "--steps", "20000", "--ranks", "1",
         "--python", sys.executable, "--save", "report.json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path,
        env={**os.environ, "PREFLIGHT_LOCK": str(tmp_path / "lock"), "TMPDIR": str(folder)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:  # fmt: skip
        wait_for(lambda: any(folder.glob(begun)), 60)
        run.send_signal(number)
        assert run.wait(timeout=15) == 130
        said = run.stderr.read() if run.stderr else b""
    assert b"\nnot written: report.json; of what was saved: preflight micro-train" in said
    assert not (tmp_path / "report.json").exists()
    wait_for(lambda: not any(folder.iterdir()), 5)


def wait_for(holds: Callable[[], bool], limit_s: float) -> None:
    """Poll until it holds; AssertionError where it does not in time."""
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.02)
