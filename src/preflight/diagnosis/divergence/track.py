"""A column of a series: rows that have a value, parted where a run began anew."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct

from preflight.diagnosis.series.times import begins_of
from preflight.facts.series import LogEvent, Series

#: Of a normal distribution: the quarters are so many sigmas apart.
_QUARTERS = 1.349
#: Values of the moving windows: of the level, of the spread, of the farthest.
LEAST, SPREAD, REACH = 16, 128, 256
#: Rows in which a run begins.
WINDOW = 64


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


_POLICY = re.compile(r"(?:train/)?(?:rewards?\b|rewards?[/_]|kl$|actor/|critic/|policy_loss)")


class Course(Struct):
    """A series with its restarts. `begins`: first rows of each start; `counted`: the log tells no
    step, and rows stand for them: they mean nothing beside the steps of checkpoints."""

    series: Series
    steps: Sequence[float]
    begins: list[int]
    counted: bool = False
    tracks: dict[str, Track] = {}  # those that were asked for
    most: dict[str, float] = {}
    odd: dict[str, list[int]] = {}  # rows of a column that are far above what is usual

    @property
    def of_policy(self) -> bool:
        """Whether it is reinforcement learning: by what stands beside the loss."""
        return any(_POLICY.match(name) for name in self.series.columns)

    def track(self, name: str) -> Track:
        """Empty where there is no such column. A loss of 0 beside a gradient that is no number is
        none: some trainers write it for what is no number."""
        if name not in self.tracks:
            self.tracks[name] = self._track(name)
        return self.tracks[name]

    def _track(self, name: str) -> Track:
        column = self.series.columns.get(name)
        if column is None:
            return Track(name, [], [], [])
        norms = self.series.columns.get("grad_norm")
        hidden = norms.bad if norms is not None and name == "loss" else {}
        rows = [at for at, one in enumerate(column.mean)
                if math.isfinite(one) and (one != 0 or at not in hidden)]  # fmt: skip
        return Track(name, rows, [column.mean[at] for at in rows], [column.high[at] for at in rows])

    def largest(self, name: str) -> float:
        """Of a column; 0 where there is none."""
        if name not in self.most:
            self.most[name] = max(self.track(name).values, default=0.0)
        return self.most[name]

    def start(self, row: int) -> int:
        """Which start a row is of, from 0."""
        return bisect_right(self.begins, row) - 1

    def starts(self) -> Iterator[tuple[int, int]]:
        """First row, and the row behind the last, of each start."""
        yield from zip(self.begins, [*self.begins[1:], len(self.steps)], strict=True)

    def line(self, row: int) -> int:
        return self.series.line[row]


def course_of(series: Series, events: Sequence[LogEvent] = ()) -> Course:
    """Rows without a step are counted. A run also begins anew where a line says that a checkpoint
    was loaded: the step goes on then."""
    steps = series.values("step")
    counted = not any(map(math.isfinite, steps))
    if counted:
        steps = [float(at) for at in range(len(series.line))]  # type: ignore[assignment]
    loaded = {bisect_left(series.line, one.line) for one in events if one.kind == "loaded"}
    begins = {*begins_of(steps), *(row for row in loaded if row < len(steps))}
    return Course(series, steps, sorted(begins), counted)


class Usual:
    """Level and spread of the last values that were usual themselves: a spike, or what is no
    number, never becomes part of them. The level is the median of the last few, for a loss falls;
    the spread is that of how far values were from the level of their time."""

    def __init__(self) -> None:
        self._near: deque[float] = deque(maxlen=_NEAR)
        self._off: deque[float] = deque()
        self._off_sorted: list[float] = []
        self._peaks: deque[tuple[int, float]] = deque()  # largest of a moving window, falling
        self._count = 0
        self.level = math.nan

    def __len__(self) -> int:
        return self._count

    def add(self, value: float) -> None:
        off = value - self.level if self._near else 0.0
        self._near.append(value)
        self.level = sorted(self._near)[len(self._near) // 2]
        if self._count == 2 * LEAST:  # the first fall is steep, and says nothing of noise
            self._peaks.clear()
            for _ in range(LEAST):
                self._off.popleft()
            self._off_sorted = sorted(self._off)
        _push(self._off, self._off_sorted, off, SPREAD)
        self.reach(off)

    def reach(self, off: float) -> None:
        """That a usual value was so far above the level."""
        self._count += 1
        while self._peaks and self._peaks[-1][1] <= off:
            self._peaks.pop()
        self._peaks.append((self._count, off))
        if self._peaks[0][0] <= self._count - REACH:
            self._peaks.popleft()

    @property
    def sigma(self) -> float:
        count = len(self._off_sorted)
        quarters = self._off_sorted[3 * count // 4] - self._off_sorted[count // 4]
        return quarters / _QUARTERS

    @property
    def farthest(self) -> float:
        """Above the level, of the last values: noise is not always normal."""
        return max(0.0, self._peaks[0][1]) if self._peaks else 0.0


#: Values that the level is taken from.
_NEAR = 15


def _push(order: deque[float], ranked: list[float], value: float, size: int) -> None:
    order.append(value)
    insort(ranked, value)
    if len(order) > size:
        del ranked[bisect_left(ranked, order.popleft())]


def sigma_of(values: Sequence[float]) -> float:
    """Robust: by the quarters; 0 of fewer than four."""
    told = sorted(values)
    count = len(told)
    return (told[3 * count // 4] - told[count // 4]) / _QUARTERS if count >= 4 else 0.0


def bins_of(values: Sequence[float], count: int) -> list[float]:
    """Medians of so many stretches of equal length."""
    size = max(1, len(values) // count)
    return [median(values[at : at + size]) for at in range(0, size * (len(values) // size), size)]


def bend_of(blocks: Sequence[float]) -> float:
    """Noise of blocks, by how their changes change: a fall of the whole run is none. A normal
    distribution has half of its values within 1 / 1.4826 sigma."""
    bends = [abs(c - 2 * b + a) for a, b, c in zip(blocks, blocks[1:], blocks[2:], strict=False)]
    return 1.4826 * median(bends) / 6**0.5 if bends else 0.0
