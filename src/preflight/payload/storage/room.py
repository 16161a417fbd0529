"""Where a pattern works, and what it tells (patterns.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .meeting import Meeting
from .plan import Plan

Row = dict[str, Any]


class Room(NamedTuple):
    """`folder` is empty and the pattern's own; `size_bytes`: of all of its files at once; `memory`:
    it is no device. `meeting`: of hosts that share the file system, and do this at once."""

    folder: str
    size_bytes: int
    seconds: float
    memory: bool
    plan: Plan
    meeting: Meeting | None = None


def times(took_s: Sequence[float]) -> dict[str, float]:
    """Mean, percentiles (the value that so many are at most) and the longest, in microseconds;
    empty of none."""
    if not took_s:
        return {}
    ordered = sorted(took_s)
    last = len(ordered) - 1

    def at(share: float) -> float:
        return round(1e6 * ordered[min(last, int(share * len(ordered)))], 2)

    mean = round(1e6 * sum(ordered) / len(ordered), 2)
    return {"mean": mean, "p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(1.0)}
