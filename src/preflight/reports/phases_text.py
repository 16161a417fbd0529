"""Ranks by phases in text and Markdown: milliseconds, with a mark where a rank is off the median.
The mark is a character: it is seen without colour."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from preflight.printable import printable
from preflight.reports.layout import Line, Span, Style, cells, cropped, flow, padded
from preflight.reports.phases import FAR, OFF, Phases, chosen, off

#: Rows that a person reads at a glance; columns of a row's name.
ROWS, _NAME_COLUMNS = 16, 20
#: Columns of a number, of a head at most, and of the mark behind them.
_NUMBER, _HEAD_COLUMNS, _GAP = 7, 20, 3
#: From far below the median to far above it.
_MARKS: tuple[tuple[float, str, Style], ...] = (
    (FAR, "++", "fail"), (OFF, "+", "warn"), (-OFF, "", ""), (-FAR, "-", "dim"),
    (-math.inf, "--", "dim"),
)  # fmt: skip


def phase_lines(phases: Phases, width: int, *, every: bool = False) -> Iterator[Line]:
    """The map, at most `width` wide, in bands of phases where they do not fit beside each other."""
    rows = chosen(phases, len(phases.ranks) if every else ROWS)
    names = {at: cropped(printable(phases.ranks[at]), _NAME_COLUMNS) for at in rows}
    broad = max(cells("median"), *map(cells, names.values()))
    heads = [cropped(printable(name), _HEAD_COLUMNS) for name in phases.parts]
    shares, middle = off(phases), phases.medians()
    for band in _bands(heads, width - broad - 2):
        told = "".join(_right(heads[part]) for part in band)
        yield (Span("  " + padded("ms", broad) + told.rstrip(), "dim"),)
        for at in rows:
            row = [_cell(phases.seconds[at][part], shares[at][part], heads[part]) for part in band]
            row[-1] = Span(row[-1].text.rstrip(), row[-1].style)
            yield (Span("  " + padded(names[at], broad)), *row)
        usual = "".join(_cell(middle[part], 0.0, heads[part]).text for part in band)
        yield (Span("  " + padded("median", broad) + usual.rstrip(), "dim"),)
    for text in legend(phases, len(rows)):
        yield from flow([Span("  ")], [Span(text)], hang=4, width=width)


def _bands(heads: Sequence[str], room: int) -> Iterator[list[int]]:
    """Phases that fit beside each other; one alone at least."""
    band: list[int] = []
    for at in range(len(heads)):
        if band and sum(_broad(heads[one]) for one in (*band, at)) > room + _GAP:
            yield band
            band = []
        band.append(at)
    yield band


def _broad(head: str) -> int:
    return max(_NUMBER, cells(head)) + _GAP


def _right(text: str, broad: int = 0, mark: str = "") -> str:
    room = broad or _broad(text)
    return " " * (room - _GAP - cells(text)) + text + f"{mark:<{_GAP}}"


def _cell(seconds: float, share: float, head: str) -> Span:
    mark, style = mark_of(share)
    return Span(_right(ms(seconds), _broad(head), mark), style)


def mark_of(share: float) -> tuple[str, Style]:
    """By how far it is from the median, as a share of the step."""
    if not math.isfinite(share):
        return "", ""
    return next((mark, style) for least, mark, style in _MARKS if share >= least)


def ms(seconds: float) -> str:
    """Four digits; ? where it is not told."""
    if not math.isfinite(seconds):
        return "?"
    if seconds and not 1e-7 <= seconds < 10_000:
        return f"{seconds * 1e3:.1e}"
    return f"{float(f'{seconds * 1e3:.4g}'):,.7g}"


def legend(phases: Phases, shown: int) -> Iterator[str]:
    """What the marks mean, and what was left out."""
    yield (
        f"off the median by {OFF:.0%} of a step and more: + longer, - shorter; "
        f"by {FAR:.0%}: ++ and --"
    )
    left = len(phases.ranks) - shown
    if left:
        yield (f"the {shown} ranks that are farthest from the median; {left:,} more are left out: "
               "--save ranks.svg draws them, --format json has all")  # fmt: skip


def phase_rows(phases: Phases) -> tuple[list[str], list[list[str]], list[str]]:
    """For Markdown: the head, the rows, and what they mean."""
    rows, shares = chosen(phases, ROWS), off(phases)
    grid = [
        [phases.ranks[at], *(_told(*one) for one in zip(phases.seconds[at], shares[at],
                                                       strict=True))]
        for at in rows
    ]  # fmt: skip
    grid.append(["median", *map(ms, phases.medians())])
    return ["ms", *phases.parts], grid, list(legend(phases, len(rows)))


def _told(seconds: float, share: float) -> str:
    return f"{ms(seconds)} {mark_of(share)[0]}".rstrip()
