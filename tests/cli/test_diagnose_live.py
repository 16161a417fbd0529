"""preflight diagnose-step-time PID: real processes of this machine, looked at from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command import preflight
from tests.conftest import require

#: py-spy is installed beside Python, which is not everywhere in PATH.
_PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
#: The loader's file name is what a stack of torch's loader has.
_LOADS = """
import time
code = compile("def fetch():\\n    time.sleep(60)\\n", "/x/torch/utils/data/dataloader.py", "exec")
names = {"time": time}
exec(code, names)
print(flush=True)
names["fetch"]()
"""


@contextmanager
def running(program: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    ) as one:  # fmt: skip
        try:
            assert one.stdout is not None
            one.stdout.readline()
            yield one
        finally:
            one.kill()


def looked(pid: int) -> tuple[int, str]:
    ran = preflight("diagnose-step-time", str(pid), "--duration", "2s", PATH=_PATH)
    return ran.rc, " ".join(ran.out.split())


def test_a_rank_that_is_stopped_is_named_and_how_it_goes_on() -> None:
    with running("print(flush=True)\nwhile True: pass", RANK="3") as one:
        one.send_signal(signal.SIGSTOP)
        rc, out = looked(one.pid)
        assert rc == 1 and "FAIL hang rank 3" in out and f"kill -CONT {one.pid}" in out


def test_a_rank_in_its_loader_waits_for_data() -> None:
    require("py-spy", bool(shutil.which("py-spy", path=_PATH)))
    with running(_LOADS, RANK="0") as one:
        _, out = looked(one.pid)
        assert "data-wait" in out and "100 % of" in out


def test_a_process_that_works_is_no_hang() -> None:
    with running("print(flush=True)\nwhile True: pass", RANK="0") as one:
        _, out = looked(one.pid)
        assert not any(f"FAIL {one}" in out for one in ("hang", "straggler", "data-wait"))


def test_what_is_no_training_is_told_as_that_and_never_as_a_hang() -> None:
    began = time.monotonic()
    idle = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(["sleep", "60"]) as shell, subprocess.Popen(idle) as python:
        told = {999999999: "there is no process", 2: "thread of the kernel",
                python.pid: "is it a training?", shell.pid: "is no training"}  # fmt: skip
        for pid, why in told.items():
            rc, out = looked(pid)
            assert rc == 3 and "INCOMPLETE" in out and why in out, out
            assert "hang" not in out
        shell.kill()
        python.kill()
    assert time.monotonic() - began < 15


def test_a_pid_is_of_this_machine() -> None:
    ran = preflight("diagnose-step-time", "4711", "--hosts", "a,b")
    assert ran.rc == 2 and "--hosts HOSTS finds what trains there" in ran.err
    ran = preflight("diagnose-step-time", "4711", "--slurm")
    assert ran.rc == 2 and "diagnose-step-time --slurm finds what trains there" in ran.err


def test_a_look_is_kept_and_judged_again_its_report_is_not(tmp_path: Path) -> None:
    kept, report = str(tmp_path / "x.capture.gz"), str(tmp_path / "x.json")
    with running("print(flush=True)\nwhile True: pass", RANK="3") as one:
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
