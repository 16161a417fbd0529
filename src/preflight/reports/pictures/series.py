"""Several series below each other over one axis, with marks that go through all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.diagnosis.series.thin import thinned
from preflight.reports.machine.svg_shapes import FAINT, FAULT, INK, WIDTH, Shape, box, path
from preflight.reports.pictures import flags as marks
from preflight.reports.pictures.axis import Axis, axis_of, drawable
from preflight.reports.pictures.flags import Flag
from preflight.reports.pictures.words import paragraph, word

__all__ = ["Flag", "Panel", "series"]

_GUTTER, _HEIGHT, _HEAD = 76.0, 150.0, 22.0
_LINE, _GRID = "#1a6dae", "#d0d7de"
#: Points of a line, and panels, that one chart shows.
_POINTS, _PANELS = 1500, 8
_CROSS = 3.0


class Panel(Struct, frozen=True):
    """One series; `values` that are no number are shown as crosses at the upper edge, with `log`
    those of 0 and less at the lower one."""

    name: str
    unit: str
    steps: Sequence[float]
    values: Sequence[float]
    log: bool = False
    count: int = 0  # of values, where these are a choice that keeps extremes

    @property
    def title(self) -> str:
        """loss, nats, log scale."""
        return ", ".join(filter(None, (self.name, self.unit, "log scale" if self.log else "")))


def series(
    title: str, panels: Sequence[Panel], flags: Sequence[Flag], left: float, top: float, *,
    along: str = "step",
) -> Iterator[Shape]:  # fmt: skip
    """The chart below `top`; `along`: what the shared axis counts."""
    right, y = left + WIDTH - 24, top
    for shape in paragraph(left, y, title, WIDTH, size=14, fill=INK, bold=True):
        yield shape
        y = shape.bottom
    axis = _along(panels, flags, left + _GUTTER, right)
    shown = marks.within(flags, axis)
    found = marks.placed(shown, axis)
    y += 10 + marks.height(found)
    yield from marks.words(found, y)
    for panel in panels[:_PANELS]:
        yield word(axis.begin, y + 15, panel.title, size=11, bold=True, room=right - axis.begin)
        yield from _panel(panel, axis, shown, left, y + _HEAD)
        y += _HEAD + _HEIGHT
    yield from _below(axis, y, along)
    y += 34
    for told in _notes(panels, marks.summary(shown, len(set(flags)) - len(shown))):
        for shape in paragraph(left, y, told, WIDTH):
            yield shape
            y = shape.bottom


def _along(panels: Sequence[Panel], flags: Sequence[Flag], begin: float, end: float) -> Axis:
    """All steps, and marks that are near to them: a start lies before the first step that is
    told."""
    steps = [one for panel in panels for one in panel.steps if drawable(one)]
    low, high = min(steps, default=0.0), max(steps, default=1.0)
    near = 0.1 * (high - low)
    return axis_of([low, high, *(one.at for one in flags if low - near <= one.at <= high + near)],
                   begin, end, room=0.01)  # fmt: skip


def _panel(
    panel: Panel, axis: Axis, flags: Sequence[Flag], left: float, top: float
) -> Iterator[Shape]:
    bottom = top + _HEIGHT
    upright = axis_of(panel.values, bottom, top, log=panel.log)
    yield box(
        axis.begin, top, axis.end - axis.begin, _HEIGHT, fill="#ffffff", stroke=_GRID, corner=0
    )
    for value, told in upright.ticks():
        at = upright.place(value)
        yield path([(axis.begin, at), (axis.end, at)], stroke=_GRID, thick=1)
        yield word(axis.begin - 6, at + 3.5, told, anchor="end", room=_GUTTER - 8)
    for value, _ in axis.ticks(8):
        at = axis.place(value)
        yield path([(at, top), (at, bottom)], stroke="#eaeef2", thick=1)
    yield from marks.lines(flags, axis, top, bottom)
    kept = thinned(panel.values, _POINTS)
    for points in _pieces(panel, kept, axis, upright):
        yield path(points, stroke=_LINE, thick=1.5)
    yield from _crosses(panel, kept, axis, top, bottom)


def _pieces(
    panel: Panel, kept: Sequence[int], axis: Axis, upright: Axis
) -> Iterator[list[tuple[float, float]]]:
    """Lines between what is no number, and where the steps begin again before where they were."""
    piece: list[tuple[float, float]] = []
    before = -math.inf
    for at in kept:
        step, value = panel.steps[at], panel.values[at]
        known = drawable(step) and drawable(value, panel.log)
        if piece and (not known or step < before):
            yield piece if len(piece) > 1 else _dot(piece[0])
            piece = []
        if known:
            piece.append((round(axis.place(step), 1), round(upright.place(value), 1)))
            before = step
    if piece:
        yield piece if len(piece) > 1 else _dot(piece[0])


def _dot(point: tuple[float, float]) -> list[tuple[float, float]]:
    x, y = point
    return [(x - 1.5, y), (x + 1.5, y)]


def _crosses(
    panel: Panel, kept: Sequence[int], axis: Axis, top: float, bottom: float
) -> Iterator[Shape]:
    """At the edge where what cannot be drawn would be; those on one point are one."""
    seen = {
        (round(axis.place(panel.steps[at])), not drawable(panel.values[at])) for at in kept
        if drawable(panel.steps[at]) and not drawable(panel.values[at], panel.log)
    }  # fmt: skip
    for x, upper in sorted(seen):
        y = top + _CROSS + 2 if upper else bottom - _CROSS - 2
        for slope in (_CROSS, -_CROSS):
            yield path([(x - _CROSS, y - slope), (x + _CROSS, y + slope)], stroke=FAULT, thick=1.5)


def _below(axis: Axis, y: float, along: str) -> Iterator[Shape]:
    for value, told in axis.ticks(8):
        yield word(axis.place(value), y + 14, told, anchor="middle")
    yield word((axis.begin + axis.end) / 2, y + 30, along, size=11, anchor="middle", fill=FAINT)


def _notes(panels: Sequence[Panel], marked: str) -> Iterator[str]:
    if marked:
        yield marked
    for panel in panels[:_PANELS]:
        count = sum(1 for one in panel.values if not drawable(one))
        if count:
            of = f"{count:,} of {len(panel.values):,} values"
            yield f"{panel.name}: no number: {of} (crosses at the upper edge)"
        low = sum(1 for one in panel.values if panel.log and drawable(one) and one <= 1e-300)
        if low:
            of = f"{low:,} of {len(panel.values):,} values"
            yield f"{panel.name}: 0 or less: {of} (crosses at the lower edge)"
        count = max(panel.count, len(panel.values))
        if count > min(len(panel.values), _POINTS):
            yield (f"{panel.name}: {count:,} values, drawn by the least and the "
                   "greatest of each few neighbours")  # fmt: skip
    if len(panels) > _PANELS:
        yield f"{len(panels) - _PANELS} more series are left out"
