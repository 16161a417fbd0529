"""preflight diagnose-step-time PID: real processes of this machine, looked at from outside."""

from __future__ import annotations

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
