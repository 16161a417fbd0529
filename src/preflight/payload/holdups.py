"""Which process of a rank does not go on: one that is stopped, or that waits in the kernel."""

from __future__ import annotations

import os
import time
from typing import Any

#: A state that is seen twice in this time is no passing one.
_TWICE_S = 0.2
_STATES = {"T": "stopped", "t": "stopped", "D": "waits in the kernel"}


def held_up(ranks: dict[int, int]) -> list[dict[str, Any]]:
    """Of ranks by their number -> PID: their processes, and those that they started, that are
    stopped or stay in an uninterruptible wait. Those that are stopped are told alone."""
    before = _processes()
    time.sleep(_TWICE_S)
    now = _processes()
    found = [
        {"rank": rank, "pid": pid, "what": what, "state": state}
        for rank, own in ranks.items()
        for pid, what in _family(own, now)
        if (state := _STATES.get(now[pid][1])) and state == _STATES.get(before.get(pid, (0, ""))[1])
    ]
    stopped = [one for one in found if one["state"] == "stopped"]
    return stopped or found


def state_of(pid: int) -> str:
    """The kernel's letter for its state (proc_pid_stat(5)): D is uninterruptible sleep; "" where it
    is gone."""
    told = _stat(pid)
    return told[0] if told else ""


def _stat(pid: int | str) -> list[str]:
    """State, parent and what follows them; empty where it has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _processes() -> dict[int, tuple[int, str]]:
    """All processes: PID -> that of its parent, and its state."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        if told := _stat(name):
            found[int(name)] = int(told[1]), told[0]
    return found


def _family(rank: int, processes: dict[int, tuple[int, str]]) -> list[tuple[int, str]]:
    """A rank and all that it has started, each with what it is; the rank itself is "rank"."""
    family = {rank: "rank"} if rank in processes else {}
    program = _program(rank)
    while new := {pid: "" for pid, (parent, _) in processes.items()
                  if parent in family and pid not in family}:  # fmt: skip
        # What is forked from a rank, and has its command, prepares its data.
        family |= {pid: "data worker" if _program(pid) == program else "helper" for pid in new}
    return list(family.items())


def _program(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""
