"""Ranks by parts of the step as squares: how long, and how far off the median over the ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from preflight.reports.pictures.bars import NAMES, group_note, gutter, height_of
from preflight.reports.pictures.rank_heat import OFF, Grouped, furthest, grouped
from preflight.reports.pictures.told import Bars
from preflight.reports.pictures.words import amount, paragraph, unit_of, wide, word
from preflight.reports.svg_shapes import FAINT, WIDTH, Shape, box

#: By how far above the median, as a share of the step, and below it; a number stands in each.
_FILLS = (
    (0.5, "#e8817a"), (0.25, "#f0a07f"), (0.15, "#f9b983"), (0.08, "#fddbb4"), (OFF, "#fff1e0"),
    (-OFF, "#ffffff"), (-0.08, "#edf4fb"), (-0.15, "#dbe9f8"), (-0.25, "#bcd9f6"),
    (-math.inf, "#9cc7f2"),
)  # fmt: skip
_NARROW = 92.0


def parts_map(bars: Bars, left: float, top: float) -> Iterator[Shape]:
    """Below `top`; nothing of one rank, which has no others beside it."""
    if len(bars.ranks) < 2:
        return
    told, usual = grouped(bars), bars.usual()
    unit, scale = unit_of(max(map(sum, bars.seconds)))
    begin = left + gutter([*(bars.ranks[rank] for rank in told.columns), "median"])
    broad = [max(_NARROW, min(wide(name, 10), NAMES) + 10) for name in bars.parts]
    starts = [begin + sum(broad[:at]) for at in range(len(broad))]
    high, y = height_of(told), top + 22
    yield word(left, y - 5, unit, anchor="start", fill=FAINT)
    for name, x, room in zip(bars.parts, starts, broad, strict=True):
        yield word(x + room / 2, y - 5, name, anchor="middle", bold=True, room=NAMES)
    for rank, row in zip(told.columns, told.off, strict=True):
        yield word(begin - 6, y + high / 2 + 3.2, bars.ranks[rank], size=9, anchor="end",
                   room=NAMES)  # fmt: skip
        for seconds, off, x, room in zip(bars.seconds[rank], row, starts, broad, strict=True):
            yield box(x, y, room, high, fill=_fill(off), stroke="#d0d7de", corner=0)
            shown = amount(seconds, scale) + (f" {off:+.0%}" if abs(off) >= OFF else "")
            yield word(x + room / 2, y + high / 2 + 3.2, shown, size=9, anchor="middle",
                       room=room - 4)  # fmt: skip
        y += high
    yield word(begin - 6, y + 17, "median", size=9, anchor="end", bold=True)
    for half, x, room in zip(usual, starts, broad, strict=True):
        yield word(x + room / 2, y + 17, amount(half, scale), size=9, anchor="middle", bold=True)
    y += 28
    for line in _below(bars, told, unit, scale):
        for shape in paragraph(left, y, line, WIDTH):
            yield shape
            y = shape.bottom


def _below(bars: Bars, told: Grouped, unit: str, scale: float) -> Iterator[str]:
    yield (
        f"{unit}; percent: off the median of the part over the ranks, as a share of the median "
        f"step ({amount(bars.step_s(), scale)} {unit}), from {OFF:.0%} on; red longer, blue shorter"
    )
    yield from (f"most off: {one}" for one in furthest(bars, told)[:1])
    yield group_note(bars, told)


def _fill(off: float) -> str:
    return next(fill for least, fill in _FILLS if off >= least)
