"""The step of each rank as a stacked bar, all to one scale, with what each colour is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.reports.pictures.axis import Axis
from preflight.reports.pictures.rank_heat import Grouped, grouped
from preflight.reports.pictures.told import Bars
from preflight.reports.pictures.words import amount, paragraph, unit_of, wide, word
from preflight.reports.svg_shapes import INK, WIDTH, Shape, box, path

#: Light enough for dark words on them.
_FILLS = {
    "data": "#f4b183", "h2d": "#ffe08a", "forward": "#b9d9f5", "backward": "#86b8e6",
    "compute": "#b9d9f5", "communication": "#d9b3ea", "optimizer": "#a8d8a0", "save": "#eba59f",
    "host": "#d3c3a5", "allocator": "#9ed9d3", "other": "#d0d7de", "not told": "#eaeef2",
    "trained": "#a8d8a0", "unknown": "#eaeef2",
}  # fmt: skip
_MORE = ("#c5cf8d", "#f2b8d3", "#9fb2c8", "#e3c0a0", "#bfe3c8", "#c9c3f0")
#: Rows up to so many are tall enough to be read at a glance.
_TALL = 64
NAMES = 260.0


def fills(parts: Sequence[str]) -> dict[str, str]:
    """A colour for each part; the same for a name in every picture where it is a known one."""
    unknown = [name for name in parts if name not in _FILLS]
    more = {name: _MORE[at % len(_MORE)] for at, name in enumerate(unknown)}
    return {name: _FILLS.get(name) or more[name] for name in parts}


def gutter(names: Sequence[str]) -> float:
    """The room of the names of rows."""
    return min(max(wide(name, 10) for name in names), NAMES) + 12


def stacked(bars: Bars, left: float, top: float) -> Iterator[Shape]:
    """The bars below `top`, their axis, and the legend with the median of each part."""
    told = grouped(bars)
    longest = max(sum(bars.seconds[rank]) for rank in told.columns)
    unit, scale = units = unit_of(longest)
    begin = left + gutter([bars.ranks[rank] for rank in told.columns])
    axis = Axis(0.0, longest * scale or 1.0, begin, left + WIDTH - 90)
    high, y = height_of(told), top
    for rank in told.columns:
        yield from _bar(bars, rank, axis, y, high, units)
        y += high
    yield from _axis(axis, y, unit)
    y += 40
    for shape in _legend(bars, left, y, unit, scale):
        yield shape
        y = max(y, shape.bottom)
    yield from paragraph(left, y + 4, group_note(bars, told), WIDTH)


def height_of(told: Grouped) -> float:
    """Of a row: less where there are many."""
    return 22.0 if len(told.columns) <= _TALL else 13.0


def _bar(
    bars: Bars, rank: int, axis: Axis, y: float, high: float, units: tuple[str, float]
) -> Iterator[Shape]:
    size = 9.0 if high > 20 else 8.0
    baseline = y + high / 2 + 0.34 * size
    unit, scale = units
    yield word(axis.begin - 6, baseline, bars.ranks[rank], size=min(10, size + 1), anchor="end",
               room=NAMES)  # fmt: skip
    colours, gone = fills(bars.parts), 0.0
    for part, seconds in zip(bars.parts, bars.seconds[rank], strict=True):
        x = axis.place(gone * scale)
        gone += seconds
        room = axis.place(gone * scale) - x
        if room < 0.2:  # of a point: less is not to be seen
            continue
        yield box(round(x, 2), y + 1, round(room, 2), high - 2, fill=colours[part],
                  stroke="#57606a", thick=0.5, corner=0)  # fmt: skip
        told = amount(seconds, scale)
        if wide(told, size) + 4 <= room:
            yield word(x + room / 2, baseline, told, size=size, anchor="middle")
    whole = f"{amount(gone, scale)} {unit}"
    yield word(axis.place(gone * scale) + 6, baseline, whole, size=size, bold=True)


def _axis(axis: Axis, y: float, unit: str) -> Iterator[Shape]:
    yield path([(axis.begin, y + 2), (axis.end, y + 2)], stroke=INK, thick=1)
    for value, told in axis.ticks():
        at = axis.place(value)
        yield path([(at, y + 2), (at, y + 6)], stroke=INK, thick=1)
        yield word(at, y + 17, told, anchor="middle")
    yield word((axis.begin + axis.end) / 2, y + 32, unit, size=11, anchor="middle")


def _legend(bars: Bars, left: float, y: float, unit: str, scale: float) -> Iterator[Shape]:
    """A square for each part with its word, as many on a line as fit."""
    colours = fills(bars.parts)
    middle = "median " if len(bars.ranks) > 1 else ""
    x = left
    for name, seconds in zip(bars.parts, bars.usual(), strict=True):
        told = f"{middle}{amount(seconds, scale)} {unit}"
        room = min(wide(name, 11), NAMES) + wide(f" {told}", 11) + 40
        if x > left and x + room > left + WIDTH:
            x, y = left, y + 18
        yield box(x, y, 12, 12, fill=colours[name], stroke="#57606a")
        named = word(x + 18, y + 10, name, size=11, room=NAMES)
        yield named
        yield word(named.right + 7, y + 10, told, size=11, bold=True)
        x += room


def group_note(bars: Bars, told: Grouped) -> str:
    """What a row stands for where ranks were put together."""
    if told.size == 1:
        return ""
    return (
        f"{len(bars.ranks):,} ranks: each row is one of {told.size} neighbours, the one that is "
        "most off the median in any part; --format json has every rank"
    )
