"""How far each of some rates is below the median of those that are alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from statistics import median

from preflight.model import Known, Missing

ALONE = Missing("not-applicable", "no other GPU of its model was measured")


def behind(
    rates: Sequence[tuple[Hashable, Known[float]]],
) -> Iterator[tuple[Known[float], Known[int]]]:
    """Percent below the median of all with this key, and how many those are; of a rate that is not
    known both are not."""
    alike: dict[Hashable, list[float]] = defaultdict(list)
    for key, rate in rates:
        if not isinstance(rate, Missing):
            alike[key].append(rate)
    for key, rate in rates:
        others = alike[key]
        if isinstance(rate, Missing):
            yield rate, rate
        elif len(others) < 2 or median(others) <= 0:
            yield ALONE, 1
        else:
            yield 100.0 * (1.0 - rate / median(others)), len(others)
