"""Series over the steps, panels below each other with one axis of steps; marked steps are lines
through all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from preflight.reports.machine.svg_shapes import (
    FAINT,
    FAULT,
    INK,
    WIDTH,
    Shape,
    box,
    fitted,
    letters,
    path,
    text,
)  # fmt: skip
from preflight.reports.pictures.axis import Scale, plain, seconds
from preflight.reports.pictures.told import Marked, Panel

_HEIGHT, _GAP, _NAMES = 150.0, 34.0, 64.0
#: Lines of labels above the panels.
_LANES, _LANE = 3, 14.0
#: Places along the axis: of the steps that share one, the least and the largest are drawn.
_ACROSS = 900
_CURVE = "#2b6cb0"
_MARK = "#8c959f"


def stacked_panels(panels: Sequence[Panel], left: float, top: float) -> Iterator[Shape]:
    """Below `top`."""
    first = min(min(one.steps) for one in panels)
    last = max(max(one.steps) for one in panels)
    across = Scale(first, last, left + _NAMES, WIDTH - 20, log=False)
    marks = sorted({(mark.step, mark.label) for one in panels for mark in one.marks})
    within = [Marked(step, label) for step, label in marks if first <= step <= last]
    lanes, hidden = _placed(within, across)
    y = top + _LANES * _LANE + 6
    bottom = y + (_HEIGHT + _GAP) * len(panels) - _GAP
    for mark in within:
        x = across(mark.step)
        yield path([(x, y), (x, bottom)], stroke=_MARK, thick=0.8, dashed=True)
    for mark, lane in lanes:
        yield text(across(mark.step), top + _LANE * (lane + 1), fitted(mark.label, 180, 10),
                   size=10, fill=INK)  # fmt: skip
    for panel in panels:
        yield from _panel(panel, across, left, y)
        y += _HEIGHT + _GAP
    for at in across.ticks:
        yield text(across(at), bottom + 14, plain(at), size=9, fill=FAINT, anchor="middle")
    told = "step" + (f"; {hidden} of the marks have no room for their words" if hidden else "")
    yield text(left + _NAMES, bottom + 28, told, size=10, fill=FAINT)


def _placed(marks: Sequence[Marked], across: Scale) -> tuple[list[tuple[Marked, int]], int]:
    """Each mark's words in the first lane that has room; how many found none. Of marks with the
    same words one after the other the first has them."""
    ends = [-math.inf] * _LANES
    found, hidden = [], 0
    for _, same in groupby(marks, key=lambda one: one.label):
        mark = next(same)
        x = across(mark.step)
        wide = letters(fitted(mark.label, 180, 10), 10)
        lane = next((at for at, end in enumerate(ends) if end < x and x + wide < WIDTH + 20), None)
        if lane is None:
            hidden += 1
            continue
        ends[lane] = x + wide + 8
        found.append((mark, lane))
    return found, hidden


def _panel(panel: Panel, across: Scale, left: float, top: float) -> Iterator[Shape]:
    known = [one for one in panel.values if one is not None and math.isfinite(one)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low == high:
        low, high = low - abs(low) * 0.1 - 1e-9, high + abs(high) * 0.1 + 1e-9
    up = Scale(low, high, top + _HEIGHT - 6, top + 6, log=panel.log)
    begin = left + _NAMES
    yield box(begin, top, WIDTH - 20 - begin, _HEIGHT, fill="none", stroke="#d0d7de")
    name = fitted(panel.name, 300, 11) + ("" if panel.unit in ("", "s") else f", {panel.unit}")
    yield text(begin, top - 5, f"{name}{', log scale' if up.log else ''}", size=11, weight="bold")
    shown = seconds if panel.unit == "s" else plain
    for at in up.ticks:
        y = up(at)
        yield path([(begin, y), (WIDTH - 20, y)], stroke="#eaeef2", thick=0.8)
        yield text(begin - 5, y + 3, shown(at), size=9, fill=FAINT, anchor="end")
    for run in _runs(panel, across, up):
        yield path(run if len(run) > 1 else [*run, (run[0][0] + 0.8, run[0][1])], stroke=_CURVE,
                   thick=1.2)  # fmt: skip
    for x in _lost(panel, across):
        yield path([(x, top + 1), (x, top + 7)], stroke=FAULT, thick=1.2)


def _runs(panel: Panel, across: Scale, up: Scale) -> Iterator[list[tuple[float, float]]]:
    """Points that are joined: a value that is none, or a step that falls back, parts them."""
    run: list[tuple[float, float]] = []
    for x, values in _thinned(panel, across):
        if values is None or (run and x < run[-1][0]):
            if run:
                yield run
            run = []
        run += [(x, up(one)) for one in values or ()]
    if run:
        yield run


def _thinned(panel: Panel, across: Scale) -> Iterator[tuple[float, list[float] | None]]:
    """Place, and the values there: all, or the least and the largest in their order."""
    per = (across(panel.steps[-1]) - across(panel.steps[0]) or 1.0) / _ACROSS
    pairs = zip(panel.steps, panel.values, strict=True)
    few = len(panel.steps) <= _ACROSS
    places = ((across(step), value) for step, value in pairs)
    for _, same in groupby(places, key=lambda one: one[0] if few else one[0] // abs(per)):
        told = list(same)
        known = [one for _, one in told if one is not None and math.isfinite(one)]
        if not known:
            yield told[0][0], None
            continue
        ends = sorted({known.index(min(known)), known.index(max(known))})
        yield told[0][0], [known[at] for at in ends]


def _lost(panel: Panel, across: Scale) -> list[float]:
    """Where values are none: ticks at the upper edge, one for each place."""
    pairs = zip(panel.steps, panel.values, strict=True)
    lost = (step for step, value in pairs if value is None or not math.isfinite(value))
    return sorted({round(across(step)) for step in lost})
