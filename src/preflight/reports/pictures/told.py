"""What is drawn: the parts of the step of each rank, and series over the steps. It travels as
`picture` of an entry of `measurements`; numbers that are none are null there."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from preflight.model import Report

#: No part of a step or of a run takes so long.
_LONGEST_S = 1e9


class Bars(Struct, frozen=True):
    """Seconds of each part of the step, by rank; ranks in their order."""

    parts: tuple[str, ...]
    ranks: tuple[str, ...]
    seconds: tuple[tuple[float, ...], ...]  # rank x part

    def usual(self) -> tuple[float, ...]:
        """The median of each part over the ranks."""
        return tuple(map(median, zip(*self.seconds, strict=True)))

    def step_s(self) -> float:
        """The median step."""
        return median(map(sum, self.seconds))


class Marked(Struct, frozen=True):
    """A step that is marked."""

    step: float
    label: str


class Panel(Struct, frozen=True):
    """One series. `log`: drawn on a scale of powers of ten."""

    name: str
    unit: str
    steps: tuple[float, ...]
    values: tuple[float | None, ...]
    marks: tuple[Marked, ...] = ()
    log: bool = False
    count: int = 0  # of values, where these are a choice of them that keeps extremes


class Picture(Struct, frozen=True, omit_defaults=True):
    """One of them, or both. The panels share the axis of steps."""

    bars: Bars | None = None
    panels: tuple[Panel, ...] = ()


def as_told(picture: Picture) -> dict[str, Any]:
    """For a table's `picture`."""
    told: dict[str, Any] = msgspec.to_builtins(picture)
    return told


def picture_of(table: dict[str, Any]) -> Picture | None:
    """The picture of an entry of `measurements`; None where it has none, or one out of order."""
    if "picture" not in table:
        return None
    try:
        found = msgspec.convert(table["picture"], Picture)
    except (msgspec.ValidationError, TypeError):
        return None
    bars = found.bars
    if bars is not None and not _in_order(bars):
        return None
    whole = all(len(one.steps) == len(one.values) > 1 for one in found.panels)
    return found if whole else None


def _in_order(bars: Bars) -> bool:
    wide = all(len(row) == len(bars.parts) for row in bars.seconds)
    if not all(0 <= one < _LONGEST_S for row in bars.seconds for one in row):
        return False
    return bool(bars.ranks and bars.parts) and len(bars.ranks) == len(bars.seconds) and wide


def pictures(report: Report) -> list[tuple[str, Picture]]:
    """All of a report, each with its title."""
    told = ((str(table.get("table", "")), picture_of(table)) for table in report.measurements)
    return [(title, one) for title, one in told if one]


def oddest(bars: Bars, most: int) -> Sequence[int]:
    """At most so many ranks, in their order: those that are furthest from the others."""
    everyone = range(len(bars.ranks))
    if len(everyone) <= most:
        return everyone
    usual = bars.usual()

    def off(rank: int) -> float:
        return max(abs(a - b) for a, b in zip(bars.seconds[rank], usual, strict=True))

    return sorted(sorted(everyone, key=off, reverse=True)[:most])
