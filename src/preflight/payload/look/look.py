"""`preflight.pyz look`: running processes over some seconds, as JSON lines."""

from __future__ import annotations

import os
import time
from typing import Any

from ..lines import Lines
from . import machine
from .gpus import Gpus
from .spy import Spy
from .tree import Member, assign, everything, family_of, training, trouble_of
from .watched import Watched

FORM = "look/1"
#: Looks at states are so far apart at least, and so many times what one costs.
_INTERVAL_S, _TIMES_COST = 0.15, 300
#: A job of more processes on one host is looked at in part.
_MOST = 1000


def look(plan: dict[str, Any], lines: Lines) -> int:
    """`pids`: look at these and what is below them; none: at all that train here. `seconds`."""
    lines.write({"preflight": FORM, "kind": "head", "seconds": plan["seconds"],
                 "uid": os.geteuid()})  # fmt: skip
    os.nice(5)
    gpus = Gpus(plan["seconds"] + 5)
    holders, why = gpus.holders()
    members, troubles = _members(plan["pids"], holders)
    for one in troubles:
        lines.write({"kind": "trouble", "text": one})
    if members:
        _watch(members[:_MOST], plan["seconds"], lines)
        for line in gpus.lines():
            if line.get("kind") == "gpu":
                lines.write(line)
        if why:
            lines.write({"kind": "no-gpus", "text": why})
    else:
        gpus.worker.end()
    lines.write({"kind": "end"})
    return 0


def _members(pids: list[int], holders: set[int]) -> tuple[list[Member], list[str]]:
    all_, troubles, found = everything(), [], {}
    for pid in pids:
        trouble = trouble_of(pid)
        if trouble or pid not in all_:
            troubles.append(trouble or f"process {pid} has just ended")
            continue
        family = family_of(pid, all_)
        assign(family, holders)
        if not any(one.role == "rank" for one in family):
            troubles.append(f"process {pid} ({all_[pid].name}) is no training: nothing at it or "
                            "below it is Python, holds a GPU or has a RANK")  # fmt: skip
            continue
        found.update({one.pid: one for one in family})
    if not pids:
        family = training(all_, holders)
        assign(family, holders)
        found = {one.pid: one for one in family}
        if not found:
            troubles.append("no training is seen here: no Python with RANK in its environment, "
                            "and none that holds a GPU")  # fmt: skip
    return list(found.values()), troubles


def _watch(members: list[Member], seconds: float, lines: Lines) -> None:
    before, began_s = machine.counted(), time.monotonic()
    watched = [Watched(one) for one in members]
    ranks = [one.pid for one in members if one.role == "rank"]
    workers = {rank: [one.pid for one in members if one.role == "worker" and one.of == rank]
               for rank in ranks}  # fmt: skip
    spy, end_s = Spy(ranks, workers, seconds), began_s + seconds
    while time.monotonic() < end_s:
        at_s, busy_s = time.monotonic(), time.thread_time()
        for one in watched:
            one.look()
        cost_s = time.thread_time() - busy_s  # not what others took the processor for
        time.sleep(max(min(at_s + max(_INTERVAL_S, _TIMES_COST * cost_s), end_s)
                       - time.monotonic(), 0.005))  # fmt: skip
    for one in watched:
        lines.write({**one.told(), "cores": _cores(one.member.pid)})
    lines.write(machine.machine(before, time.monotonic() - began_s))
    for stack in spy.stacks():
        lines.write(stack)
    failed = dict([(str(pid), why) for pid, why in spy.failed.items()][:50])
    lines.write({"kind": "spy", "program": spy.program, "why": spy.why, "failed": failed})


def _cores(pid: int) -> int | None:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None
