"""Where the step goes, as entries of a report's `measurements`, with bars for any terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.diagnosis.reading import Curve, Part, RankParts, Reading
from preflight.reports.phases import chosen, phases_of, told
from preflight.reports.phases_text import ROWS
from preflight.units import number

Row = dict[str, Any]
_BAR = 40  # characters of a whole step
_LINE = 60  # of a series
#: From the least to the most of a series.
_RAMP = " .:-=+*#%@"


def step_tables(readings: Sequence[Reading]) -> Iterator[dict[str, Any]]:
    """For each reading, as far as it tells of it: the parts of the step, of each rank, the series
    of step times, the wall time. Times in milliseconds, shares in percent."""
    for one in readings:
        notes = list(one.notes)
        if one.parts:
            yield {"table": f"the step, {one.input}", "rows": list(_parts(one.parts)),
                   "notes": notes, "phases": told([RankParts("the step", one.parts)])}  # fmt: skip
            notes = []
        if len(one.ranks) > 1:
            yield {"table": f"the ranks, {one.input}", "rows": list(_ranks(one)),
                   "notes": [_legend(one)], "phases": told(one.ranks)}  # fmt: skip
        for curve in one.curves:
            if len(curve.values) > 1:
                yield {"table": f"{curve.name}, {one.input}", "rows": [_curve(curve)],
                       "notes": _marks(curve), "series": _series(curve)}  # fmt: skip
        if one.goodput:
            whole = tuple(Part(part.name, part.seconds) for part in one.goodput)
            yield {"table": f"the wall time, {one.input}", "notes": notes,
                   "phases": told([RankParts("the run", whole)]), "rows": [
                {"part": part.name, "seconds": round(part.seconds, 1),
                 "percent": round(part.share * 100, 2), "bar": _bar(part.share)}
                for part in one.goodput
            ]}  # fmt: skip


def _bar(share: float, letter: str = "#") -> str:
    return letter * round(min(1.0, max(0.0, share)) * _BAR)


def _parts(parts: Sequence[Part]) -> Iterator[Row]:
    whole = sum(part.seconds for part in parts) or 1.0
    for part in parts:
        if part.seconds * 1000 >= whole:  # less than a thousandth is nothing to look at
            yield {"part": part.name, "ms": _ms(part.seconds),
                   "percent": round(part.seconds / whole * 100, 1),
                   "bar": _bar(part.seconds / whole)}  # fmt: skip


def _ms(seconds: float) -> float:
    return float(f"{seconds * 1e3:.4g}")


def _letters(reading: Reading) -> dict[str, str]:
    """A letter for each part, none twice: the first of its name that is free."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(part.name for rank in reading.ranks for part in rank.parts):
        free = [one for one in name if one.isalpha() and one not in found.values()]
        found[name] = free[0] if free else "?"
    return found


def _legend(reading: Reading) -> str:
    told = ", ".join(f"{letter} {name}" for name, letter in _letters(reading).items())
    more = len(reading.ranks) - ROWS
    return f"{told}; as long as the longest step" + (f"; {more} more ranks" if more > 0 else "")


def _ranks(reading: Reading) -> Iterator[Row]:
    """A stacked bar for each rank, all to one scale; of many those that are farthest from the
    median in any phase."""
    letters = _letters(reading)
    sums = {rank.rank: sum(part.seconds for part in rank.parts) for rank in reading.ranks}
    longest = max(sums.values()) or 1.0
    carried = phases_of({"phases": told(reading.ranks)})
    for at in chosen(carried, ROWS) if carried else range(min(ROWS, len(reading.ranks))):
        rank = reading.ranks[at]
        bar = "".join(_bar(part.seconds / longest, letters[part.name]) for part in rank.parts)
        yield {"rank": rank.rank, "ms": _ms(sums[rank.rank]), "bar": bar}


def _series(curve: Curve) -> Row:
    """What the picture is drawn from; None is what is no number."""
    return {
        "name": curve.name, "unit": curve.unit, "count": curve.count or len(curve.values),
        "steps": list(map(_finite, curve.steps)),
        "values": list(map(_finite, curve.values)),
        "marks": [{"step": _finite(mark.step), "label": mark.label} for mark in curve.marks],
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return float(f"{value:.9g}") if math.isfinite(value) else None


def _curve(curve: Curve) -> Row:
    size = math.ceil(len(curve.values) / _LINE)
    groups = [curve.values[at : at + size] for at in range(0, len(curve.values), size)]
    tops = [max(group) for group in groups]
    low, high = min(tops), max(tops)
    span = high - low or 1.0
    line = "".join(_RAMP[round((one - low) / span * (len(_RAMP) - 1))] for one in tops)
    return {
        "steps": f"{curve.steps[0]:,.0f} to {curve.steps[-1]:,.0f}",
        "low": f"{number(low)} {curve.unit}", "high": f"{number(high)} {curve.unit}",
        "slowest of each piece": f"|{line}|",
    }  # fmt: skip


def _marks(curve: Curve) -> list[str]:
    """By label: where the first few are."""
    places: dict[str, list[str]] = {}
    for mark in curve.marks:
        places.setdefault(mark.label, []).append(f"{mark.step:,.0f}")
    lines = [f"{label} at step {_some(at)}" for label, at in list(places.items())[:6]]
    return ["; ".join(lines)] if lines else []


def _some(places: Sequence[str]) -> str:
    more = len(places) - 6
    return ", ".join(places[:6]) + (f" and {more:,} more" if more > 0 else "")
