"""Several series below each other over one axis, with marks that go through all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from preflight.diagnosis.series.thin import thinned
from preflight.reports.pictures import flags as marks
from preflight.reports.pictures.axis import Axis, axis_of, drawable
from preflight.reports.pictures.flags import Flag
from preflight.reports.pictures.told import Panel
from preflight.reports.pictures.words import paragraph, word
from preflight.reports.svg_shapes import FAINT, FAULT, WIDTH, Shape, box, path

_GUTTER, _HEIGHT, _HEAD = 76.0, 150.0, 22.0
_LINE, _GRID = "#2b6cb0", "#d0d7de"
#: Points of a line, panels, and marks of each, that one chart shows.
_POINTS, _PANELS, _MARKS = 3000, 8, 4000


def stacked_panels(panels: Sequence[Panel], left: float, top: float) -> Iterator[Shape]:
    """Below `top`."""
    flags = [
        Flag(mark.step, mark.label, marks.kind_of(mark.label))
        for one in panels for mark in one.marks[:_MARKS]
    ]  # fmt: skip
    yield from _chart(panels[:_PANELS], list(dict.fromkeys(flags)), left, top)


def _title(panel: Panel) -> str:
    """loss, nats, log scale."""
    return ", ".join(filter(None, (panel.name, panel.unit, "log scale" if panel.log else "")))


def _numbers(panel: Panel) -> list[float]:
    return [math.nan if one is None else one for one in panel.values]


def _chart(
    panels: Sequence[Panel], flags: Sequence[Flag], left: float, top: float
) -> Iterator[Shape]:
    right, y = left + WIDTH - 24, top
    axis = _along(panels, flags, left + _GUTTER, right)
    shown = marks.within(flags, axis)
    found = marks.placed(shown, axis)
    y += marks.height(found)
    yield from marks.words(found, y)
    for panel in panels:
        yield word(axis.begin, y + 15, _title(panel), size=11, bold=True, room=right - axis.begin)
        yield from _panel(panel, axis, shown, left, y + _HEAD)
        y += _HEAD + _HEIGHT
    yield from _below(axis, y)
    y += 34
    for told in _notes(panels, marks.summary(shown, found, len(flags) - len(shown))):
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
    values = _numbers(panel)
    upright = axis_of(values, bottom, top, log=panel.log)
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
    kept = thinned(values, _POINTS)
    points = [(panel.steps[at], values[at]) for at in kept if drawable(panel.steps[at])]
    for piece in _pieces(points, axis, upright):
        yield path(piece, stroke=_LINE, thick=1.5)
    yield from _lost(points, axis, top, bottom, panel.log)


def _pieces(
    points: Sequence[tuple[float, float]], axis: Axis, upright: Axis
) -> Iterator[list[tuple[float, float]]]:
    """Lines between what is no number, and where the steps begin again before where they were."""
    piece: list[tuple[float, float]] = []
    before = -math.inf
    for step, value in points:
        known = drawable(value, upright.log)
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


def _lost(
    points: Sequence[tuple[float, float]], axis: Axis, top: float, bottom: float, log: bool
) -> Iterator[Shape]:
    """A tick at the edge where what cannot be drawn would be; those on one point are one."""
    seen = {
        (round(axis.place(step)), not drawable(value)) for step, value in points
        if not drawable(value, log)
    }  # fmt: skip
    for x, upper in sorted(seen):
        y = top + 1 if upper else bottom - 9
        yield path([(x, y), (x, y + 8)], stroke=FAULT, thick=1.5)


def _below(axis: Axis, y: float) -> Iterator[Shape]:
    for value, told in axis.ticks(8):
        yield word(axis.place(value), y + 14, told, anchor="middle")
    yield word((axis.begin + axis.end) / 2, y + 30, "step", size=11, anchor="middle", fill=FAINT)


def _notes(panels: Sequence[Panel], marked: str) -> Iterator[str]:
    if marked:
        yield marked
    for panel in panels:
        values = _numbers(panel)
        lost = sum(1 for one in values if not drawable(one))
        low = sum(1 for one in values if panel.log and drawable(one) and not drawable(one, True))
        for count, what, edge in ((lost, "no number", "upper"), (low, "0 or less", "lower")):
            if count:
                yield (f"{panel.name}: {what}: {count:,} of {len(values):,} values (ticks at the "
                       f"{edge} edge)")  # fmt: skip
        count = max(panel.count, len(values))
        if count > min(len(values), _POINTS):
            yield (f"{panel.name}: {count:,} values, drawn by the least and the greatest of each "
                   "few neighbours")  # fmt: skip
