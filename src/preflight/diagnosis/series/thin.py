"""A long series as fewer points that still show what sticks out of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Places to keep, in their order, at most `most` of them (and of each series at least six): of
    neighbours the least, the greatest, and the first that is no number; the ends always."""
    count = len(values)
    if count <= max(most, 6):
        return list(range(count))
    size = math.ceil(count / max(1, (most - 2) // 3))
    kept = {0, count - 1}
    for begin in range(0, count, size):
        kept.update(_of_group(values, range(begin, min(begin + size, count))))
    return sorted(kept)


def _of_group(values: Sequence[float], places: range) -> Iterator[int]:
    finite = [at for at in places if math.isfinite(values[at])]
    if finite:
        yield min(finite, key=lambda at: values[at])
        yield max(finite, key=lambda at: values[at])
    if len(finite) < len(places):
        yield next(at for at in places if not math.isfinite(values[at]))
