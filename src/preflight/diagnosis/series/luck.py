"""Whether one of several is picked more often than luck would."""

from __future__ import annotations

import math


def luck(times: int, of: int, ranks: int) -> float:
    """The chance, 1 at most, that any of `ranks` equals is the last in `times` of `of` cases or
    more. Where not all ranks are known, fewer of them give a larger chance: the safe side."""
    fair = 1 / max(2, ranks)
    one = sum(math.comb(of, k) * fair**k * (1 - fair) ** (of - k) for k in range(times, of + 1))
    return min(1.0, one * max(2, ranks))
