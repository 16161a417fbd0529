"""preflight diagnose-step-time PID: real processes of this machine, looked at from outside."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Timer

import psutil
import pytest

from tests.cli.command import preflight
from tests.cli.live_scenes import (
    BUSY,
    COLLECTS,
    FORKS,
    LEAVES,
    LOADS,
    PATH,
    SLEEPS,
    Looked,
    Scenes,
    all_at_once,
    looked,
)
from tests.conftest import require

NOT_THERE = 999_999_999


class Seen(Looked):
    """What a look told, and the process."""

    pid: int = 0


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Seen]]:
    """All of them in the time of one look."""
    folder = tmp_path_factory.mktemp("scenes")
    with Scenes() as scenes:
        pids = {
            "stalled": scenes.start(folder, SLEEPS, RANK="2").pid,
            "loads": scenes.start(folder, LOADS, RANK="0").pid,
            "collects": scenes.start(folder, COLLECTS, RANK="0").pid,
            "forks": scenes.start(folder, FORKS, RANK="0").pid,
            "idle": scenes.start(folder, SLEEPS).pid,
        }  # fmt: skip
        stopped = scenes.start(folder, BUSY, RANK="3")
        stopped.send_signal(signal.SIGSTOP)
        pids["stopped"] = stopped.pid
        tree = f"RANK=0 {sys.executable} {folder}/0.py & RANK=1 {sys.executable} -c '{BUSY}' & "
        pids["tree"] = scenes.run(
            ["sh", "-c", tree + "sleep 0.5; kill -STOP $!; echo; wait"], {}
        ).pid
        told = all_at_once({name: partial(looked, pid) for name, pid in pids.items()})
    yield {name: Seen(one.rc, one.out, pids[name]) for name, one in told.items()}


def test_each_look_ends_in_time(seen: dict[str, Seen]) -> None:
    """By what the reports say: before that Python starts eight times at once."""
    took = [re.search(r"UTC, ([0-9.]+) s", one.out) for one in seen.values()]
    assert max(float(one[1]) for one in took if one) < 3.2 + 8


def test_a_rank_that_is_stopped_is_named_and_how_it_goes_on(seen: dict[str, Seen]) -> None:
    one = seen["stopped"]
    assert one.rc == 1 and "FAIL hang rank 3" in one.out and f"kill -CONT {one.pid}" in one.out


def test_of_a_shell_whose_children_train_the_rank_is_named(seen: dict[str, Seen]) -> None:
    assert seen["tree"].rc == 1 and "FAIL hang rank 1" in seen["tree"].out


def test_a_rank_that_sleeps_in_one_place_all_the_time_stands_still(seen: dict[str, Seen]) -> None:
    one = seen["stalled"]
    assert one.rc == 1 and "FAIL hang" in one.out and "nothing moved" in one.out
    if shutil.which("py-spy", path=PATH):
        assert "rank 2 is at stuck (" in one.out


def test_a_rank_in_its_loader_waits_for_data_and_its_worker_is_told(seen: dict[str, Seen]) -> None:
    require("py-spy", bool(shutil.which("py-spy", path=PATH)))
    out = seen["loads"].out
    assert "data-wait" in out and "waits in the loader" in out and "hang" not in out
    assert "its worker is at sample (" in out and "(unpacks)" in out and "unpack once" in out


def test_a_rank_that_collects_garbage_all_the_time_is_told(seen: dict[str, Seen]) -> None:
    require("py-spy", bool(shutil.which("py-spy", path=PATH)))
    assert "python-gc" in seen["collects"].out and "is in gc.collect()" in seen["collects"].out


def test_children_that_only_wait_are_no_ranks(seen: dict[str, Seen]) -> None:
    assert "any of 1 rank(s)" in seen["forks"].out


def test_what_is_no_training_is_told_as_that_and_never_as_a_hang(seen: dict[str, Seen]) -> None:
    assert seen["idle"].rc == 3 and "is it a training?" in seen["idle"].out
    assert "hang" not in seen["idle"].out


def test_what_cannot_be_looked_at_is_told_at_once(tmp_path: Path) -> None:
    with Scenes() as scenes:
        child = scenes.start(tmp_path, LEAVES, RANK="0").line  # type: ignore[attr-defined]
        sleep = scenes.run(["sh", "-c", "echo; exec sleep 60"], {}).pid
        told = {NOT_THERE: "there is no process", 2: "thread of the kernel",
                sleep: "is no training", int(child): "has ended"}  # fmt: skip
        for pid, why in told.items():
            ran = preflight("diagnose-step-time", str(pid))
            assert ran.rc == 3 and "INCOMPLETE" in ran.out and why in " ".join(ran.out.split())


def test_one_that_ends_meanwhile_is_told_as_that(tmp_path: Path) -> None:
    with Scenes() as scenes:
        one = scenes.start(tmp_path, SLEEPS, RANK="0")
        timer = Timer(1.2, one.kill)
        timer.start()
        ran = preflight("diagnose-step-time", str(one.pid), "--duration", "2.5s")
        timer.join()
    assert ran.rc == 3 and "ended" in ran.out and "hang" not in ran.out


def test_a_process_that_works_is_nothing_wrong(tmp_path: Path) -> None:
    """On a machine whose processors others have, that is told, and true."""
    with Scenes() as scenes:
        out = looked(scenes.start(tmp_path, BUSY, RANK="0").pid, duration="2s").out
    wrong = ("hang", "straggler", "data-wait", "python-gc", "disk", "host-memory", "throttled")
    assert not any(f"{how} {one}" in out for one in wrong for how in ("FAIL", "WARN"))
    assert "PASS healthy" in out or "has no processor for" in out or "INCOMPLETE" in out


def test_a_look_that_is_killed_leaves_no_recorder_behind(tmp_path: Path) -> None:
    require("py-spy", bool(shutil.which("py-spy", path=PATH)))
    with Scenes() as scenes:
        plan = json.dumps({"pids": [scenes.start(tmp_path, SLEEPS, RANK="0").pid], "seconds": 60})
        look = subprocess.Popen(
            [sys.executable, "-m", "preflight.payload", "look", "--plan", plan],
            stdout=subprocess.DEVNULL,
        )
        watched = psutil.Process(look.pid)
        _wait_until(lambda: bool(_recorders(watched)))
        (recorder,) = _recorders(watched)
        look.kill()
        look.wait()
        _wait_until(lambda: not recorder.is_running())


def _recorders(look: psutil.Process) -> list[psutil.Process]:
    return [one for one in look.children() if one.name() == "py-spy"]


def _wait_until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_a_pid_is_of_this_machine() -> None:
    ran = preflight("diagnose-step-time", "4711", "--hosts", "a,b")
    assert ran.rc == 2 and "--hosts HOSTS finds what trains there" in ran.err
    ran = preflight("diagnose-step-time", "4711", "--slurm")
    assert ran.rc == 2 and "diagnose-step-time --slurm finds what trains there" in ran.err


def test_a_look_is_kept_and_judged_again_its_report_is_not(tmp_path: Path) -> None:
    kept, report = str(tmp_path / "x.capture.gz"), str(tmp_path / "x.json")
    (tmp_path / "programs").mkdir()
    with Scenes() as scenes:
        one = scenes.start(tmp_path / "programs", BUSY, RANK="3")
        one.send_signal(signal.SIGSTOP)
        words = ("diagnose-step-time", str(one.pid), "--duration", "2s", "--save")
        live = preflight(*words, kept, "--save", report, "--format", "json")
        dry = preflight(*words, f"{tmp_path}/y.capture.gz", "--dry-run")
    again = preflight("diagnose-step-time", kept, "--format", "json")
    assert again.rc == live.rc == 1
    assert json.loads(again.out)["findings"] == json.loads(live.out)["findings"]
    assert "only looks" in dry.out and not (tmp_path / "y.capture.gz").exists()
    refused = preflight("diagnose-step-time", report)
    assert refused.rc == 3 and "`preflight report FILE` shows it again" in refused.out


def test_a_capture_without_a_look_and_a_look_that_is_not_there_are_refused(tmp_path: Path) -> None:
    other, log = tmp_path / "x.capture.gz", tmp_path / "a.log"
    preflight("gpu-health", "--save", str(other))
    ran = preflight("diagnose-step-time", str(other))
    assert ran.rc == 3 and "a capture without a look" in " ".join(ran.out.split())
    log.write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    ran = preflight("diagnose-step-time", str(log), "--save", str(tmp_path / "y.capture.gz"))
    assert ran.rc == 2 and "none is looked at" in ran.err
