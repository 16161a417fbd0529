"""A launcher of this machine: bounded, and all that it has started is ended with it."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from preflight.model import Command, Raw
from preflight.transports import launcher
from preflight.transports.launcher import launched


def run(*argv: str, timeout_s: int = 20, interrupted: threading.Event | None = None) -> Raw:
    command = Command("nccl-tests", argv, timeout_s=timeout_s)
    return launched(command, "h1", interrupted or threading.Event())


def gone(pid: int) -> bool:
    until_s = time.monotonic() + 5
    while time.monotonic() < until_s:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_what_it_says_and_how_it_ends_is_an_answer_of_the_host() -> None:
    raw = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (raw.host, raw.rc, raw.stdout, raw.stderr) == ("h1", 3, "out\n", "err\n")
    assert raw.missing is None and not raw.reached_limit


def test_one_that_hangs_is_ended_with_all_that_it_has_started() -> None:
    raw = run("sh", "-c", "echo begun; sleep 600 & echo $!; wait", timeout_s=1)
    assert raw.reached_limit
    begun, pid = str(raw.stdout).split()
    assert begun == "begun" and gone(int(pid))


def test_it_is_asked_to_end_first_and_what_it_then_says_is_heard() -> None:
    raw = run("sh", "-c", "trap 'echo cleaned; exit 0' TERM; echo on; sleep 600 & wait",
              timeout_s=1)  # fmt: skip
    assert raw.stdout == "on\ncleaned\n" and raw.reached_limit


def test_one_that_does_not_hear_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "ENDS_WITHIN_S", 0.3)
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " \
           "print(os.getpid(), flush=True); time.sleep(600)"  # fmt: skip
    raw = run(sys.executable, "-c", deaf, timeout_s=1)
    assert raw.reached_limit and gone(int(str(raw.stdout)))


def test_interrupted_it_is_over_at_once() -> None:
    event = threading.Event()
    threading.Timer(0.3, event.set).start()
    began_s = time.monotonic()
    raw = run("sh", "-c", "echo on; sleep 600", interrupted=event)
    assert time.monotonic() - began_s < 5
    assert raw.rc is None and raw.stdout == "on\n"
    assert raw.missing is not None and raw.missing.text == "it was interrupted"


def test_what_is_left_behind_holds_up_nobody() -> None:
    began_s = time.monotonic()
    raw = run("sh", "-c", "setsid sleep 20 & echo done")
    assert raw.rc == 0 and raw.stdout == "done\n"
    assert time.monotonic() - began_s < 5


def test_a_program_that_is_not_there_or_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("", encoding="utf-8")
    assert run(str(tmp_path / "none")).rc == 127
    assert run(str(tmp_path / "text")).rc == 126


def test_no_more_is_kept_than_there_is_room_for() -> None:
    command = Command("nccl-tests", ("sh", "-c", "yes | head -c 100000"), 20, max_bytes=1000)
    raw = launched(command, "h1", threading.Event())
    assert raw.truncated and len(raw.stdout) == 1000
