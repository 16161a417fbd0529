"""A bench of storage that is ended, wherever it is, leaves nothing; two that share a directory
leave each other alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.test_io_bench import needs_fio, wait_for

SOURCES = Path(__file__).resolve().parents[2] / "src/preflight"
_MAIN = "from payload.main import main; main()"
JOB = "[a]\nrw=write\nbs=64k\nsize=4m\n"
Process = subprocess.Popen[str]
#: By what is there at the time.
PHASES = {
    "tried": "proof", "looking for a way": "probe", "writing": "data", "patterns": "small-files/0",
}  # fmt: skip


def begun(folder: Path, lock: Path, **more: Any) -> Process:
    """The bench as a host runs it."""
    folder.mkdir(exist_ok=True)
    plan = {"dir": str(folder), "size_bytes": 64 << 20, "seconds": 3.0, **more}  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", _MAIN, "io", "--plan", json.dumps(plan)], cwd=SOURCES, text=True,
        stdout=subprocess.PIPE, env={**os.environ, "PREFLIGHT_LOCK": str(lock)},
    )  # fmt: skip


def all_killed(run: Process) -> None:
    """As a scheduler ends a step: every process of it, at once."""
    tree = psutil.Process(run.pid)
    for one in [tree, *tree.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            one.kill()


ENDS: dict[str, Callable[[Process], object]] = {
    "all are killed": all_killed,
    "kill -9": lambda run: run.kill(),
    "kill": lambda run: run.terminate(),
    "hang-up": lambda run: run.send_signal(signal.SIGHUP),
    "the reader goes": lambda run: run.stdout and run.stdout.close(),
}


def _cases() -> Iterator[tuple[str, str]]:
    yield from ((phase, "all are killed") for phase in PHASES)
    yield from (("writing", end) for end in ENDS if end != "all are killed")


@pytest.mark.parametrize(("phase", "end"), list(_cases()))
def test_nothing_is_left(tmp_path: Path, phase: str, end: str) -> None:
    needs_fio()
    at = tmp_path / "at"
    patterns = ["small-files"] if phase == "patterns" else ["fio"]
    run = begun(at, tmp_path / "lock", patterns=patterns)
    try:
        wait_for(lambda: any(at.glob(f".preflight-io.*/{PHASES[phase]}")), 20)
        ENDS[end](run)
        run.wait(timeout=10)
    finally:
        run.kill()
        if run.stdout:
            run.stdout.close()
    wait_for(lambda: not any(at.iterdir()), 10)
    wait_for(lambda: not _at_work(at), 5)


def _at_work(folder: Path) -> list[str]:
    """Command lines of processes that work there."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.name() == "fio" and Path(one.cwd()).is_relative_to(folder):
                found.append(" ".join(one.cmdline()))
    return found


def test_two_in_one_directory(tmp_path: Path) -> None:
    """Each with a lock of its own, as on two hosts."""
    needs_fio()
    runs = [
        begun(
            tmp_path / "at",
            tmp_path / f"lock{one}",
            seconds=0.5,
            job_file=JOB,
            patterns=["fio", "small-files"],
        )
        for one in (1, 2)
    ]
    for run in runs:
        lines = [json.loads(line) for line in run.communicate(timeout=60)[0].splitlines()]
        kinds = [one["kind"] for one in lines]
        assert kinds[0] == "begin", lines[0]
        assert kinds[-1] == "end"
        assert [one["status"] for one in lines if one["kind"] == "fio"] == [0]
        assert not [one["trouble"] for one in lines if one.get("trouble")]
    assert list((tmp_path / "at").iterdir()) == []


def test_the_second_of_one_host_waits_for_nobody(tmp_path: Path) -> None:
    first = begun(tmp_path / "at", tmp_path / "lock")
    try:
        wait_for(lambda: any((tmp_path / "at").iterdir()), 20)
        second = begun(tmp_path / "at", tmp_path / "lock")
        [line] = second.communicate(timeout=20)[0].splitlines()
        assert json.loads(line)["kind"] == "busy"
    finally:
        first.terminate()
        first.communicate(timeout=10)
