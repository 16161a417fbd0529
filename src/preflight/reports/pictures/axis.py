"""Axes of a chart: where a value stands, and the round numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from msgspec import Struct

from preflight.units import number

#: Beyond that nothing is measured; sums of it would overflow.
_LARGEST = 1e300


class Axis(Struct, frozen=True):
    """Values from `low` to `high` on points from `begin` to `end`; with `log` by their powers."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """The point of a value; at the edge where it lies beyond."""
        low, high, at = (self._scaled(one) for one in (self.low, self.high, value))
        share = (at - low) / (high - low)
        return self.begin + min(1.0, max(0.0, share)) * (self.end - self.begin)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round values within, with what stands beside them."""
        return list(_powers(self, most)) if self.log else list(_round(self, most))


def axis_of(
    values: Iterable[float], begin: float, end: float, *, log: bool = False, room: float = 0.05
) -> Axis:
    """An axis for all that can be drawn, with some `room` on both sides; of nothing from 0 to 1."""
    known = [one for one in values if drawable(one, log)]
    low, high = min(known, default=1.0 if log else 0.0), max(known, default=1.0)
    if log:
        wide = max(math.log10(high / low) if low else 300.0, 0.1)
        return Axis(low / 10 ** (room * wide), high * 10 ** (room * wide), begin, end, True)
    span = high - low or abs(high) * 0.2 or 1.0
    if high == low:
        low, high = low - span / 2, high + span / 2
    return Axis(low - room * span, high + room * span, begin, end)


def drawable(value: float, log: bool = False) -> bool:
    """Whether it has a place on an axis."""
    return math.isfinite(value) and abs(value) < _LARGEST and (value > 1e-300 or not log)


def _round(axis: Axis, most: int) -> Iterator[tuple[float, str]]:
    """One, two or five times a power of ten apart."""
    rough = (axis.high - axis.low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * one for one in (1, 2, 5, 10) if power * one >= rough * (1 - 1e-9))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for count in range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1):
        value = count * step
        plain = digits <= 6 and abs(value) < 1e7
        yield value, f"{value:,.{digits}f}" if plain else number(value, 4)


def _powers(axis: Axis, most: int) -> Iterator[tuple[float, str]]:
    """Powers of ten, or every n-th; beside them two and five times those where there are few."""
    first, last = math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high))
    within = [one for one in range(first, last + 1) if axis.low <= 10.0**one <= axis.high]
    if len(within) > 2:
        for power in within[:: math.ceil(len(within) / most)]:
            yield 10.0**power, f"1e{power}" if not -3 <= power <= 6 else f"{10.0**power:,g}"
        return
    between = [one * 10.0**power for power in range(first, last) for one in (1, 2, 5)]
    found = [one for one in between if axis.low <= one <= axis.high]
    yield from ((one, number(one)) for one in found) if len(found) > 1 else _round(axis, most)
