"""Which of several trainings is slower, and by how much, where the machine itself is not steady.

They take turns within one process, step by step, so that what disturbs one disturbs all; each round
gives a ratio, and the median of the ratios has an interval by bootstrap.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

#: Rounds before the first that counts: kernels are chosen, memory is taken, code is compiled.
WARM = 5
_RESAMPLED = 1000


class Ratio(NamedTuple):
    """A median of ratios, and where 95 % of the resampled medians lie."""

    middle: float
    low: float
    high: float

    def percent(self) -> str:
        """How far from equal."""
        middle, low, high = (100 * (one - 1) for one in self)
        return f"{middle:+.1f} % [{low:+.1f}, {high:+.1f}]"


#: Seconds by name, and under "NAME, processor" those of this process's processors alone: work of
#: its own that others on the machine cannot stretch, but no waiting either.
Rounds = list[dict[str, float]]
PROCESSOR = ", processor"


def taken(
    turns: Mapping[str, Callable[[], object]], rounds: int, settle: Callable[[], object]
) -> Rounds:
    """Seconds of each one's turn, round by round, each round in another order. `settle` waits until
    what a turn has begun is done. The draw is seeded: several ranks go through the same order."""
    draw, found = random.Random(1), []
    for number in range(-WARM, rounds):
        order = list(turns)
        draw.shuffle(order)
        seconds = {}
        for name in order:
            settle()
            began, busy = time.perf_counter(), time.process_time()
            turns[name]()
            settle()
            seconds[name] = time.perf_counter() - began
            seconds[name + PROCESSOR] = time.process_time() - busy
        if number >= 0:
            found.append(seconds)
    return found


def ratio(found: Rounds, one: str, other: str) -> Ratio:
    """How long one's turn takes in those of the other."""
    return middle_of([seconds[one] / seconds[other] for seconds in found])


def middle_of(ratios: Sequence[float]) -> Ratio:
    """Their median, and how sure that is."""
    draw = random.Random(1)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLED))
    cut = _RESAMPLED // 40
    return Ratio(median(ratios), medians[cut], medians[-cut - 1])
