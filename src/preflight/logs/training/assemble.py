"""Batches of lines to series and events, in the order of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from math import isfinite, nan

from preflight.facts.series import Series
from preflight.logs.training.decode import Columns, Days, Decoded, decoded, united, whose
from preflight.logs.training.events import Events, Pattern, event_of, pattern_of
from preflight.logs.training.finish import finished
from preflight.logs.training.layout import Layout, layout_of
from preflight.logs.training.learned import Learner
from preflight.logs.training.rows import MOST_VALUES, Rows
from preflight.logs.training.shape import shapes
from preflight.logs.training.text import Batch
from preflight.logs.training.told import tell

#: Shapes remembered; then all are forgotten and learned anew.
_MOST_SHAPES = 20_000
#: Series of one log: more ranks are left out.
_MOST_SERIES = 1_024
_LEAST_VALUES = 10_000

Known = Layout | Pattern | None


class Assembler:
    """One log being read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known: dict[bytes, Known] = {}
        self._rows: dict[tuple[str, int | None], Rows] = {}
        self._days: Days = {}
        self._bars: dict[float, dict[str, float]] = {}  # total -> where it stands
        self._learner = Learner()
        self._timer = ""
        self._step: float | None = None
        self.styled = False  # a known style was seen: none is learned
        self.events, self.told = Events(), dict[str, str]()

    def take(self, batch: Batch) -> None:
        """The next lines."""
        found, count = shapes(batch.joined)
        groups: dict[bytes, Sequence[int]] = {}
        whole = len(found) == 1
        if whole:
            groups[found[0]] = range(count)
        else:
            lists = defaultdict[bytes, list[int]](list)
            for at, shape in enumerate(found):
                lists[shape].append(at)
            groups.update(lists)
        told: list[tuple[int, Pattern]] = []
        parts: list[Decoded] = []
        for shape, where in groups.items():
            known = self._what(shape, batch, where)
            if isinstance(known, Pattern):
                told += [(at, known) for at in where]
            elif known is not None:
                joined = batch.joined if whole else None
                parts += decoded(known, batch.texts, where, joined, self._days)
        self._tell(batch, told, united(parts) if len(parts) > 1 else parts)

    def _what(self, shape: bytes, batch: Batch, where: Sequence[int]) -> Known:
        """What lines of the shape are; learned from the first of them."""
        if shape not in self._known:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            line = batch.texts[where[0]]
            if batch.cut and self._rows:
                return None  # the last line, cut within a figure perhaps
            layout = layout_of(line)
            self._known[shape] = layout or pattern_of(line)
            if layout is None:
                tell(line, self.told)
        known = self._known[shape]
        if known is not None or self.styled:
            return known
        return self._learn(shape, batch, where)

    def _learn(self, shape: bytes, batch: Batch, where: Sequence[int]) -> Known:
        """Lines of no known kind: whether they are steps after all. What was seen of them in
        batches before is told now."""
        for at in where:
            one = (batch.texts[at], batch.numbers[at], batch.offsets[at])
            if not self._learner.worth(shape, one[0]):
                return None
            layout = self._learner.take(shape, one)
            if layout is not None:
                self._known[shape] = layout
                self._before(layout, shape, batch.numbers[where[0]])
                return layout
        return None

    def _before(self, layout: Layout, shape: bytes, number: int) -> None:
        """Lines of the shape before the line `number`."""
        seen = [one for one in self._learner.seen.pop(shape).lines if one[1] < number]
        if not seen:
            return
        texts, numbers, offsets = ([one[which] for one in seen] for which in range(3))
        earlier = Batch(b"", texts, numbers, offsets)  # type: ignore[arg-type]
        for one in decoded(layout, earlier.texts, range(len(seen)), None, self._days):
            self._put(one, earlier)

    def _tell(
        self, batch: Batch, told: Sequence[tuple[int, Pattern]], parts: Sequence[Decoded]
    ) -> None:
        """Rows and events in the order of their lines."""
        if len(parts) == 1 and not told:
            self._put(parts[0], batch)
            return
        order = [(at, -1, which) for which, (at, _) in enumerate(told)]
        for which, one in enumerate(parts):
            order += [(at, which, j) for j, at in enumerate(one.at)]
        order.sort()
        for which, items in groupby(order, key=lambda one: one[1]):
            run = list(items)
            if which >= 0:
                self._put(parts[which].some(run[0][2], run[-1][2] + 1), batch)
                continue
            for at, _, index in run:
                self._event(told[index][1], batch.texts[at], batch.numbers[at])

    def _event(self, pattern: Pattern, line: bytes, number: int) -> None:
        if pattern.kind == "timer":
            found = pattern.tells.search(line.decode("latin-1"))
            self._timer = found["name"] if found else ""
            return
        when, rank = whose(line, self._days)
        self.events.add(
            pattern.kind, lambda: event_of(pattern, line, number, self._step, when, rank)
        )

    def _put(self, one: Decoded, batch: Batch) -> None:
        """Lines of one layout, one after the other, to the series that they are of."""
        form, columns = one.layout.style.form, one.columns
        if form == "tqdm":
            self._bar(one, batch)
            return
        if form == "ranked":
            self._ranked(one)
        if form == "bar":
            self._stepped(one)
        if columns.get("step"):
            self._step = columns["step"][-1]
        ranks = one.ranks
        if ranks is None or ranks.count(ranks[0]) == len(ranks):
            self._put_rank(one, ranks[0] if ranks else None, batch)
            return
        by_rank = defaultdict[int, list[int]](list)
        for index, rank in enumerate(ranks):
            by_rank[rank].append(index)
        for rank, mine in by_rank.items():
            self._put_rank(one.of(mine), rank, batch)

    def _put_rank(self, one: Decoded, rank: int | None, batch: Batch) -> None:
        style, columns = one.layout.style, one.columns
        self.styled = self.styled or style.name != "learned"
        rows = self._of(style.name, rank, adds=style.adds)
        if rows is None:
            return
        total = columns.pop("total", None)
        if total and isfinite(total[0]):
            rows.series.total_steps = rows.series.total_steps or int(total[0])
        rows.ways.update({name: way for name, way in style.ways.items() if name in columns})
        lines, offsets = _at(batch.numbers, one.at), _at(batch.offsets, one.at)
        if style.adds:
            for index, line in enumerate(lines):
                rows.add(row_of(columns, index), line, offsets[index])
        else:
            rows.many(columns, lines, offsets, by=f"{style.name} {style.mark!r}")

    def _of(self, style: str, rank: int | None, *, adds: bool = False) -> Rows | None:
        """The series of a rank. Bars, and learned styles, have their own."""
        kind = style if style in ("tqdm", "learned") else "steps"
        rows = self._rows.get((kind, rank))
        if rows is None:
            if len(self._rows) >= _MOST_SERIES:
                return None
            rows = self._rows[kind, rank] = Rows(self._source, style, rank)
            for one in self._rows.values():
                one.most_values = max(MOST_VALUES // len(self._rows), _LEAST_VALUES)
        elif not adds and (rows.step is None or rows.series.style == "deepspeed"):
            rows.series.style = style
        return rows

    def _bar(self, one: Decoded, batch: Batch) -> None:
        """Bars of tqdm: a series for each total, and where each stands."""
        columns = one.columns
        totals = columns.pop("total", [nan])
        if "step" not in columns or not isfinite(totals[-1]):
            return
        by_total = defaultdict[float, list[int]](list)
        for index, total in enumerate(totals):
            by_total[total].append(index)
        for total, mine in by_total.items():
            part = one.of(mine)
            self._bars[total] = {"total": total, **row_of(part.columns, -1)}
            if total == self._main_bar().get("total"):
                self._step = self._bars[total]["step"]
            rows = self._of("tqdm", int(total))
            if rows is not None:
                rows.series.total_steps = int(total)
                rows.ways["bar_s"] = "smoothed"
                lines, offsets = _at(batch.numbers, part.at), _at(batch.offsets, part.at)
                rows.many(part.columns, lines, offsets)

    def _stepped(self, one: Decoded) -> None:
        """Lines that leave the step, and its time, to the bar before them."""
        bar = self._main_bar()
        if bar and "step" not in one.columns:
            for name in bar.keys() - one.columns.keys():
                one.columns[name] = [bar[name]] * len(one.at)
        rows = self._of(one.layout.style.name, one.ranks[0] if one.ranks else None)
        if rows is not None:
            rows.ways["bar_s"] = "smoothed"

    def _main_bar(self) -> dict[str, float]:
        """The bar of the training: of evaluation there are others, shorter."""
        told = self.told.get("total_steps", "").replace(",", "")
        if told.isdecimal() and float(told) in self._bars:
            return self._bars[float(told)]
        return self._bars[max(self._bars)] if self._bars else {}

    def _ranked(self, one: Decoded) -> None:
        """A rank's time of the timer that was named last."""
        ranks, times = one.columns.pop("rank", []), one.columns.pop("ranked_s", [])
        for index, rank in enumerate(ranks):
            name = f"timer/{self._timer or 'unnamed'}.rank{int(rank)}"
            one.columns[name] = [nan] * len(ranks)
            one.columns[name][index] = times[index]

    def series(self) -> tuple[Series, ...]:
        """All of them; nothing more comes."""
        return finished(self._rows)


def row_of(columns: Columns, index: int) -> dict[str, float]:
    """One row; what is NaN in it, it does not have."""
    return {name: one[index] for name, one in columns.items() if one[index] == one[index]}


def _at(values: Sequence[int], at: Sequence[int]) -> Sequence[int]:
    return values[at.start : at.stop] if isinstance(at, range) else [values[one] for one in at]
