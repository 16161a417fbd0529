"""Rows of one series as they come: kept in constant memory by folding neighbours."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, isnan, nan
from operator import le, lt

from preflight.facts.series import Column, Series, Way

#: Rows that a series keeps; with more, neighbours are folded.
MOST_ROWS = 200_000
#: Values that the series of a log keep together.
MOST_VALUES = 1_500_000
_BLOCK = 4096
#: Rows of a stretch that is taken at once.
_LEAST_PART = 16
#: Up to so many values are folded side by side.
_WIDE = 64
#: What the same step may tell twice without being another: when and how long.
_LOOSE = {"time_s", "elapsed_s", "bar_s", "epoch"}


class Rows:
    """A series being built. In what comes, NaN is a value that a row lacks, and an infinity one
    that was written as nan or inf. The last row stays open: lines may add to it."""

    def __init__(self, source: str, style: str, rank: int | None = None) -> None:
        self.series = Series(source, style, rank=rank)
        self._open: dict[str, float] | None = None
        self._where = (0, 0)
        self._by: set[str] = set()  # who told of the open row
        self._waiting: dict[str, list[float]] = {}
        self._lines: list[int] = []
        self._offsets: list[int] = []
        self.ways: dict[str, Way] = {}
        self.most_values = MOST_VALUES

    @property
    def step(self) -> float | None:
        """Of the open row."""
        return None if self._open is None else self._open.get("step")

    def row(self, values: dict[str, float], line: int, offset: int, by: str = "") -> None:
        """A line that begins a row, or says the rest or the same of the open one. `by`: who writes
        such lines; of two who tell of a step the one that is not DeepSpeed knows better."""
        if self._open is not None and self._same(values, by):
            better = by not in self._by and not by.startswith("deepspeed")
            self._open = self._open | values if better else values | self._open
            self._by.add(by)
            return
        if self._open is not None and "step" not in self._open and "step" in values and self.empty:
            self._open = None  # what stands before the first step, such as timers of the set-up
        self._close()
        self._open, self._where, self._by = values, (line, offset), {by}

    @property
    def empty(self) -> bool:
        """Whether nothing but the open row was told."""
        return not self.series.lines and not self._lines

    def _same(self, values: Mapping[str, float], by: str) -> bool:
        """Whether it is of the open row: the same step, or none, and nothing told otherwise."""
        row = self._open or {}
        if "step" in values and "step" in row:
            if values["step"] != row["step"]:
                return False
            if by not in self._by:
                return True
        common = (values.keys() & row.keys()) - _LOOSE - {"step"}
        if "step" not in values or "step" not in row:
            return not common and row.get("epoch", nan) == values.get("epoch")
        return all(values[name] == row[name] for name in common)

    def add(self, values: dict[str, float], line: int, offset: int) -> None:
        """A line that belongs to the row before; a row of its own where there is none."""
        row = self._open
        if row is None or ("step" not in row and values.keys() & row.keys()):
            self._close()
            self._open, self._where, self._by = dict(values), (line, offset), set()
            return
        for name, value in values.items():
            if name in row and name.endswith("_microstep"):
                row[name] += value
            else:
                row.setdefault(name, value)

    def many(
        self, columns: Mapping[str, Sequence[float]], lines: Sequence[int],
        offsets: Sequence[int], by: str = "",
    ) -> None:  # fmt: skip
        """Rows at once, each with every column. The last of them stays open."""
        ends = _parts(columns, len(lines))
        for begin, end in zip([0, *ends], ends, strict=False):
            self._part(columns, lines, offsets, range(begin, end), by)

    def _part(
        self, columns: Mapping[str, Sequence[float]], lines: Sequence[int],
        offsets: Sequence[int], where: range, by: str,
    ) -> None:  # fmt: skip
        """Rows of which those between the first and the last are each another step."""
        begin, end = where.start, where.stop - 1
        for at in {begin: begin, end: end}:
            row = {name: one[at] for name, one in columns.items() if one[at] == one[at]}
            self.row(row, lines[at], offsets[at], by)
            if at == begin and end - begin > 1:
                self._close()
                some = {name: one[begin + 1 : end] for name, one in columns.items()}
                self._extend(some, lines[begin + 1 : end], offsets[begin + 1 : end])

    def _close(self) -> None:
        if self._open is not None:
            self._extend({name: (one,) for name, one in self._open.items()},
                         self._where[:1], self._where[1:])  # fmt: skip
            self._open = None

    def _extend(
        self, columns: Mapping[str, Sequence[float]], lines: Sequence[int], offsets: Sequence[int]
    ) -> None:
        before = len(self._lines)
        self._lines += lines
        self._offsets += offsets
        for name, values in columns.items():
            if name not in self._waiting:
                self._waiting[name] = [nan] * before
            self._waiting[name] += values
        for name in self._waiting.keys() - columns.keys():
            self._waiting[name] += [nan] * len(lines)
        if len(self._lines) >= max(_BLOCK, 2 * self.series.fold):
            self._settle(whole=False)

    def _settle(self, *, whole: bool) -> None:
        """What waits into the arrays, as many as make whole rows, or all."""
        series = self.series
        fold, size = series.fold, len(self._lines)
        size = size if whole else size - size % (2 * fold)  # so that rows stay in pairs
        rows = len(series.line)
        series.line.fromlist(self._lines[:size:fold])
        series.offset.fromlist(self._offsets[:size:fold])
        series.lines += size
        for name, values in self._waiting.items():
            if name not in series.columns:
                series.columns[name] = _empty(rows, fold)
            _grow(series.columns[name], values[:size], fold, rows)
            del values[:size]
        del self._lines[:size], self._offsets[:size]
        self._even(len(series.line))
        while len(series.line) > min(MOST_ROWS, self.most_values // len(series.columns or "1")):
            self._fold()

    def _even(self, rows: int) -> None:
        for one in self.series.columns.values():
            for values in {id(v): v for v in (one.mean, one.low, one.high)}.values():
                values.extend([nan] * (rows - len(values)))

    def _fold(self) -> None:
        """Two rows to one."""
        series = self.series
        series.line, series.offset = series.line[::2], series.offset[::2]
        for one in series.columns.values():
            one.mean, one.low, one.high = _halved(one)
            bad: dict[int, int] = {}
            for row, count in one.bad.items():
                bad[row // 2] = bad.get(row // 2, 0) + count
            one.bad = bad
        series.fold *= 2

    def done(self) -> Series:
        """The series; nothing more comes."""
        self._close()
        self._settle(whole=True)
        for name, one in list(self.series.columns.items()):
            if not one.bad and all(map(isnan, one.mean)):
                del self.series.columns[name]
        for name, way in self.ways.items():
            if name in self.series.columns:
                self.series.columns[name].way = way
        return self.series


def _parts(columns: Mapping[str, Sequence[float]], count: int) -> Sequence[int]:
    """Where stretches end in which each row is another step for certain: steps rise; or there are
    none, and every row tells all. Where these are short, the end of each row."""
    steps = columns.get("step")
    if steps is None:
        told = not any(isnan(sum(one)) for one in columns.values())
        return [count] if told else range(1, count + 1)
    ends = [at for at, rises in enumerate(map(lt, steps, steps[1:]), 1) if not rises]
    return [*ends, count] if len(ends) * _LEAST_PART <= count else range(1, count + 1)


def _empty(rows: int, fold: int) -> Column:
    mean = array("d", [nan]) * rows
    if fold == 1:
        return Column(mean, mean, mean)
    return Column(mean, mean[:], mean[:])


def _grow(one: Column, values: list[float], fold: int, rows: int) -> None:
    """Values of lines to rows."""
    same = values[0] if values and values.count(values[0]) == len(values) else nan
    if isfinite(same):
        many = array("d", [same]) * -(-len(values) // fold)
        for part in (one.mean,) if fold == 1 else (one.mean, one.low, one.high):
            part.extend(many)
        return
    if fold == 1:
        if not isfinite(sum(values)):
            values = [_told(one, value, rows + at) for at, value in enumerate(values)]
        one.mean.fromlist(values)
        return
    whole = isfinite(sum(values)) and len(values) % fold == 0
    if whole and fold <= _WIDE:
        parts = [values[at::fold] for at in range(fold)]
        one.mean.fromlist([total / fold for total in map(sum, zip(*parts, strict=True))])
        one.low.fromlist(list(map(min, *parts)))
        one.high.fromlist(list(map(max, *parts)))
        return
    for at in range(0, len(values), fold):
        block = values[at : at + fold]
        total = sum(block)
        if not isfinite(total):
            block = [_told(one, value, rows + at // fold) for value in block]
            block = [value for value in block if not isnan(value)] or [nan]
            total = sum(block)
        one.mean.append(total / len(block))
        one.low.append(min(block))
        one.high.append(max(block))


def _told(one: Column, value: float, row: int) -> float:
    """NaN for what is no number; counted where it was written so."""
    if value in (inf, -inf):
        one.bad[row] = one.bad.get(row, 0) + 1
        return nan
    return value


def _halved(one: Column) -> tuple[array[float], array[float], array[float]]:
    """Mean, low, high of neighbours; the last row stays alone where they are odd."""
    mean = one.mean
    same = mean and mean[0] == mean[-1] and max(one.high) == min(one.low)
    if same and isfinite(sum(mean)):
        half = array("d", [mean[0]]) * -(-len(mean) // 2)  # it never changes
        return half, half[:], half[:]
    if isfinite(sum(mean)):
        odd = len(mean) // 2 * 2  # the last, where it is alone
        means = array("d", [(a + b) / 2 for a, b in _pairs(mean)]) + mean[odd:]
        if _rises(one.low) and _rises(one.high):  # steps, samples, the clock
            return means, one.low[::2], one.high[1::2] + one.high[odd:]
        least = array("d", [b if b < a else a for a, b in _pairs(one.low)])
        most = array("d", [b if b > a else a for a, b in _pairs(one.high)])
        return means, least + one.low[odd:], most + one.high[odd:]
    return (array("d", map(_mean, mean[::2], _second(mean))),
            array("d", map(_low, one.low[::2], _second(one.low))),
            array("d", map(_high, one.high[::2], _second(one.high))))  # fmt: skip


def _rises(values: array[float]) -> bool:
    return all(map(le, values, values[1:]))


def _pairs(values: array[float]) -> Iterable[tuple[float, float]]:
    return zip(values[::2], values[1::2], strict=False)


def _second(values: array[float]) -> Iterable[float]:
    return [*values[1::2], nan] if len(values) % 2 else values[1::2]


def _mean(one: float, two: float) -> float:
    if one != one or two != two:
        return two if one != one else one
    return one / 2 + two / 2


def _low(one: float, two: float) -> float:
    if one != one or two != two:
        return two if one != one else one
    return min(one, two)


def _high(one: float, two: float) -> float:
    if one != one or two != two:
        return two if one != one else one
    return max(one, two)
