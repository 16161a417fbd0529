"""Where the step of each rank goes: ranks by phases, as it travels in a report's `measurements`
and is drawn from there, so that a stored report shows the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from preflight.diagnosis.reading import RankParts

#: Of the median step: a rank that is so far off in a phase stands out, and far out.
OFF, FAR = 0.03, 0.15
#: As a step does them; names that are not here stand before those that are what is left.
_ORDER = ("data", "h2d", "compute", "forward", "backward", "communication", "optimizer", "host",
          "allocator", "save", "other", "not told")  # fmt: skip
_BETWEEN = _ORDER.index("other") - 0.5
#: What is taken of a report that somebody wrote by hand.
_MOST_RANKS, _MOST_PARTS = 100_000, 64


class Phases(Struct, frozen=True):
    """`seconds[rank][phase]` of a step; NaN where it is not told. `group`: how many ranks stand
    behind each row, which is that of one of them."""

    parts: tuple[str, ...]
    ranks: tuple[str, ...]
    seconds: tuple[tuple[float, ...], ...]
    group: int = 1

    def whole(self, at: int) -> float:
        """Seconds of the step of a rank, as far as it is told."""
        return math.fsum(one for one in self.seconds[at] if math.isfinite(one))

    def medians(self) -> tuple[float, ...]:
        """Of each phase over the ranks."""
        columns = zip(*self.seconds, strict=True)
        return tuple(_median(column) for column in columns)

    def step_s(self) -> float:
        """The median step."""
        return median(map(self.whole, range(len(self.ranks))))


def _median(values: Sequence[float]) -> float:
    known = [one for one in values if math.isfinite(one)]
    return median(known) if known else math.nan


def told(ranks: Sequence[RankParts]) -> dict[str, Any]:
    """What a table carries of them; six digits."""
    names = dict.fromkeys(part.name for rank in ranks for part in rank.parts)
    parts = sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else _BETWEEN)
    return {"parts": parts, "ranks": [rank.rank for rank in ranks],
            "seconds": [list(_row(rank, parts)) for rank in ranks]}  # fmt: skip


def _row(rank: RankParts, parts: Sequence[str]) -> Iterator[float | None]:
    """The parts of a step together are the step: one that a rank lacks takes none of it."""
    known = {part.name: part.seconds for part in rank.parts}
    for name in parts:
        value = known.get(name, 0.0)
        yield float(f"{value:.6g}") if math.isfinite(value) else None


def phases_of(table: dict[str, Any]) -> Phases | None:
    """Those of an entry of `measurements`; None where it has none, or they are out of order."""
    try:
        carried = table["phases"]
        parts, ranks = tuple(map(str, carried["parts"])), tuple(map(str, carried["ranks"]))
        seconds = tuple(tuple(map(_seconds, row)) for row in carried["seconds"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    whole = len(seconds) == len(ranks) and all(len(row) == len(parts) for row in seconds)
    sized = 0 < len(ranks) <= _MOST_RANKS and 0 < len(parts) <= _MOST_PARTS
    some = any(one > 0 for row in seconds for one in row)
    return Phases(parts, ranks, seconds) if whole and sized and some else None


def map_of(table: dict[str, Any]) -> Phases | None:
    """The same of several ranks: one alone has nothing to be held against."""
    found = phases_of(table)
    return found if found is not None and len(found.ranks) > 1 else None


def _seconds(value: object) -> float:
    """A length; NaN for what is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return math.nan


def off(phases: Phases) -> list[list[float]]:
    """How far each is from the median of its phase, as a share of the median step."""
    middle, step = phases.medians(), phases.step_s() or 1.0
    return [[(one - usual) / step for one, usual in zip(row, middle, strict=True)]
            for row in phases.seconds]  # fmt: skip


def chosen(phases: Phases, most: int) -> list[int]:
    """At most so many ranks, in their order: those that are farthest from the median in a phase."""
    everyone = range(len(phases.ranks))
    if len(phases.ranks) <= most:
        return list(everyone)
    far = [max((abs(one) for one in row if math.isfinite(one)), default=0.0)
           for row in off(phases)]  # fmt: skip
    return sorted(sorted(everyone, key=lambda at: (-far[at], at))[:most])


def grouped(phases: Phases, most: int) -> Phases:
    """Neighbours as one row where there are more than `most`: of them the rank that is farthest
    from the median of all in any phase, so that one slow rank is seen."""
    if len(phases.ranks) <= most:
        return phases
    size = math.ceil(len(phases.ranks) / most)
    far = [max((abs(one) for one in row if math.isfinite(one)), default=0.0)
           for row in off(phases)]  # fmt: skip
    picked = [
        max(range(begin, min(begin + size, len(far))), key=lambda at: far[at])
        for begin in range(0, len(far), size)
    ]  # fmt: skip
    return Phases(phases.parts, tuple(phases.ranks[at] for at in picked),
                  tuple(phases.seconds[at] for at in picked), size)  # fmt: skip
