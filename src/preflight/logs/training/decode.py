"""Lines of one shape to columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isfinite, nan

from msgspec import Struct

from preflight.logs.training.clock import clock_of, times_at
from preflight.logs.training.layout import Layout, layout_of, rank_figure
from preflight.logs.training.shape import column, figures

Days = dict[tuple[str, ...], float]
Columns = dict[str, list[float]]


class Decoded(Struct):
    """Lines `at` of a batch, in order: their columns, and the rank that wrote each."""

    layout: Layout
    at: Sequence[int]
    columns: Columns
    ranks: list[int] | None = None

    def some(self, first: int, last: int) -> Decoded:
        """Lines first to last, counted in `at`."""
        if first == 0 and last == len(self.at):
            return self
        ranks = None if self.ranks is None else self.ranks[first:last]
        columns = {name: one[first:last] for name, one in self.columns.items()}
        return Decoded(self.layout, self.at[first:last], columns, ranks)

    def of(self, places: Sequence[int]) -> Decoded:
        """Lines at these places, counted in `at`."""
        columns = {name: [one[at] for at in places] for name, one in self.columns.items()}
        return Decoded(self.layout, [self.at[one] for one in places], columns)


def decoded(
    layout: Layout, texts: Sequence[bytes], at: Sequence[int], joined: bytes | None, days: Days
) -> Iterator[Decoded]:
    """Columns of lines of a shape (`joined`, where they are all of the batch); line by line where
    they are not all as the first was."""
    mine = b"\n".join([texts[one] for one in at]) + b"\n" if joined is None else joined
    try:
        yield _decode(layout, mine, at, days)
    except ValueError:
        for one in at:
            own = layout_of(texts[one])
            if own is not None:
                yield from _alone(own, texts[one], one, days)


def _alone(layout: Layout, line: bytes, at: int, days: Days) -> Iterator[Decoded]:
    try:
        yield _decode(layout, line + b"\n", [at], days)
    except ValueError:
        return


def _decode(layout: Layout, joined: bytes, at: Sequence[int], days: Days) -> Decoded:
    """ValueError where figures are missing, or are none."""
    found, width = figures(joined), layout.width
    if len(found) != width * len(at):
        raise ValueError("lines of one shape with other figures")
    columns = {one.name: column(one, found, width) for one in layout.places}
    for name, value in layout.constants.items():
        columns[name] = [value if isfinite(value) else inf] * len(at)
    if layout.clock is not None:
        columns["time_s"] = times_at(layout.clock, found, width, days)
    ranks = None
    if layout.rank is not None:
        ranks = [int(one) for one in found[layout.rank :: width]]
    return Decoded(layout, at, columns, ranks)


def united(parts: Sequence[Decoded]) -> list[Decoded]:
    """Lines of one style that come in several shapes (an exponent in one, a nan in another) as one,
    in the order of the lines."""
    by_style: dict[tuple[str, bytes, bool], list[Decoded]] = {}
    for one in parts:
        style = one.layout.style
        by_style.setdefault((style.name, style.mark, one.ranks is None), []).append(one)
    return [
        one for mine in by_style.values()
        for one in ([_one(mine)] if len(mine) > 1 and not _apart(mine[0]) else mine)
    ]  # fmt: skip


def _apart(one: Decoded) -> bool:
    """What belongs to the row before says it by its shape alone: a timer, a line of many."""
    return one.layout.style.adds or one.layout.style.grammar == "none"


def _one(parts: Sequence[Decoded]) -> Decoded:
    order = sorted((at, which, j) for which, one in enumerate(parts) for j, at in enumerate(one.at))
    place = {(which, j): index for index, (_, which, j) in enumerate(order)}
    columns: Columns = {}
    for which, one in enumerate(parts):
        where = [place[which, j] for j in range(len(one.at))]
        for name, values in one.columns.items():
            whole = columns.setdefault(name, [nan] * len(order))
            for at, value in zip(where, values, strict=True):
                whole[at] = value
    ranks = None
    if parts[0].ranks is not None:
        ranks = [(parts[which].ranks or [])[j] for _, which, j in order]
    return Decoded(parts[0].layout, [at for at, _, _ in order], columns, ranks)


def whose(line: bytes, days: Days) -> tuple[float | None, int | None]:
    """When a line was written, and by which rank, where it says so."""
    clock, found = clock_of(line), figures(line)
    when = times_at(clock, found, len(found), days)[0] if clock else None
    at = rank_figure(line, line.decode("latin-1"))
    rank = None if at is None or not found[at].isdecimal() else int(found[at])
    return when, rank
