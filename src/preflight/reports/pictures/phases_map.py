"""Ranks by phases as squares: how long, and how far from the median of all ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from preflight.reports.machine.svg_shapes import FAINT, INK, WIDTH, Shape, box
from preflight.reports.phases import OFF, Phases, grouped
from preflight.reports.pictures.bars import NAMES, ROWS, group_note, gutter
from preflight.reports.pictures.words import amount, paragraph, unit_of, wide, word

#: By how far above the median, as a share of the step, and below it; a number stands in each.
_FILLS = (
    (0.5, "#e8817a"), (0.25, "#f0a07f"), (0.15, "#f9b983"), (0.08, "#fddbb4"), (OFF, "#fff1e0"),
    (-OFF, "#ffffff"), (-0.08, "#edf4fb"), (-0.15, "#dbe9f8"), (-0.25, "#bcd9f6"),
    (-math.inf, "#9cc7f2"),
)  # fmt: skip
_NARROW = 92.0


def phases_map(title: str, phases: Phases, left: float, top: float) -> Iterator[Shape]:
    """The map below `top`, the median of each phase, and what colours mean."""
    rows = grouped(phases, ROWS)
    middle, step = phases.medians(), phases.step_s() or 1.0
    unit, scale = unit_of(max(map(rows.whole, range(len(rows.ranks)))))
    begin, y = left + gutter([*rows.ranks, "median"]), top
    for shape in paragraph(left, y, f"{title}: ranks by phases, {unit} of a step", WIDTH, size=14,
                           fill=INK, bold=True):  # fmt: skip
        yield shape
        y = shape.bottom
    broad = [max(_NARROW, min(wide(name, 10), NAMES) + 10) for name in phases.parts]
    starts = [begin + sum(broad[:at]) for at in range(len(broad))]
    high = 20.0 if len(rows.ranks) <= 64 else 13.0
    y += 22
    for name, x, room in zip(phases.parts, starts, broad, strict=True):
        yield word(x + room / 2, y - 5, name, anchor="middle", bold=True, room=NAMES)
    for rank, row in zip(rows.ranks, rows.seconds, strict=True):
        yield word(begin - 6, y + high / 2 + 3.2, rank, size=9, anchor="end", room=NAMES)
        for seconds, usual, x, room in zip(row, middle, starts, broad, strict=True):
            yield from _square(seconds, (seconds - usual) / step, x, y, room, high, scale)
        y += high
    y += 4
    yield word(begin - 6, y + 13, "median", size=9, anchor="end", bold=True)
    for seconds, x, room in zip(middle, starts, broad, strict=True):
        yield word(x + room / 2, y + 13, amount(seconds, scale), size=9, anchor="middle", bold=True)
    y += 24
    for told in (_meaning(step, scale, unit), group_note(phases, rows)):
        for shape in paragraph(left, y, told, WIDTH, fill=FAINT):
            yield shape
            y = shape.bottom


def _square(
    seconds: float, share: float, x: float, y: float, room: float, high: float, scale: float
) -> Iterator[Shape]:
    known = math.isfinite(share)
    fill = next(fill for least, fill in _FILLS if share >= least) if known else "#f6f8fa"
    yield box(x, y, room, high, fill=fill, stroke="#d0d7de", corner=0)
    told = amount(seconds, scale)
    if known and abs(share) >= OFF:
        told += f" {share:+.0%}"
    yield word(x + room / 2, y + high / 2 + 3.2, told, size=9, anchor="middle", room=room - 4)


def _meaning(step_s: float, scale: float, unit: str) -> str:
    return (
        f"percent: how far from the median of the phase, of a step of {amount(step_s, scale)} "
        f"{unit} (the median rank), where it is {OFF:.0%} and more; red: longer, blue: shorter"
    )
