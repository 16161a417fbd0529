"""Where the step goes, as entries of a report's `measurements`, with bars for any terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.diagnosis.reading import Curve, Part, RankParts, Reading
from preflight.reports.pictures.rank_heat import furthest, grouped
from preflight.reports.pictures.told import Bars, Marked, Panel, Picture, as_told, oddest
from preflight.units import number

Row = dict[str, Any]
_BAR = 40  # characters of a whole step
_LINE = 60  # of a series
#: From the least to the most of a series; ! is a piece in which no value is a number.
_RAMP = " .:-=+*#%@"
#: Of more ranks those that are furthest from the others in a part.
_RANKS = 16
#: Characters of the map of ranks by parts.
_ACROSS = 48


def step_tables(readings: Sequence[Reading]) -> Iterator[dict[str, Any]]:
    """For each reading, as far as it tells of it: the parts of the step, of each rank, the series
    of step times, the wall time. Times in milliseconds, shares in percent. `picture`: what is drawn
    of it."""
    for one in readings:
        notes = list(one.notes)
        bars = _bars(one.ranks)
        if one.parts:
            alone = {} if bars else _drawn(bars=_bars([RankParts("the step", one.parts)]))
            yield {"table": f"the step, {one.input}", "rows": list(_parts(one.parts)),
                   "notes": notes, **alone}  # fmt: skip
            notes = []
        if bars and len(one.ranks) > 1:
            yield {"table": f"the ranks, {one.input}", "rows": list(_ranks(one)),
                   "notes": [_legend(one)], **_drawn(bars=bars)}  # fmt: skip
            yield from _heat(one.input, bars)
        for curve in one.curves:
            if len(curve.values) > 1:
                yield {"table": f"{curve.name}, {one.input}", "rows": [_curve(curve)],
                       "notes": _marks(curve), **_drawn(panels=(_panel(curve),))}  # fmt: skip
        if one.goodput:
            yield {"table": f"the wall time, {one.input}", "notes": notes, "rows": [
                {"part": part.name, "seconds": round(part.seconds, 1),
                 "percent": round(part.share * 100, 2), "bar": _bar(part.share)}
                for part in one.goodput
            ]}  # fmt: skip


def _drawn(bars: Bars | None = None, panels: tuple[Panel, ...] = ()) -> Row:
    return {"picture": as_told(Picture(bars, panels))}


def _bars(ranks: Sequence[RankParts]) -> Bars | None:
    """All ranks with all parts that any of them has; None without any."""
    # In the order of the rank with most of them: others lack what took no time.
    fullest = sorted(ranks, key=lambda rank: -len(rank.parts))
    parts = tuple(dict.fromkeys(part.name for rank in fullest for part in rank.parts))
    if not parts:
        return None
    told = [
        {part.name: part.seconds if math.isfinite(part.seconds) else 0.0 for part in rank.parts}
        for rank in ranks
    ]
    rows = tuple(tuple(one.get(name, 0.0) for name in parts) for one in told)
    return Bars(parts, tuple(rank.rank for rank in ranks), rows)


def _panel(curve: Curve) -> Panel:
    """By the place in the log where most of its lines tell no step."""
    told = [at for at, step in enumerate(curve.steps) if math.isfinite(step)]
    by_step = len(told) * 2 >= len(curve.steps)
    places = told if by_step else range(len(curve.steps))
    values = tuple(one if math.isfinite(one := curve.values[at]) else None for at in places)
    if not by_step:
        steps = tuple(map(float, places))
        return Panel(f"{curve.name}, by place in the log", curve.unit, steps, values,
                     count=curve.count)  # fmt: skip
    marks = tuple(Marked(one.step, one.label) for one in curve.marks if math.isfinite(one.step))
    steps = tuple(curve.steps[at] for at in places)
    return Panel(curve.name, curve.unit, steps, values, marks, count=curve.count)


def _heat(name: str, bars: Bars) -> Iterator[Row]:
    """A line for each part in which any rank is off by 5 % of the step: a character for each rank,
    or group of neighbours."""
    told = grouped(bars, _ACROSS)
    far = furthest(bars, told)
    if not far:
        return
    usual = bars.usual()
    rows = [
        {"part": part, "median ms": _ms(usual[at]),
         "ranks": "|" + "".join(_off(row[at]) for row in told.off) + "|"}
        for at, part in enumerate(bars.parts) if any(_off(row[at]) != "." for row in told.off)
    ]  # fmt: skip
    notes = [". within 5 % of the step of the median over the ranks, 0 to 9 tenths of the step "
             f"longer, - shorter; most off: {far[0]}"]  # fmt: skip
    if told.size > 1:
        notes.append(f"a character is {told.size} neighbours: the one that is most off")
    yield {"table": f"ranks by parts, {name}", "rows": rows, "notes": notes}


def _off(share: float) -> str:
    if share <= -0.05:
        return "-"
    return "." if share < 0.05 else str(min(9, int(share * 10)))


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
    more = len(reading.ranks) - _RANKS
    return f"{told}; as long as the longest step" + (f"; {more} more ranks" if more > 0 else "")


def _ranks(reading: Reading) -> Iterator[Row]:
    """A stacked bar for each rank, all to one scale."""
    letters = _letters(reading)
    sums = {rank.rank: sum(part.seconds for part in rank.parts) for rank in reading.ranks}
    longest = max(sums.values()) or 1.0
    bars = _bars(reading.ranks)
    for at in oddest(bars, _RANKS) if bars else ():
        rank = reading.ranks[at]
        bar = "".join(_bar(part.seconds / longest, letters[part.name]) for part in rank.parts)
        yield {"rank": rank.rank, "ms": _ms(sums[rank.rank]), "bar": bar}


def _curve(curve: Curve) -> Row:
    low, high, line = drawn_line(curve.values)
    return {
        "steps": f"{curve.steps[0]:,.0f} to {curve.steps[-1]:,.0f}",
        "low": f"{low} {curve.unit}", "high": f"{high} {curve.unit}",
        "slowest of each piece": line,
    }  # fmt: skip


def drawn_line(values: Sequence[float]) -> tuple[str, str, str]:
    """The least and the most of what each piece has as its largest, and all of them as characters;
    ! where a piece has no number."""
    size = math.ceil(len(values) / _LINE)
    groups = [values[at : at + size] for at in range(0, len(values), size)]
    tops = [max((one for one in group if math.isfinite(one)), default=None) for group in groups]
    known = [one for one in tops if one is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    span = high - low or 1.0
    line = "".join(
        "!" if one is None else _RAMP[round((one - low) / span * (len(_RAMP) - 1))] for one in tops
    )
    return number(low), number(high), f"|{line}|"


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
