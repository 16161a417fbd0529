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
#: From here on sound machines reach 70 % of what latency and links give (samples of A100 and H100).
ROUGH_BYTES = 64 << 20
_NO_SIZE = Missing("unreadable", "no size was measured")
_WHOLE = Missing("not-applicable", "the largest size is 1 GB or more, and judged as that")
_FEW_BYTES = Missing(
    "not-applicable", f"no size of {format_bytes(ROUGH_BYTES)} or more was measured"
)
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
    spike, where_spike = reversal(rows, small=True)
    apart, where_apart = sides_apart(rows)
    where = "; ".join(filter(None, (where_longer, where_spike, where_apart)))
    return Shape(name, longer, spike, apart, where, line, tool)


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
    """The worse side of the largest size, for a job waits for what is slower, and that size;
    missing below 1 GB."""
    row = _last(rows)
    if row is None:
        return _NO_SIZE, _NO_SIZE
    if row.size_bytes >= JUDGED_BYTES:
        return _worse(row)
    text = f"the largest size is {format_bytes(row.size_bytes)}; judged is 1 GB and more: {again}"
    # What is judged roughly is judged: it was no omission to ask for no more.
    rough = row.size_bytes >= ROUGH_BYTES
    missing = Missing("not-applicable" if rough else "not-asked", text)
    return missing, missing


def rough(rows: Sequence[SizeRow]) -> tuple[Known[float], Known[int]]:
    """The same where the largest size is below 1 GB, and large enough to tell what is grossly slow;
    else missing."""
    row = _last(rows)
    if row is None:
        return _NO_SIZE, _NO_SIZE
    if ROUGH_BYTES <= row.size_bytes < JUDGED_BYTES:
        return _worse(row)
    return (_WHOLE, _WHOLE) if row.size_bytes >= JUDGED_BYTES else (_FEW_BYTES, _FEW_BYTES)


def _last(rows: Sequence[SizeRow]) -> SizeRow | None:
    return max((one for one in rows if sides(one)), key=lambda one: one.size_bytes, default=None)


def _worse(row: SizeRow) -> tuple[float, int]:
    return min(one.busbw_gbps for one in sides(row)), row.size_bytes


def small(rows: Sequence[SizeRow], again: str) -> Known[float]:
    """Microseconds of small messages: the median of these sizes, each by its slower side."""
    times = [
        max(one.time_us for one in sides(row))
        for row in rows
        if sides(row) and SMALL_BYTES[0] <= row.size_bytes <= SMALL_BYTES[1]
    ]
    if times:
        return round(median(times), 2)
    return Missing("not-asked", f"no size from 8 B to 4 KiB was measured: {again}")


def reversal(rows: Sequence[SizeRow], *, small: bool = False) -> tuple[Known[float], str]:
    """By how much a size takes longer than a larger one, the worst of both sides, and where: of
    sizes from 64 KiB on, or of the `small` ones up to it."""
    worst = 0.0, ""
    fit = [row for row in rows if row.size_bytes == _ORDER_BYTES
           or (row.size_bytes < _ORDER_BYTES) == small]  # fmt: skip
    for name in ("out_of_place", "in_place"):
        worst = max([worst, *_reversals(fit, name)])
    few = Missing("not-asked", f"it takes two sizes {'up to' if small else 'from'} 64 KiB")
    return (round(worst[0], 2), worst[1]) if worst[0] else (few, "")


def _reversals(rows: Sequence[SizeRow], name: str) -> Iterator[tuple[float, str]]:
    told = [
        (row.size_bytes, one.time_us) for row in rows if isinstance(one := getattr(row, name), Side)
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
