"""What a table of sizes tells as a whole: of which collective and of how many ranks it is, where
larger messages are quicker than smaller ones, what it reached in the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import TypeVar

from msgspec.structs import replace

from preflight.facts.collectives import Collective, RdmaTest, Shape, Side, SizeRow
from preflight.facts.wire import WireTest
from preflight.model import Known, Missing
from preflight.units import format_bytes

#: From here on bandwidth counts, not latency; and where the sides and the order of times do.
JUDGED_BYTES, _APART_BYTES, _ORDER_BYTES = 1_000_000_000, 1 << 20, 1 << 16
#: Where only the number of steps counts.
SMALL_BYTES = (8, 4096)
#: A number that two decimals give this well tells the ranks.
_SURE = 0.3
#: -1: there is none.
_ROOT = re.compile(r"-?[0-9]{1,7}")
_MANY = Missing("not-in-input", "the input does not tell how many ranks it had")


def numbered(found: Iterable[Collective]) -> tuple[Collective, ...]:
    """The runs, each by a name of its own: the second of a collective is its run 2."""
    seen: Counter[str] = Counter()
    named = []
    for one in found:
        name = one.name.partition(", run ")[0]
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}, run {seen[name]}"
        shape = one.shape
        shape = shape if isinstance(shape, Missing) else replace(shape, name=name)
        named.append(replace(one, name=name, shape=shape))
    return tuple(named)


Test = TypeVar("Test", RdmaTest, WireTest)


def apart(tests: Iterable[Test]) -> tuple[Test, ...]:
    """The tests of links, each by a name of its own: the second of a name is its 2."""
    seen: Counter[str] = Counter()
    named = []
    for one in tests:
        seen[one.name] += 1
        again = f"{one.name}, {seen[one.name]}" if seen[one.name] > 1 else one.name
        named.append(replace(one, name=again))
    return tuple(named)


def shape_of(rows: Sequence[SizeRow], name: str, line: int, tool: str) -> Shape:
    """How times go with sizes."""
    longer, where_longer = reversal(rows)
    apart, where_apart = sides_apart(rows)
    where = "; ".join(filter(None, (where_longer, where_apart)))
    return Shape(name, longer, apart, where, line, tool)


def sides(row: SizeRow) -> list[Side]:
    """What was measured of a size."""
    return [one for one in (row.out_of_place, row.in_place) if isinstance(one, Side)]


def factor(rows: Sequence[SizeRow]) -> tuple[float, float] | None:
    """Bus bandwidth over that of the algorithm, and how far rounding may have moved it."""
    told = [one for row in rows for one in sides(row) if one.algbw_gbps]
    best = max(told, key=lambda one: one.algbw_gbps, default=None)
    if best is None:
        return None
    ratio = best.busbw_gbps / best.algbw_gbps
    return ratio, 0.005 * (1 + ratio) / best.algbw_gbps


def kind_of(rows: Sequence[SizeRow], columns: Sequence[str], middle: Sequence[str]) -> str:
    """The collective, by what stands between type and times and by the factor between both
    bandwidths (nccl-tests, doc/PERFORMANCE.md); empty where these do not tell."""
    found = factor(rows)
    if found is None:
        return ""
    ratio, unsure = found
    if not ratio:
        return ""  # of one rank
    if not middle:  # before 2.13 alltoall left the column empty, and all_gather had none
        return "alltoall" if "redop" in columns else "all_gather"
    roots = [int(one) for one in middle if _ROOT.fullmatch(one)]
    redop = next((one for one in middle if not _ROOT.fullmatch(one)), "none")
    root = roots[0] if roots else -1
    if root >= 0:
        return "broadcast" if redop == "none" else "reduce"
    if redop == "none":
        return "sendrecv" if abs(ratio - 1) <= unsure else "all_gather or alltoall"
    return "all_reduce" if ratio >= 1 - unsure else "reduce_scatter"


def ranks_of(rows: Sequence[SizeRow], collective: str) -> Known[int]:
    """How many ranks there were, by that factor: 2(n-1)/n of all_reduce, (n-1)/n of others."""
    found = factor(rows)
    scale = {"all_reduce": 2.0, "broadcast": 0.0, "reduce": 0.0, "sendrecv": 0.0}.get(
        collective, 1.0
    )
    if found is None or not scale:
        return _MANY
    ratio, unsure = found
    if not ratio:
        return 1
    rest = 1 - ratio / scale
    if rest <= 0 or unsure / scale / rest**2 > _SURE:
        return _MANY
    return round(1 / rest)


def largest(rows: Sequence[SizeRow], again: str) -> tuple[Known[float], Known[int]]:
    """The better side of the largest size, and that size; missing below 1 GB."""
    row = max((one for one in rows if sides(one)), key=lambda one: one.size_bytes, default=None)
    if row is None:
        missing = Missing("unreadable", "no size was measured")
        return missing, missing
    if row.size_bytes < JUDGED_BYTES:
        size = format_bytes(row.size_bytes)
        missing = Missing(
            "not-asked", f"the largest size is {size}; judged is 1 GB and more: {again}"
        )
        return missing, missing
    return max(one.busbw_gbps for one in sides(row)), row.size_bytes


def small(rows: Sequence[SizeRow], again: str) -> Known[float]:
    """Microseconds of small messages: the median of these sizes, each by its quicker side."""
    times = [
        min(one.time_us for one in sides(row))
        for row in rows
        if sides(row) and SMALL_BYTES[0] <= row.size_bytes <= SMALL_BYTES[1]
    ]
    if times:
        return round(median(times), 2)
    return Missing("not-asked", f"no size from 8 B to 4 KiB was measured: {again}")


def reversal(rows: Sequence[SizeRow]) -> tuple[Known[float], str]:
    """By how much a size takes longer than a larger one, the worst of both sides, and where."""
    worst = 0.0, ""
    for name in ("out_of_place", "in_place"):
        worst = max([worst, *_reversals(rows, name)])
    few = Missing("not-asked", "it takes two sizes from 64 KiB on")
    return (round(worst[0], 2), worst[1]) if worst[0] else (few, "")


def _reversals(rows: Sequence[SizeRow], name: str) -> Iterator[tuple[float, str]]:
    told = [
        (row.size_bytes, one.time_us)
        for row in rows
        if isinstance(one := getattr(row, name), Side) and row.size_bytes >= _ORDER_BYTES
    ]
    told.sort()
    for at, (size, time_us) in enumerate(told[:-1]):
        later, least_us = min(told[at + 1 :], key=lambda one: one[1])
        if least_us > 0:
            words = name.replace("_", " ")
            shown = f"{words}: {format_bytes(size)} take {time_us:,.0f} us"
            yield time_us / least_us, f"{shown}, {format_bytes(later)} {least_us:,.0f} us"


def sides_apart(rows: Sequence[SizeRow]) -> tuple[Known[float], str]:
    """The longer of both sides over the shorter, the worst size from 1 MiB on, and where."""
    worst = 0.0, ""
    for row in rows:
        out, inside = row.out_of_place, row.in_place
        if isinstance(out, Missing) or isinstance(inside, Missing):
            continue
        less = min(out.time_us, inside.time_us)
        if row.size_bytes >= _APART_BYTES and less > 0:
            size = format_bytes(row.size_bytes)
            shown = f"{size}: {out.time_us:,.0f} us out of place, {inside.time_us:,.0f} us in place"
            worst = max(worst, (max(out.time_us, inside.time_us) / less, shown))
    few = Missing("not-asked", "it takes a size from 1 MiB on with both sides")
    return (round(worst[0], 2), worst[1]) if worst[0] else (few, "")
