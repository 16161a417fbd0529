"""Asking for help must not wait for libraries that only some work needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import SAMPLES

#: Large, or absent where preflight runs. `torch` is not even a dependency.
LATE = {"torch", "fabric", "paramiko", "pynvml", "rich", "ClusterShell"}

#: Runs preflight as its console script does, then tells which modules that took.
ASK = """
import json, sys
try:
    from preflight.cli.app import main
    sys.exit(main())
finally:
    sys.stderr.write("\\n" + json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
    sys.stderr.write(" " + json.dumps("preflight.cli.app" in sys.modules))
"""


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--help"], "gpu-health"),
        (["gpu-health", "--help"], "--from"),
        (["--version"], "0.1.0"),
    ],
)
def test_help_imports_no_large_library(arguments: list[str], shown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    loaded, _, ran = done.stderr.splitlines()[-1].rpartition(" ")
    assert ran == "true"
    assert LATE.isdisjoint(json.loads(loaded))


def test_recorded_answers_are_judged_without_what_only_a_watch_takes() -> None:
    recorded = str(SAMPLES / "dmon" / "one_gpu_7000mhz_ramp_up.txt")
    done = subprocess.run(
        [sys.executable, "-c", ASK.replace('name.split(".")[0]', "name"), "gpu-health", "--from",
         recorded, "--color", "never"], capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stderr.splitlines()[-1].rpartition(" ")[0]))
    assert "preflight.probes.nvidia_smi.dmon" in loaded
    assert loaded.isdisjoint({"preflight.ship", "preflight.payload", "zipfile", "pynvml"})


def test_the_question_would_notice() -> None:
    ask = ASK.replace("from preflight.cli.app import main", "import rich; main = int")
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60)
    assert "rich" in json.loads(done.stderr.splitlines()[-1].rpartition(" ")[0])
