"""A program that puts a host under load: alone on it, with its own words and status, and ended
with whoever has started it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from preflight import ship


@pytest.fixture(scope="module")
def payload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("payload") / "preflight.pyz"
    path.write_bytes(ship.pyz("programs"))
    return path


def started(payload: Path, lock: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", str(payload), "program", *argv],
        env={**os.environ, "PREFLIGHT_LOCK": str(lock)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_what_it_writes_and_how_it_ends_is_its_own(payload: Path, tmp_path: Path) -> None:
    ran = started(payload, tmp_path / "lock", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert ran.communicate(timeout=30) == ("out\n", "err\n")
    assert ran.returncode == 3


def test_one_that_is_not_there_is_told(payload: Path, tmp_path: Path) -> None:
    ran = started(payload, tmp_path / "lock", "/nowhere/all_reduce_perf")
    assert ran.communicate(timeout=30)[1] == "/nowhere/all_reduce_perf: No such file or directory\n"
    assert ran.returncode == 127


def test_beside_other_active_work_it_is_not_started(payload: Path, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = started(payload, tmp_path / "lock", "echo", "begun")
        out, err = ran.communicate(timeout=30)
    assert (ran.returncode, out) == (75, "")
    assert "not started: active work of preflight holds" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_whoever_has_started_it(payload: Path, tmp_path: Path, number: int) -> None:
    ran = started(payload, tmp_path / "lock", "sh", "-c", "echo $$; exec sleep 600")
    assert ran.stdout is not None
    child = psutil.Process(int(ran.stdout.readline()))
    ran.send_signal(number)
    ran.communicate(timeout=10)
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
