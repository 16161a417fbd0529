"""A series that may change its level: where it does, how far values lie from it, where it goes.

Pure functions of numbers; logarithms are given where shares count.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

#: What lasts less than a tenth of the series, or fewer values, is no level.
_SHARE, _LEAST = 10, 5
#: A level more has to bring values nearer by so many times what one lies from the next.
_WORTH = 8.0
#: Levels differ by so many spreads of the values about both: what waves is at one level.
_SPREADS = 2.5


def spread(values: Sequence[float]) -> float:
    """1.4826 x the median distance from the median; 0 of none."""
    if not values:
        return 0.0
    middle = median(values)
    return 1.4826 * median(abs(one - middle) for one in values)


def starts(values: Sequence[float], least: float) -> list[int]:
    """Where levels begin, 0 the first: each differs from the one before by `least` or more."""
    found = _parts(values, max(_LEAST, len(values) // _SHARE), least)
    while len(found) > 1:
        steps = [_step(values, part, found) for part in range(1, len(found))]
        smallest = min(range(len(steps)), key=lambda one: steps[one][0])
        step, around = steps[smallest]
        if step >= max(least, _SPREADS * around):
            break
        del found[smallest + 1]
    return found


def _step(values: Sequence[float], part: int, found: list[int]) -> tuple[float, float]:
    """Between a level and the one before: how high it is, and how far values lie about both."""
    begin, at, end = found[part - 1], found[part], [*found, len(values)][part + 1]
    left, right = values[begin:at], values[at:end]
    around = spread([*_from_median(left), *_from_median(right)])
    return abs(median(right) - median(left)), around


def _parts(values: Sequence[float], shortest: int, least: float) -> list[int]:
    """The parts with the least distance from their medians, and a price for each part."""
    near = spread([b - a for a, b in pairwise(values)]) / 2**0.5
    price = _WORTH * max(near, least / 10)
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(values) + 1):
        begins = (one for one in range(end - shortest + 1) if one == 0 or one >= shortest)
        costs = [(best[one][0] + _distance(values[one:end]) + price, one) for one in begins]
        best.append(min(costs, default=(float("inf"), 0)))
    found, at = list[int](), len(values)
    while at > 0:
        at = best[at][1]
        found.append(at)
    return found[::-1] or [0]


def _distance(values: Sequence[float]) -> float:
    middle = median(values)
    return sum(abs(one - middle) for one in values)


def _from_median(values: Sequence[float]) -> list[float]:
    middle = median(values)
    return [one - middle for one in values]


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median of the slopes between all pairs (Theil and Sen)."""
    pairs = range(len(values))
    found = [
        (values[b] - values[a]) / (times[b] - times[a])
        for a in pairs for b in pairs[a + 1 :] if times[b] > times[a]
    ]  # fmt: skip
    return median(found) if found else 0.0
