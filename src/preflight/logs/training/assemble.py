"""Batches of lines to series and events, in the order of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf, isfinite, nan

from msgspec import Struct, field

from preflight.facts.series import Series
from preflight.logs.training.clock import times_at
from preflight.logs.training.events import Events, Pattern, event_of, pattern_of
from preflight.logs.training.layout import Layout, layout_of
from preflight.logs.training.learned import Learner
from preflight.logs.training.rows import Rows
from preflight.logs.training.shape import column, figures, shapes
from preflight.logs.training.text import Batch
from preflight.logs.training.told import tell

#: Shapes remembered; then all are forgotten and learned anew.
_MOST_SHAPES = 20_000
#: Series of one log: more ranks are left out.
_MOST_SERIES = 1_024

Known = Layout | Pattern | None


class Decoded(Struct):
    """Lines of one layout: their columns."""

    layout: Layout
    columns: dict[str, list[float]]
    ranks: list[int] | None = None


class Assembler:
    """One log being read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known: dict[bytes, Known] = {}
        self._rows: dict[tuple[str, int | None], Rows] = {}
        self._days: dict[tuple[str, ...], float] = {}
        self._bars: dict[float, dict[str, float]] = {}  # total -> where it stands
        self._learner = Learner()
        self._timer = ""
        self._step: float | None = None
        self.events, self.told = Events(), dict[str, str]()
        self.unread: dict[str, str] = {}

    def take(self, batch: Batch) -> None:
        """The next lines."""
        joined = batch.joined
        found = shapes(joined)
        first = found[0] if found else b""
        if found and found.count(first) == len(found):
            groups = {first: list(range(len(found)))}
        else:
            groups = defaultdict(list)
            for at, shape in enumerate(found):
                groups[shape].append(at)
        texts = joined.split(b"\n")
        told: list[tuple[int, Known, Decoded | None, int]] = []
        runs: list[tuple[Decoded, list[int]]] = []
        for shape, at in groups.items():
            known = self._what(shape, [texts[one] for one in at[:1]][0], batch, at[0])
            if known is None and shape in self._learner.seen:
                known = self._learn(shape, texts, batch, at[1:])
            if isinstance(known, Pattern):
                told += [(one, known, None, 0) for one in at]
            elif known is not None:
                for decoded, mine in self._decoded(known, texts, at, joined):
                    runs.append((decoded, mine))
        self._tell(texts, batch, told, runs)

    def _what(self, shape: bytes, line: bytes, batch: Batch, at: int) -> Known:
        """What lines of the shape are; learned from the first of them."""
        if shape in self._known:
            return self._known[shape]
        if len(self._known) >= _MOST_SHAPES:
            self._known.clear()
        known: Known = layout_of(line) or pattern_of(line)
        tell(line, self.told)
        self._known[shape] = known
        if known is None:
            self._learn(shape, [line], batch, [at], alone=True)
        return known

    def _learn(
        self, shape: bytes, texts: Sequence[bytes], batch: Batch, at: Sequence[int], *,
        alone: bool = False,
    ) -> Known:  # fmt: skip
        """Lines of no known kind: whether they are steps after all. What was seen of them before
        is told now."""
        for one in at:
            line = texts[0] if alone else texts[one]
            layout = self._learner.take(shape, line, batch.numbers[one], batch.offsets[one])
            if layout is not None:
                self._known[shape] = layout
                seen = self._learner.seen.pop(shape).lines[:-1]
                before = [text for text, _, _ in seen]
                joined = b"\n".join(before) + b"\n"
                for decoded, mine in self._decoded(layout, before, list(range(len(seen))), joined):
                    self._put(decoded, mine, [n for _, n, _ in seen], [o for _, _, o in seen])
                return layout
        return None

    def _decoded(
        self, layout: Layout, texts: Sequence[bytes], at: list[int], joined: bytes
    ) -> Iterator[tuple[Decoded, list[int]]]:
        """Columns of lines of a shape; line by line where one is not as the first was."""
        mine = joined if len(at) == len(texts) - (not texts[-1]) else (
            b"\n".join([texts[one] for one in at]) + b"\n")  # fmt: skip
        try:
            yield decode(layout, mine, len(at), self._days), at
            return
        except ValueError:
            if len(at) == 1:
                return
        for one in at:
            own = layout_of(texts[one])
            if own is not None:
                yield from self._decoded(own, [texts[one]], [0], texts[one] + b"\n") if False else (
                    (decoded, [one]) for decoded, _ in
                    self._decoded(own, [texts[one]], [0], texts[one] + b"\n"))  # fmt: skip

    def _tell(
        self, texts: Sequence[bytes], batch: Batch, told: list[tuple[int, Known, Decoded | None, int]],
        runs: list[tuple[Decoded, list[int]]],
    ) -> None:  # fmt: skip
        """Rows and events in the order of their lines."""
        if len(runs) == 1 and not told:
            decoded, at = runs[0]
            self._put(decoded, at, batch.numbers, batch.offsets)
            return
        order = [(one, -1, index) for index, (one, _, _, _) in enumerate(told)]
        for index, (_, at) in enumerate(runs):
            order += [(one, index, j) for j, one in enumerate(at)]
        order.sort()
        for index, items in groupby(order, key=lambda one: one[1]):
            if index < 0:
                for at, _, which in items:
                    self._event(told[which][1], texts[at], batch.numbers[at])
                continue
            decoded, _ = runs[index]
            some = list(items)
            first, last = some[0][2], some[-1][2] + 1
            part = decoded if last - first == len(runs[index][1]) else _part(decoded, first, last)
            self._put(part, [one for one, _, _ in some], batch.numbers, batch.offsets)

    def _event(self, pattern: Known, line: bytes, number: int) -> None:
        if isinstance(pattern, Pattern):
            when, rank = whose(line, self._days)
            self.events.add(
                pattern.kind, lambda: event_of(pattern, line, number, self._step, when, rank)
            )

    def _put(
        self, decoded: Decoded, at: Sequence[int], numbers: Sequence[int], offsets: Sequence[int]
    ) -> None:
        """Lines of one layout, one after the other, to the series that they are of."""
        style = decoded.layout.style
        lines, starts = [numbers[one] for one in at], [offsets[one] for one in at]
        columns = decoded.columns
        if style.form == "bar":
            self._bar(decoded, lines, starts)
            return
        if style.form == "ranked":
            self._ranked(columns, lines, starts)
            return
        if columns.get("step"):
            self._step = columns["step"][-1]
        if decoded.ranks is None or len(set(decoded.ranks)) == 1:
            rank = decoded.ranks[0] if decoded.ranks else None
            self._put_rank(decoded.layout, rank, columns, lines, starts)
            return
        by_rank: dict[int, list[int]] = defaultdict(list)
        for index, rank in enumerate(decoded.ranks):
            by_rank[rank].append(index)
        for rank, mine in by_rank.items():
            part = {name: [one[i] for i in mine] for name, one in columns.items()}
            self._put_rank(decoded.layout, rank, part, [lines[i] for i in mine],
                           [starts[i] for i in mine])  # fmt: skip

    def _put_rank(
        self, layout: Layout, rank: int | None, columns: dict[str, list[float]],
        lines: Sequence[int], starts: Sequence[int],
    ) -> None:  # fmt: skip
        rows = self._of(layout.style.name, rank, adds=layout.style.adds)
        if rows is None:
            return
        total = columns.pop("total", None)
        if total and rows.series.total_steps is None:
            rows.series.total_steps = int(total[0])
        rows.ways.update({k: v for k, v in layout.style.ways.items() if k in columns})
        if layout.style.adds:
            for index, line in enumerate(lines):
                rows.add({k: one[index] for k, one in columns.items()}, line, starts[index])
        else:
            rows.many(columns, lines, starts, by=f"{layout.style.name} {layout.style.mark!r}")

    def _of(self, style: str, rank: int | None, *, adds: bool = False) -> Rows | None:
        """The series of a rank. Bars, and learned styles, have their own."""
        kind = style if style in ("tqdm", "learned") else "steps"
        rows = self._rows.get((kind, rank))
        if rows is None:
            if len(self._rows) >= _MOST_SERIES:
                return None
            rows = self._rows[kind, rank] = Rows(self._source, style, rank)
        elif not adds and (rows.step is None or rows.series.style == "deepspeed"):
            rows.series.style = style
        return rows

    def _bar(self, decoded: Decoded, lines: Sequence[int], starts: Sequence[int]) -> None:
        """Bars of tqdm, and lines behind them that need their step."""
        columns = decoded.columns
        if decoded.layout.style.name == "tqdm":
            if "step" not in columns:
                return
            total = columns.pop("total", [nan])[-1]
            self._bars[total] = {name: one[-1] for name, one in columns.items()}
            rows = self._of("tqdm", int(total) if isfinite(total) else None)
            if rows is not None:
                rows.series.total_steps = int(total) if isfinite(total) else None
                rows.ways["bar_s"] = "smoothed"
                rows.many(columns, lines, starts)
            return
        known = self._main_bar()
        if known and "step" not in columns:
            for name in ("step", "elapsed_s", "bar_s"):
                if name in known and name not in columns:
                    columns[name] = [known[name]] * len(lines)
        if columns.get("step"):
            self._step = columns["step"][-1]
        rank = decoded.ranks[0] if decoded.ranks else None
        self._put_rank(decoded.layout, rank, columns, lines, starts)
        rows = self._of("hf-trainer", rank)
        if rows is not None:
            rows.ways["bar_s"] = "smoothed"

    def _main_bar(self) -> dict[str, float]:
        """The bar of the training: of evaluation there are others, shorter."""
        told = self.told.get("total_steps", "").replace(",", "")
        if told.isdecimal() and float(told) in self._bars:
            return self._bars[float(told)]
        return self._bars[max(self._bars, key=lambda one: one if one == one else -1)] if self._bars else {}

    def _ranked(
        self, columns: dict[str, list[float]], lines: Sequence[int], starts: Sequence[int]
    ) -> None:
        rows = self._of("megatron", None, adds=True)
        if rows is None or not {"rank", "ranked_s"} <= columns.keys():
            return
        for index, line in enumerate(lines):
            name = f"timer/{self._timer or 'unnamed'}.rank{int(columns['rank'][index])}"
            rows.add({name: columns["ranked_s"][index]}, line, starts[index])

    def series(self) -> tuple[Series, ...]:
        """All of them: bars only where nothing else tells of steps."""
        done = {key: rows.done() for key, rows in self._rows.items()}
        done = {key: one for key, one in done.items() if one.lines}
        for kind in ("steps", "learned", "tqdm"):
            mine = [one for (which, _), one in done.items() if which == kind]
            if mine:
                return tuple(_chosen(kind, mine))
        return ()


