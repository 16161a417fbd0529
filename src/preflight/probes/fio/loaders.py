"""What is told of loaders alone: how much comes for a byte that they read, maps beside read, and
what the user said that they need."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from preflight.facts.patterns import Pattern
from preflight.model import Known, Missing

_LOADER = "dataloader"
_NOT_COLD = Missing("not-applicable", "it is told of loaders that read past the page cache")
_NO_READ = Missing("not-applicable", "maps alone are held against read")
_NO_DEMAND = Missing(
    "not-asked", "how much is needed was not stated: --demand-mbps N, of each host"
)
_UNTOLD = Missing("unreadable", "the first line does not tell it")


def of_loader(line: dict[str, Any], begin: dict[str, Any]) -> dict[str, Any]:
    """Fields of a row by its line and the first line of the bench."""
    brought, done = _positive(line.get("brought_bytes")), _positive(line.get("done_bytes"))
    plan, shared = begin.get("plan"), begin.get("shared")
    needs = _positive(plan.get("demand_mbps")) if isinstance(plan, dict) else 0.0
    return {
        "brought_times": brought / done if brought and done else _NOT_COLD,
        "demand_mbps": needs or _NO_DEMAND,
        "network": shared if isinstance(shared, bool) else _UNTOLD,
    }  # fmt: skip


def _positive(told: Any) -> float:
    """0 for what is no such number."""
    is_number = isinstance(told, (int, float)) and not isinstance(told, bool)
    is_number = is_number and math.isfinite(told)
    return float(told) if is_number and told > 0 else 0.0


def beside_read(rows: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """With the rate of maps in that of read, of what both had from the same place."""
    read = next((one for one in rows if (one.pattern, one.part) == (_LOADER, "read")), None)
    return tuple(replace(one, of_read_percent=_percent(one, read)) for one in rows)


def _percent(one: Pattern, read: Pattern | None) -> Known[float]:
    if read is None or (one.pattern, one.part) != (_LOADER, "mmap"):
        return _NO_READ
    if isinstance(one.bandwidth_mbps, Missing):
        return one.bandwidth_mbps
    if isinstance(read.bandwidth_mbps, Missing) or one.through != read.through:
        return _NO_READ
    return 100 * one.bandwidth_mbps / read.bandwidth_mbps
