"""Places and words of an axis."""

from __future__ import annotations

import math
from collections.abc import Callable

#: Seconds and their parts: from so much on, the unit and what it is in seconds.
_UNITS = ((1.0, "s", 1.0), (1e-3, "ms", 1e-3), (0.0, "us", 1e-6))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, at most so many and at least one."""
    span = high - low
    if not span > 0:
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    size = next(one * power for one in (1, 2, 5, 10) if one * power >= rough)
    first = math.ceil(low / size)
    found = [at * size for at in range(first, first + most + 1) if at * size <= high * (1 + 1e-9)]
    return found or [low]


def seconds(value: float) -> str:
    """1.2 s, 35 ms."""
    least = next(one for one in _UNITS if abs(value) >= one[0])
    return f"{value / least[2]:.3g} {least[1]}" if value else "0"


def plain(value: float) -> str:
    """1,200 or 0.35."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


class Scale:
    """From values to places: `low` is drawn at `start`, `high` at `end`."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool) -> None:
        self.log = log and low > 0
        self._to: Callable[[float], float] = math.log10 if self.log else float
        self._low, self._start = self._to(low), start
        self._per = (end - start) / ((self._to(high) - self._low) or 1.0)
        self.ticks = self._powers(low, high) if self.log else ticks(low, high)

    def __call__(self, value: float) -> float:
        return self._start + (self._to(value) - self._low) * self._per

    @staticmethod
    def _powers(low: float, high: float) -> list[float]:
        first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
        every = max(1, (last - first) // 5)
        return [10.0**at for at in range(first, last + 1, every)] or [low]