def _chosen(kind: str, found: list[Series]) -> list[Series]:
    if kind == "tqdm":
        best = max(found, key=lambda one: (one.total_steps or 0, one.lines))
        best.rank = None
        if "bar_s" in best.columns and "step_s" not in best.columns:
            best.columns["step_s"] = best.columns.pop("bar_s")
        return [best]
    for one in found:
        if "bar_s" in one.columns and "step_s" not in one.columns:
            one.columns["step_s"] = one.columns.pop("bar_s")
        for name in ("forward", "backward"):
            micro = f"timer/{name[0]}wd_microstep"
            if micro in one.columns and f"{name}_s" not in one.columns:
                one.columns[f"{name}_s"] = one.columns[micro]
    if len(found) > 1:
        first = found[0]
        if all(same(first, one) for one in found[1:]):
            found = [first]
    if len(found) == 1:
        found[0].rank = None
    return found


def same(one: Series, two: Series) -> bool:
    """Whether two ranks told the same, but for when."""
    if one.columns.keys() != two.columns.keys() or len(one.line) != len(two.line):
        return False
    return all(
        a == b or (a != a and b != b)
        for name, column in one.columns.items() if name != "time_s"
        for a, b in zip(column.mean, two.columns[name].mean, strict=True)
    )  # fmt: skip


