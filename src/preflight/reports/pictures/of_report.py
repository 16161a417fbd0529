"""What of a report can be drawn as a chart, from its `measurements` alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from preflight.model import Report
from preflight.reports.machine.svg_shapes import Shape
from preflight.reports.phases import phases_of
from preflight.reports.pictures.bars import bars
from preflight.reports.pictures.flags import Flag, Kind
from preflight.reports.pictures.phases_map import phases_map
from preflight.reports.pictures.series import Panel, series

#: A chart where it is put: left, top.
Chart = Callable[[float, float], Iterator[Shape]]
#: Charts, and marks of a series, that one drawing shows.
MOST, _MARKS = 40, 4000
#: What a mark of a series is; other labels are events.
_KINDS: dict[str, Kind] = {"save": "checkpoint", "shift": "trouble", "drift begins": "trouble"}


def charts(report: Report) -> Iterator[Chart]:
    """In the order of the tables."""
    for table in report.measurements:
        title = str(table.get("table", ""))
        phases = phases_of(table)
        if phases is not None:
            yield partial(bars, title, phases)
        if phases is not None and len(phases.ranks) > 1:
            yield partial(phases_map, title, phases)
        if (found := _series(table)) is not None:
            panel, flags, along = found
            yield partial(series, title, [panel], flags, along=along)


def has_charts(report: Report) -> bool:
    """Whether there is any."""
    return next(charts(report), None) is not None


def _series(table: dict[str, Any]) -> tuple[Panel, list[Flag], str] | None:
    """None where a table has none, it is out of order, or nothing in it has a place."""
    try:
        told = table["series"]
        steps, values = list(map(_number, told["steps"])), list(map(_number, told["values"]))
        flags = [
            Flag(_number(one["step"]), label, _KINDS.get(label, "event"))
            for one in told["marks"][:_MARKS] if (label := str(one["label"]))
        ]  # fmt: skip
        name, unit, count = str(told["name"]), str(told["unit"]), int(told.get("count", 0))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    if len(steps) != len(values) or sum(map(math.isfinite, values)) < 2:
        return None
    if _told(steps):
        return Panel(name, unit, steps, values, count=count), flags, "step"
    counted = [float(at) for at in range(len(values))]
    return Panel(name, unit, counted, values, count=count), [], "place in the log"


def _told(steps: Sequence[float]) -> bool:
    return sum(map(math.isfinite, steps)) * 2 >= len(steps)


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    return math.nan
