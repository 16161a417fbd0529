"""The step of each rank as a stacked bar, all to one scale, with what each colour is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.reports.machine.svg_shapes import FAINT, WIDTH, Shape, box, fitted, letters, text
from preflight.reports.pictures.axis import Scale, seconds
from preflight.reports.pictures.told import Bars, oddest

#: One for each part, told apart by people who see few colours too; more parts begin anew.
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#e0883e",
           "#6f6fb8", "#88aa44")  # fmt: skip
_MOST, _NAME, _ROW = 48, 150.0, 18.0


def stacked(bars: Bars, left: float, top: float) -> Iterator[Shape]:
    """Below `top`."""
    shown = oddest(bars, _MOST)
    names = [fitted(bars.ranks[rank], _NAME, 10) for rank in shown]
    begin = left + max(letters(name, 10) for name in names) + 10
    sums = [sum(row) for row in bars.seconds]
    longest = max(sums) or 1.0
    scale = Scale(0.0, longest, begin, WIDTH - 70, log=False)
    y = top
    for line in _legend(bars, left, y):
        yield line
        y = max(y, line.bottom)
    y += 10
    for name, rank in zip(names, shown, strict=True):
        yield text(begin - 6, y + 12, name, size=10, anchor="end")
        yield from _bar(bars.seconds[rank], scale, y)
        yield text(scale(sums[rank]) + 5, y + 12, seconds(sums[rank]), size=10, fill=FAINT)
        y += _ROW
    for at in scale.ticks:
        yield text(scale(at), y + 12, seconds(at), size=9, fill=FAINT, anchor="middle")
    left_out = len(bars.ranks) - len(shown)
    if left_out:
        told = f"the {len(shown)} ranks that are furthest from the others; {left_out:,} more"
        yield text(left, y + 30, told, size=11, fill=FAINT)


def _bar(row: Sequence[float], scale: Scale, y: float) -> Iterator[Shape]:
    done = 0.0
    for part, took in enumerate(row):
        wide = scale(done + took) - scale(done)
        if wide >= 0.2:  # of a point: less is not to be seen
            yield box(scale(done), y, wide, _ROW - 4, fill=COLOURS[part % len(COLOURS)],
                      stroke="#ffffff", thick=0.5)  # fmt: skip
        done += took


def _legend(bars: Bars, left: float, top: float) -> Iterator[Shape]:
    """A square and the name of each part, in as many lines as they need."""
    x, y = left, top + 4
    for at, part in enumerate(bars.parts):
        name = fitted(part, 200, 11)
        wide = letters(name, 11) + 34
        if x + wide > WIDTH and x > left:
            x, y = left, y + 18
        yield box(x, y, 11, 11, fill=COLOURS[at % len(COLOURS)], stroke="#ffffff")
        yield text(x + 16, y + 10, name, size=11)
        x += wide
