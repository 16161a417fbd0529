"""Ranks by parts of the step as squares: the further from the median over the ranks, the stronger
the colour; red is longer, blue shorter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.reports.machine.svg_shapes import FAINT, WIDTH, Shape, box, fitted, letters, text
from preflight.reports.pictures.axis import seconds
from preflight.reports.pictures.told import Bars

#: Share of the step that a rank is off, and the fill; colour goes with a number below the map.
_LONGER = ((0.50, "#b2182b"), (0.20, "#d6604d"), (0.10, "#f4a582"), (0.05, "#fddbc7"))
_SHORTER = ((0.50, "#2166ac"), (0.20, "#4393c3"), (0.10, "#92c5de"), (0.05, "#d1e5f0"))
_USUAL = "#f6f8fa"
#: Squares beside each other.
MOST = 256
_ROW = 20.0


class Grouped(Struct, frozen=True):
    """Ranks as columns: of neighbours that share one, the rank that is furthest from the median.
    `off`: column x part, as shares of the step."""

    columns: tuple[int, ...]
    off: tuple[tuple[float, ...], ...]
    size: int  # ranks of a column


def grouped(bars: Bars, most: int = MOST) -> Grouped:
    """At most so many columns."""
    usual = bars.usual()
    step = sum(usual) or max(map(sum, bars.seconds)) or 1.0
    off = [
        tuple((one - half) / step for one, half in zip(row, usual, strict=True))
        for row in bars.seconds
    ]  # fmt: skip
    size = -(-len(off) // most)
    columns = tuple(
        max(range(at, min(at + size, len(off))), key=lambda rank: max(map(abs, off[rank])))
        for at in range(0, len(off), size)
    )
    return Grouped(columns, tuple(off[rank] for rank in columns), size)


def rank_heat(bars: Bars, left: float, top: float) -> Iterator[Shape]:
    """Below `top`; nothing of one rank, which has no others beside it."""
    if len(bars.ranks) < 2:
        return
    told, usual = grouped(bars), bars.usual()
    names = [f"{fitted(part, 150, 10)}, {seconds(half)}"
             for part, half in zip(bars.parts, usual, strict=True)]  # fmt: skip
    begin = left + max(letters(name, 10) for name in names) + 10
    side = min((WIDTH - 30 - begin) / len(told.columns), 34.0)
    y = top
    for part, name in enumerate(names):
        yield text(begin - 6, y + 14, name, size=10, anchor="end")
        for column, off in enumerate(told.off):
            yield box(begin + side * column, y, side, _ROW - 1, fill=_fill(off[part]),
                      stroke="#d0d7de", thick=0.5 if side > 6 else 0)  # fmt: skip
        y += _ROW
    first, last = bars.ranks[0], bars.ranks[-1]
    yield text(begin, y + 12, fitted(first, 120, 9), size=9, fill=FAINT)
    if side * len(told.columns) > 2 * (letters(first, 9) + letters(last, 9)):
        yield text(begin + side * len(told.columns), y + 12, fitted(last, 120, 9), size=9,
                   fill=FAINT, anchor="end")  # fmt: skip
    for line in _below(bars, told):
        y += 16
        yield text(left, y + 14, line, size=11, fill=FAINT)


def _below(bars: Bars, told: Grouped) -> Iterator[str]:
    yield ("off from the median over the ranks, as a share of the step: red longer, blue shorter; "
           "5, 10, 20, 50 %")  # fmt: skip
    yield from ("most off: " + one for one in furthest(bars, told)[:1])
    if told.size > 1:
        yield f"a column is {told.size} neighbours, drawn as the one that is most off"


def furthest(bars: Bars, told: Grouped) -> Sequence[str]:
    """The ranks and parts that are off by 5 % of the step or more, most first, in words."""
    found = sorted(
        ((abs(off), off, bars.ranks[rank], bars.parts[part])
         for rank, row in zip(told.columns, told.off, strict=True)
         for part, off in enumerate(row) if abs(off) >= _LONGER[-1][0]),
        reverse=True,
    )  # fmt: skip
    return [f"{rank}, {part}: {off:+.0%} of the step" for _, off, rank, part in found[:8]]


def _fill(off: float) -> str:
    shades = _LONGER if off > 0 else _SHORTER
    return next((fill for least, fill in shades if abs(off) >= least), _USUAL)
