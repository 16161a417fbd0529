"""A program that puts this host under load, run as active work is: by itself, and ended whole."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from types import FrameType

from .. import alone
from ..parent import die_with_launcher, end_with_reader

#: sysexits(3), EX_TEMPFAIL: somebody else works here.
BUSY = 75
#: After a signal it has so long to end by itself.
_ENDS_WITHIN_S, _LOOK_S = 1.0, 0.02
#: What a shell says of a program that cannot be run, and of one that is not there.
_NOT_RUN, _NOT_THERE = 126, 127


def run_program(argv: list[str], *, job: str, even_if_busy: bool) -> int:
    """Its exit status; what it writes goes out as it is. It gets the host's lock, and where GPUs
    hold somebody's work it is not started."""
    busy = alone.others(job, gpus=True, even_if_busy=even_if_busy)
    if busy:
        sys.stderr.write(f"not started: {busy}\n")
        return BUSY
    end_with_reader(1)
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: die_with_launcher(signal.SIGKILL),
        )  # fmt: skip
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        return _NOT_THERE if isinstance(error, FileNotFoundError) else _NOT_RUN
    _ends_with_us(child)
    status = child.wait()
    return status if status >= 0 else 128 - status


def _ends_with_us(child: subprocess.Popen[bytes]) -> None:
    """A signal to this process ends the program and all that it started."""

    def end(number: int, _: FrameType | None) -> None:
        _end(child.pid)
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        until_s = time.monotonic() + _ENDS_WITHIN_S
        while time.monotonic() < until_s and not _reaped(group):
            time.sleep(_LOOK_S)
        os.killpg(group, signal.SIGKILL)


def _reaped(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return True