def _part(decoded: Decoded, first: int, last: int) -> Decoded:
    ranks = None if decoded.ranks is None else decoded.ranks[first:last]
    return Decoded(decoded.layout, {k: v[first:last] for k, v in decoded.columns.items()}, ranks)


def decode(
    layout: Layout, joined: bytes, count: int, days: dict[tuple[str, ...], float]
) -> Decoded:
    """The columns of `count` lines of a layout; ValueError where they are not all alike."""
    found = figures(joined)
    width = layout.width
    if len(found) != width * count:
        raise ValueError("lines of one shape with other figures")
    columns = {one.name: column(one, found, width) for one in layout.places}
    for name, value in layout.constants.items():
        columns[name] = [inf if not isfinite(value) else value] * count
    if layout.clock is not None:
        columns["time_s"] = times_at(layout.clock, found, width, days)
    ranks = None
    if layout.rank is not None:
        ranks = [int(one) for one in found[layout.rank :: width]]
    return Decoded(layout, columns, ranks)


def whose(line: bytes, days: dict[tuple[str, ...], float]) -> tuple[float | None, int | None]:
    """When a line was written, and by which rank, where it says so."""
    from preflight.logs.training.clock import clock_of
    from preflight.logs.training.layout import rank_figure

    clock = clock_of(line)
    found = figures(line)
    when = times_at(clock, found, len(found), days)[0] if clock else None
    at = rank_figure(line, line.decode("latin-1"))
    try:
        return when, None if at is None else int(found[at])
    except ValueError:
        return when, None
