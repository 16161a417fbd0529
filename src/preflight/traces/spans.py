"""Spans of time: unions, and what is left of one without another. A span is (start, end),
microseconds; a list of them is sorted and without overlap, except where it is said."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

Span = tuple[float, float]
#: So many are put together before they are merged: what lies within another is then let go, and
#: where still too many are apart, so are gaps between them, small ones first.
_MOST = 400_000


class Spans:
    """A growing union, in memory that grows with what is apart. Spans come in any order; those that
    come in order, or within the last, which is from `low` to `high`, cost nothing. `slack_us`: gaps
    up to it are closed."""

    def __init__(self, slack_us: float = 0.0) -> None:
        self._starts, self._ends = array("d"), array("d")
        self.low, self.high = float("inf"), float("-inf")
        self._slack_us = slack_us

    def add(self, start: float, end: float) -> None:
        if self.low <= start <= self.high + self._slack_us:
            if end > self.high:
                self.high = self._ends[-1] = end
            return
        self._starts.append(start)
        self._ends.append(end)
        self.low, self.high = start, end
        if len(self._starts) > _MOST:
            self._fold()

    def _fold(self) -> None:
        kept = self.merged()
        while len(kept) > _MOST // 2:
            self._slack_us = max(1.0, 4 * self._slack_us)
            kept = merged(kept, self._slack_us)
        self._starts = array("d", [start for start, _ in kept])
        self._ends = array("d", [end for _, end in kept])
        self.low, self.high = kept[-1]

    def merged(self) -> list[Span]:
        return merged(zip(self._starts, self._ends, strict=True), self._slack_us)


def merged(spans: Iterable[Span], slack_us: float = 0.0) -> list[Span]:
    """The union of spans in any order."""
    ordered = sorted(spans)
    if not ordered:
        return []
    found: list[Span] = []
    low, high = ordered[0]
    for start, end in ordered:
        if start > high + slack_us:
            found.append((low, high))
            low, high = start, end
        elif end > high:
            high = end
    found.append((low, high))
    return found


def total(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)


def clipped(spans: Sequence[Span], low: float, high: float) -> list[Span]:
    """What of them lies between."""
    first = bisect_right(spans, (low, float("inf")))
    if first and spans[first - 1][1] > low:
        first -= 1
    last = bisect_left(spans, (high,), first)
    return [
        (max(start, low), min(end, high)) for start, end in spans[first:last] if end > low
    ]  # fmt: skip


def minus(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What of the first is in none of the others."""
    if not others:
        return list(spans)
    found, at = [], 0
    for start, end in spans:
        while at < len(others) and others[at][1] <= start:
            at += 1
        low, here = start, at
        while here < len(others) and others[here][0] < end:
            if others[here][0] > low:
                found.append((low, others[here][0]))
            low = max(low, others[here][1])
            here += 1
        if low < end:
            found.append((low, end))
    return found
