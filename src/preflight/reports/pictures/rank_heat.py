"""How far ranks are off the median in a part of the step, and who stands for many of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from preflight.reports.pictures.told import Bars

#: Share of the step from which a rank is off.
OFF = 0.05
#: Rows, or columns, of a picture.
MOST = 256


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


def furthest(bars: Bars, told: Grouped) -> Sequence[str]:
    """The ranks and parts that are off by 5 % of the step or more, most first, in words."""
    found = sorted(
        ((abs(off), off, bars.ranks[rank], bars.parts[part])
         for rank, row in zip(told.columns, told.off, strict=True)
         for part, off in enumerate(row) if abs(off) >= OFF),
        reverse=True,
    )  # fmt: skip
    return [f"{rank}, {part}: {off:+.0%} of the step" for _, off, rank, part in found[:8]]
