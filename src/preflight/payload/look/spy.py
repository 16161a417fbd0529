"""Stacks by py-spy, where it is: read from the process's memory, without stopping it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from typing import Any

from .proc import environment_of

#: Frames of a stack that are told, innermost first, and threads of a process.
_FRAMES, _THREADS = 24, 12
_LIMIT_S = 3.0
#: Of the time of the machine's processors.
_BUDGET = 0.01
MOST = 40


class Spy:
    """`why` is empty where it can be asked."""

    def __init__(self, pids: list[int]) -> None:
        self.program, self.why = _found(pids), ""
        if not self.program:
            self.why = "py-spy is not there"
        self.failed: dict[int, str] = {}

    def pause_s(self, ranks: int, seconds: float) -> float:
        """Seconds from one round over all ranks to the next, by what the rounds so far cost."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        each = max((used.ru_utime + used.ru_stime) / max(self.asked, 1), 0.005)
        allowed = _BUDGET * seconds * (os.cpu_count() or 1) / each
        rounds = min(max(allowed / max(ranks, 1), 10), MOST)
        return seconds / rounds

    asked = 0

    def stacks(self, pid: int) -> list[dict[str, Any]]:
        """All threads of a process once; [] where it cannot be, with why in `failed`."""
        self.asked += 1
        argv = [self.program, "dump", "--nonblocking", "--json", "--pid", str(pid)]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=_LIMIT_S, check=False)
            if done.returncode:
                self.failed[pid] = done.stderr.decode(errors="replace").strip()[:300]
                return []
            return [_thread(one) for one in json.loads(done.stdout)[:_THREADS]]
        except subprocess.TimeoutExpired:
            self.failed[pid] = f"py-spy gave no answer within {_LIMIT_S:g} s"
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.failed[pid] = f"py-spy: {type(error).__name__}: {error}"[:300]
        return []


def _thread(one: dict[str, Any]) -> dict[str, Any]:
    frames = [f"{f['name']} ({f['filename']}:{f['line']})" for f in one["frames"][:_FRAMES]]
    return {
        "thread": one.get("thread_name") or "", "tid": one.get("os_thread_id"), "frames": frames,
        "state": "gil" if one.get("owns_gil") else "active" if one.get("active") else "idle",
    }  # fmt: skip


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
