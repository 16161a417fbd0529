"""Stacks by py-spy, where it is: read from the process's memory, without stopping it.

One recorder for each process, over the whole look: it reads the program's symbols once, where a
dump does so for each stack, and it samples at random moments, never in step with the training.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from typing import Any

from .proc import environment_of
from .sources import codes

#: Frames of a stack that are told, innermost first, and stacks of a process, the most frequent.
_FRAMES, _STACKS = 24, 60
#: Samples of a process over a look, and a second: each takes about 0.7 ms of a processor, and the
#: start of a recorder 15. Who samples more rarely does not hear within _LIMIT_S that it is over.
_SAMPLES, _LEAST_HZ, _MOST_HZ = 40, 4, 10
#: Processes that are asked.
_MOST = 32
#: Data workers of a rank that are asked: they are alike.
_WORKERS = 2
#: Seconds for all of them to write what they have.
_LIMIT_S = 3.0
#: prctl(2)
_PR_SET_PDEATHSIG = 1
_THREAD = re.compile(r"thread \((0x[0-9A-Fa-f]+|\d+)\)(?:: (.*))?")


class Spy:
    """`why` is empty where it can be asked; `failed`: PIDs without stacks, and why."""

    def __init__(self, ranks: list[int], workers: dict[int, list[int]], seconds: float) -> None:
        self.program, self.why = _found(ranks), ""
        self.failed: dict[int, str] = {}
        self.recorders: list[_Recorder] = []
        if not self.program:
            self.why = "py-spy is not there"
            return
        pids = _chosen(ranks, workers)
        rate = round(min(max(_SAMPLES / seconds, _LEAST_HZ), _MOST_HZ))
        for pid in pids:
            try:
                self.recorders.append(_Recorder(self.program, pid, rate, seconds))
            except OSError as error:
                self.failed[pid] = f"py-spy cannot be started: {error.strerror}"
        for pid in ranks[_MOST:]:
            self.failed[pid] = f"more than {_MOST} processes are not asked for stacks"

    def stacks(self) -> list[dict[str, Any]]:
        """What was seen, each stack with how often; the end of all recorders."""
        for one in self.recorders:
            one.finish()
        until_s = time.monotonic() + _LIMIT_S
        found: list[dict[str, Any]] = []
        for one in self.recorders:
            why = one.ended(until_s)
            told = _stacks(one.text(one.out), one.pid)
            if not told:
                self.failed[one.pid] = why or _reason(one.text(one.err))
            found += told
        known = codes([(one["pid"], one["frames"][0]) for one in found]) if found else {}
        return [{**one, "code": known.get((one["pid"], one["frames"][0]), "")} for one in found]


class _Recorder:
    """A py-spy of one process. Its texts are in memory: a pipe that is full would stop it."""

    def __init__(self, program: str, pid: int, rate_hz: int, seconds: float) -> None:
        self.pid = pid
        self.out, self.err = os.memfd_create("out"), os.memfd_create("err")
        argv = [program, "record", "--nonblocking", "--idle", "--threads", "--full-filenames",
                "--rate", str(rate_hz), "--duration", str(int(2 * seconds) + 5), "--format", "raw",
                "--output", f"/proc/self/fd/{self.out}", "--pid", str(pid)]  # fmt: skip
        # It must not outlive a look that is killed.
        die = partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.err,
            pass_fds=(self.out,), preexec_fn=die,
        )  # fmt: skip

    def finish(self) -> None:
        """Let it write what it has: that is what it does on Ctrl-C."""
        with contextlib.suppress(OSError):
            self.process.send_signal(signal.SIGINT)

    def ended(self, until_s: float) -> str:
        """Its end; why it was killed, or ""."""
        try:
            self.process.wait(max(until_s - time.monotonic(), 0.05))
        except subprocess.TimeoutExpired:
            self.process.kill()
            return f"py-spy gave no answer within {_LIMIT_S:g} s"
        return ""

    def text(self, file: int) -> str:
        """What it wrote there."""
        size = min(os.fstat(file).st_size, 1 << 22)
        return os.pread(file, size, 0).decode(errors="replace")


def _chosen(ranks: list[int], workers: dict[int, list[int]]) -> list[int]:
    draw = random.Random(1)
    found = list(ranks[:_MOST])
    for mine in workers.values():
        found += draw.sample(mine, min(len(mine), _WORKERS))
    return found[:_MOST]


def _stacks(text: str, pid: int) -> list[dict[str, Any]]:
    """Lines of "thread (TID): NAME;outermost;...;innermost COUNT"."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        named = _THREAD.fullmatch(thread)
        if named is None or not frames or not count.isdigit() or not int(count):
            continue
        found.append({
            "kind": "stack", "pid": pid, "thread": named[2] or "", "tid": int(named[1], 0),
            "state": "", "frames": frames[::-1][:_FRAMES], "count": int(count),
        })  # fmt: skip
    return sorted(found, key=lambda one: -int(one["count"]))[:_STACKS]


def _reason(text: str) -> str:
    """What it says of its failure, without where in its own program that was."""
    said = text.partition("Stack backtrace")[0].split()
    return " ".join(said)[:300] or "py-spy saw no stack"


def _found(pids: list[int]) -> str:
    """On the PATH, beside this Python, in the job's own environment if that is of our user or
    root's: nothing of another user is run."""
    folders = [os.path.dirname(sys.executable)]  # noqa: PTH120
    for pid in pids[:1]:
        known = environment_of(pid)
        folders += [f"{known[name]}/bin" for name in ("VIRTUAL_ENV", "CONDA_PREFIX")
                    if name in known]  # fmt: skip
        folders += [one for one in known.get("PATH", "").split(":") if one.startswith("/")]
    found = shutil.which("py-spy")
    for folder in folders:
        found = found or _ours(shutil.which("py-spy", path=folder))
    return found or ""


def _ours(path: str | None) -> str | None:
    return path if path and os.stat(path).st_uid in (0, os.geteuid()) else None  # noqa: PTH116
