"""What one device does: its tests one after the other, each announced with the time it has."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..ranks import Tell
from . import inject
from .answers import answers
from .attention import attention
from .bandwidth import copies, memory
from .gemm import gemms, soak
from .pattern import patterns
from .place import Place, near
from .plan import Plan

#: Seconds of all tests of a device, where the plan says nothing.
SECONDS = {"cuda": 20.0, "cpu": 3.0}
#: The parts of the time.
_SHARES = {"gemm": 0.45, "memory": 0.1, "pattern": 0.3, "attention": 0.1, "copies": 0.05}

Lines = Iterator[dict[str, Any]]


def seconds_of(plan: Plan) -> float:
    return plan.seconds or SECONDS[plan.device]


def work(plan: Plan, number: int, threads: int, alone: Callable[[], None], tell: Tell) -> None:
    """All of it. `alone` returns when this device's turn has come: copies are measured by
    one device after the other, for they share the host's memory."""
    inject.into(plan.inject)
    place = _begin(plan, number, threads)
    tell({"kind": "device", **_about(place)})
    budget_s = seconds_of(plan)
    tests: tuple[tuple[str, Callable[[float], Lines]], ...] = (
        ("gemm", lambda budget_s: gemms(place, plan.seed, budget_s)),
        ("memory", lambda budget_s: memory(place, budget_s)),
        ("attention",
         lambda budget_s: attention(place, plan.attention, plan.seed, budget_s, plan.silent_s)),
        ("answers", lambda _: answers(place, plan.seed)),
        ("pattern", lambda budget_s: patterns(place, plan.memory_percent, budget_s)),
        ("soak", lambda _: soak(place, plan.seed, plan.soak_s, time.monotonic)),
    )  # fmt: skip
    for name, test in tests:
        if name != "soak" or plan.soak_s:
            _run(name, test(budget_s * _SHARES.get(name, 0.0)), plan.silent_s, tell)
            place.give_back()
    tell({"kind": "waits"})
    alone()
    _run("copies", copies(place, budget_s * _SHARES["copies"]), plan.silent_s, tell)
    tell({"kind": "done"})


def _run(name: str, lines: Lines, silent_s: float, tell: Tell) -> None:
    """A test that needs longer than others says so itself. None begins before it is announced."""
    tell({"kind": "doing", "name": name, "limit_s": silent_s})
    for line in lines:
        tell(line)
        if line["kind"] != "doing":
            tell({"kind": "doing", "name": name, "limit_s": silent_s})


def _begin(plan: Plan, number: int, threads: int) -> Place:
    if plan.device == "cpu":
        torch.set_num_threads(threads)
        return Place(number, torch.device("cpu"), threads)
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    near(device)
    return Place(number, device)


def _about(place: Place) -> dict[str, Any]:
    """What identifies it beside other tools' answers."""
    if not place.gpu:
        return {"name": "processors", "threads": place.threads,
                "cores": len(os.sched_getaffinity(0))}  # fmt: skip
    one = torch.cuda.get_device_properties(place.device)
    uuid = str(getattr(one, "uuid", ""))  # torch before 2.6 does not tell
    return {"name": one.name, "uuid": uuid and f"GPU-{uuid.removeprefix('GPU-')}",
            "memory_bytes": one.total_memory, "capability": f"{one.major}.{one.minor}"}  # fmt: skip
