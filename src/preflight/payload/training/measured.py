"""One setting of a sweep in one rank: a few steps, and what they took beside time."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

from ..ranks import Tell
from . import launches, layout, loop
from .plan import Plan

_PAGES = os.sysconf("SC_PAGE_SIZE")


def few_steps(run: loop.Run, plan: Plan, tell: Tell) -> None:
    """Train until the steps are over; each is told, and before the last what memory holds."""
    began = _resident()
    state = loop.begin(run, plan.seed)
    if plan.operators:
        layout.decoder(state.model).keep_dear()
    last = run.shape.steps

    def after(state: loop.State) -> None:
        # The loader's workers are still there.
        if state.step in (_HELD_FIRST, last):
            tell({"kind": "held", **_held(run, began)})

    run.after = after
    norms = []
    for step in loop.train(run, state, last):
        tell({"kind": "step", **step.line()})
        norms.append(step.norm)
    tell({"kind": "held", **_held(run, began, of_workers=False), **_sent(state)})
    tell({"kind": "clipped", "steps": run.clip.over(norms)})
    if plan.counts and not plan.compiled:  # which might be compiled again
        tell({"kind": "counted", **launches.counted(run, state)})
    tell({"kind": "done", "failed": ""})


#: The step after which memory is looked at for the first time: a run may be ended early.
_HELD_FIRST = 6


def _held(run: loop.Run, began: int, *, of_workers: bool = True) -> dict[str, Any]:
    """Bytes: of the device at the peak, and of this rank and its loader in host memory. On
    processors the peak is of the rank itself, beyond what it began with."""
    told: dict[str, Any] = {}
    if run.place.gpu:
        import torch

        told["peak_bytes"] = torch.cuda.max_memory_allocated(run.place.device)
    else:
        told["peak_bytes"] = max(
            0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - began
        )
    return {**told, **_of_host()} if of_workers else told


def _sent(state: loop.State) -> dict[str, int]:
    """By this rank to the others in a step, where they hold replicas."""
    sent = getattr(state.model, "sent_bytes", None)
    return {"sent_bytes": sent()} if sent else {}


def _of_host() -> dict[str, int]:
    """Of all processes of this rank, each page counted once among those that share it."""
    found = [_proportional(pid) for pid in _of_group(os.getpgrp())]
    if not any(found):
        return {}
    return {
        "host_bytes": sum(one.get("Pss:", 0) for one in found),
        "shm_bytes": sum(one.get("Pss_Shmem:", 0) for one in found),
    }


def _of_group(group: int) -> list[int]:
    """The processes of a group: a rank and what it has started."""
    pids = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    return [pid for pid in pids if _group_of(pid) == group]


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def _proportional(pid: int) -> dict[str, int]:
    """Bytes by their name in smaps_rollup."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    lines = [line.split() for line in text.splitlines()[1:]]
    return {words[0]: int(words[1]) * 1024 for words in lines if len(words) == 3}


def _resident() -> int:
    """Bytes of this process in memory now."""
    try:
        text = Path("/proc/self/statm").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.split()[1]) * _PAGES
