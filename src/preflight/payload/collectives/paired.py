"""Which of some settings is faster, by measurements in turns: a turn measures each of them once.

Noise of a machine lasts longer than a measurement, and it drifts: so what is compared is the ratio
of two measurements of one turn, and turns go forward and backward in an order in which a level that
rises, at a pace that changes too, takes from each as often as it gives. Whether such ratios have a
sign is told by Wilcoxon's signed ranks with their exact distribution, how large they are by the
median of all their pairs' means (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import NamedTuple

#: After so many turns it is looked whether more are needed; the last is the most there are.
LOOKS = (12, 20, 32)
#: Of a hundred sweeps of settings that are alike one may name a winner: shared by all comparisons
#: of a variable and all looks.
FALSE_WINNERS = 0.01
#: A gain of less is worth no variable; where the whole interval is below, both are alike.
LEAST = 0.02
#: The interval holds the true gain in so many of a hundred.
SURE = 0.99


class Gain(NamedTuple):
    """By how much of it a setting is faster than that it is held against, as a share: 0.1 is 10 %
    more bandwidth. `chance`: of such signs where both are alike."""

    turns: int
    median: float
    low: float
    high: float
    spread: float  # of the turns' ratios: 1.4826 x the median distance from their median
    chance: float
    verdict: str  # faster | slower | alike | open


def order(turn: int, many: int) -> list[int]:
    """Who is measured first, second ... in a turn. Two turns in a row mirror each other, and which
    goes first changes as in the sequence of Thue and Morse: what a drift of first or second degree
    adds sums up to nothing."""
    shift = (turn // 2) % many
    forward = [*range(shift, many), *range(shift)]
    return forward[::-1] if bin(turn).count("1") % 2 else forward


def gain(usual_us: Sequence[float], other_us: Sequence[float], comparisons: int) -> Gain:
    """Of times of the same turns. `comparisons`: how many are made of this variable."""
    logs = [math.log(a / b) for a, b in zip(usual_us, other_us)]  # noqa: B905 - Python 3.9
    means = sorted((a + b) / 2 for at, a in enumerate(logs) for b in logs[at:])
    middle, cut = median(means), _cut(len(logs))
    low, high = means[cut], means[-1 - cut]
    chance = _chance(logs)
    spread = 1.4826 * median(abs(one - median(logs)) for one in logs)
    enough = FALSE_WINNERS / (comparisons * len(LOOKS))
    found = (math.expm1(one) for one in (middle, low, high, spread))
    share, least, most, around = found
    return Gain(len(logs), share, least, most, around, chance,
                _verdict(share, least, most, sure=chance <= enough))  # fmt: skip


def _verdict(share: float, low: float, high: float, *, sure: bool) -> str:
    if sure and abs(share) >= LEAST:
        return "faster" if share > 0 else "slower"
    return "alike" if low > -LEAST and high < LEAST else "open"


@cache
def _ways(count: int) -> tuple[int, ...]:
    """In how many of the 2^count choices of signs the ranks of those with one sum up to 0, 1 ..."""
    ways = [1]
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for at, one in enumerate(ways):
            longer[at + rank] += one
        ways = longer
    return tuple(ways)


def _chance(values: Sequence[float]) -> float:
    """Of ranks as uneven as these, either way; 1 where all are zero. Ties share their rank, and the
    sum counts as the more even whole number beside it."""
    told = sorted((one for one in values if one), key=abs)
    ranks: dict[float, list[int]] = {}
    for at, one in enumerate(told, 1):
        ranks.setdefault(abs(one), []).append(at)
    above = sum(sum(ranks[abs(one)]) / len(ranks[abs(one)]) for one in told if one > 0)
    whole = len(told) * (len(told) + 1) / 2
    less = math.ceil(min(above, whole - above))
    ways = sum(_ways(len(told))[: less + 1])
    return min(1.0, 2 * ways / float(1 << len(told)))


@cache
def _cut(count: int) -> int:
    """How many of the sorted means lie outside of the interval at each end."""
    so_far, allowed = 0, (1 - SURE) / 2 * 2**count
    for at, one in enumerate(_ways(count)):
        so_far += one
        if so_far > allowed:
            return at
    return 0
