"""A column of a series: rows that have a value, parted where a run began anew."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct

from preflight.diagnosis.series.times import begins_of
from preflight.facts.series import LogEvent, Series

#: Of a normal distribution: the quarters are so many sigmas apart.
_QUARTERS = 1.349
#: Values of the moving window, and how many of them say what is usual.
WINDOW, LEAST = 64, 16


class Track(Struct):
    """Rows with a finite value, in order. `tops`: the largest of the lines of a row."""

    name: str
    rows: list[int]
    values: list[float]
    tops: list[float]

    def part(self, begin: int, end: int) -> Track:
        """Of rows from `begin` to before `end`."""
        first, last = bisect_left(self.rows, begin), bisect_left(self.rows, end)
        return Track(self.name, self.rows[first:last], self.values[first:last],
                     self.tops[first:last])  # fmt: skip


class Course(Struct):
    """A series with its restarts. `begins`: first rows of each start."""

    series: Series
    steps: Sequence[float]
    begins: list[int]

    def track(self, name: str) -> Track:
        """Empty where there is no such column."""
        column = self.series.columns.get(name)
        if column is None:
            return Track(name, [], [], [])
        rows = [at for at, one in enumerate(column.mean) if math.isfinite(one)]
        return Track(name, rows, [column.mean[at] for at in rows], [column.high[at] for at in rows])

    def starts(self) -> Iterator[tuple[int, int]]:
        """First row, and the row behind the last, of each start."""
        yield from zip(self.begins, [*self.begins[1:], len(self.steps)], strict=True)

    def line(self, row: int) -> int:
        return self.series.line[row]


def course_of(series: Series, events: Sequence[LogEvent] = ()) -> Course:
    """Rows without a step are counted. A run also begins anew where a line says that a checkpoint
    was loaded: the step goes on then."""
    steps = series.values("step")
    if not any(map(math.isfinite, steps)):
        steps = [float(at) for at in range(len(series.line))]  # type: ignore[assignment]
    loaded = {bisect_left(series.line, one.line) for one in events if one.kind == "loaded"}
    begins = {*begins_of(steps), *(row for row in loaded if row < len(steps))}
    return Course(series, steps, sorted(begins))


class Usual:
    """Median and spread of the last values that were usual themselves: a spike, or what is no
    number, never becomes part of it."""

    def __init__(self, size: int = WINDOW) -> None:
        self._order: deque[float] = deque()
        self._sorted: list[float] = []
        self._size = size

    def __len__(self) -> int:
        return len(self._order)

    def add(self, value: float) -> None:
        self._order.append(value)
        insort(self._sorted, value)
        if len(self._order) > self._size:
            del self._sorted[bisect_left(self._sorted, self._order.popleft())]

    def clear(self) -> None:
        self._order.clear()
        self._sorted.clear()

    @property
    def median(self) -> float:
        return self._sorted[len(self._sorted) // 2]

    @property
    def sigma(self) -> float:
        count = len(self._sorted)
        return (self._sorted[3 * count // 4] - self._sorted[count // 4]) / _QUARTERS


def sigma_of(values: Sequence[float]) -> float:
    """Robust: by the quarters; 0 of fewer than four."""
    told = sorted(values)
    count = len(told)
    return (told[3 * count // 4] - told[count // 4]) / _QUARTERS if count >= 4 else 0.0


def bins_of(values: Sequence[float], count: int) -> list[float]:
    """Medians of so many stretches of equal length."""
    size = max(1, len(values) // count)
    return [median(values[at : at + size]) for at in range(0, size * (len(values) // size), size)]
