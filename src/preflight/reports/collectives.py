"""What benchmarks of collectives and of RDMA measured, as tables, with what it is held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from preflight.expect.between import carriers
from preflight.expect.bound import Bound
from preflight.expect.collectives import EXCELLENT, collective_busbw, collective_rough
from preflight.expect.latency import collective_latency
from preflight.expect.rdma import rdma_gbits
from preflight.facts.collectives import Collective, RdmaTest, Side, SizeRow
from preflight.facts.host import Host
from preflight.model import Known, Missing, Result, Status
from preflight.units import format_bytes

Row = dict[str, Any]
_SIDES = (("out_of_place", ""), ("in_place", " in"))


def collective_tables(host: Host, results: Sequence[Result] = ()) -> tuple[dict[str, Any], ...]:
    """A table for each run that measured anything; `results`: what was judged of it."""
    runs = () if isinstance(host.collectives, Missing) else host.collectives
    judged = _judged(results)
    return tuple(
        {"table": _title(run), "host": host.name, "rows": [_row(one, run) for one in run.rows],
         "notes": list(_notes(host, run, judged))}
        for run in runs if run.rows
    )  # fmt: skip


def _title(run: Collective) -> str:
    """all_reduce: 16 ranks on 2 hosts, NVIDIA H100 80GB HBM3, by nccl-tests."""
    told = [] if isinstance(run.ranks, Missing) else [_counted(run.ranks, "rank")]
    if not isinstance(run.host_count, Missing):
        told.append(f"on {_counted(run.host_count, 'host')}")
    parts = [" ".join(told)] if told else []
    parts += [run.product] if isinstance(run.product, str) else []
    name = f"{run.name}: {', '.join(parts)}" if parts else run.name
    return f"{name}, by {run.tool}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _row(row: SizeRow, run: Collective) -> Row:
    told: Row = {"size": format_bytes(row.size_bytes)}
    for name, mark in _SIDES:
        side = getattr(row, name)
        if isinstance(side, Side):
            told |= {f"us{mark}": side.time_us, f"algbw{mark}": side.algbw_gbps,
                     f"busbw{mark}": side.busbw_gbps, f"#wrong{mark}": _wrong(side)}  # fmt: skip
        elif any(isinstance(getattr(one, name), Side) for one in run.rows):
            told |= dict.fromkeys([f"{one}{mark}" for one in ("us", "algbw", "busbw", "#wrong")])
    return told


def _wrong(side: Side) -> str:
    return "" if isinstance(side.wrong, Missing) else f"{side.wrong:g}"


def _notes(host: Host, run: Collective, judged: Judged) -> Iterator[str]:
    both = any(isinstance(row.in_place, Side) for row in run.rows)
    yield "GB/s of 1e9 bytes" + ("; in: in place" if both else "")
    if not isinstance(run.busbw_gbps, Missing) and not isinstance(run.at_bytes, Missing):
        reached = f"{run.busbw_gbps:g} GB/s at {format_bytes(run.at_bytes)}"
        found = judged.get(("collectives.busbw", run.name))
        yield f"{reached}: {_held(run.busbw_gbps, collective_busbw(host, run), found)}"
        yield from _without_link(host, run)
    elif not isinstance(run.rough_gbps, Missing) and not isinstance(run.rough_bytes, Missing):
        reached = f"{run.rough_gbps:g} GB/s at {format_bytes(run.rough_bytes)}"
        found = judged.get(("collectives.rough", run.name))
        yield f"{reached}: {_roughly(run.rough_gbps, collective_rough(host, run), found)}"
    if run.variables:
        yield f"variables of its ranks: {', '.join(run.variables)}"
    if not isinstance(run.small_us, Missing):
        found = judged.get(("collectives.latency", run.name))
        told = _within(run.small_us, collective_latency(host, run), found)
        yield f"8 B to 4 KiB: {run.small_us:g} us: {told}"
    for size, why in run.left_out:
        yield f"{format_bytes(size)} was not timed: {why}"
    if run.trouble:
        ranks = ", ".join(map(str, run.trouble_ranks))
        yield f"{run.trouble}{f' (told by rank {ranks})' if ranks else ''}"


def _without_link(host: Host, run: Collective) -> Iterator[str]:
    """The adapters for training that carry nothing, where several hosts took part."""
    ports = carriers(host)
    if run.host_count == 1 or isinstance(ports, Missing) or not ports.down:
        return
    count = len(ports.rates_gbits)
    yield f"without link: {', '.join(ports.down)} of {count} adapters for training: preflight topo"


Judged = Mapping[tuple[str, str], Result]


def _judged(results: Sequence[Result]) -> Judged:
    """By check and subject what was judged: by a user's threshold, where one was stated."""
    judged = (Status.PASS, Status.WARN, Status.FAIL)
    return {(one.check, one.subject): one for one in results if one.status in judged}


def _held(value: float, bound: Known[Bound], found: Result | None) -> str:
    """The share of the bound, and its arithmetic; a word of praise only for what passes."""
    if isinstance(bound, Missing):
        return _without(bound, found)
    share = value / bound.value
    praised = share >= EXCELLENT and (found is None or found.status is Status.PASS)
    word = ", excellent" if praised else ""
    return f"{share:.0%} of {bound.value:g}{word} ({bound.formula}){_missed(found)}"


def _roughly(value: float, bound: Known[Bound], found: Result | None) -> str:
    """The share of what latency and links give: too small a size for praise."""
    if isinstance(bound, Missing):
        return _without(bound, found)
    share = f"{value / bound.value:.0%} of {bound.value:g} ({bound.formula})"
    return f"{share}{_missed(found)}; closely judged is 1 GB and more"


def _within(small_us: float, bound: Known[Bound], found: Result | None) -> str:
    """How many times the bound a small message took, and its arithmetic."""
    if isinstance(bound, Missing):
        return _without(bound, found)
    return f"{small_us / bound.value:.1f} times {bound.value:g} ({bound.formula}){_missed(found)}"


def _without(bound: Missing, found: Result | None) -> str:
    """Of what no bound is known a threshold may have been stated."""
    if found is None:
        return f"held against nothing: {bound.text}"
    return f"{found.status.value}, expected {found.expected}; what is possible: {bound.text}"


def _missed(found: Result | None) -> str:
    if found is None or found.status is Status.PASS:
        return ""
    return f"; {found.status.value}, expected {found.expected.partition(' (')[0]}"


def rdma_tables(host: Host, results: Sequence[Result] = ()) -> tuple[dict[str, Any], ...]:
    """One table of all tests between two ports."""
    tests = () if isinstance(host.rdma_tests, Missing) else host.rdma_tests
    judged = _judged(results)
    rows = [_rdma_row(one) for one in tests if one.rows]
    if not rows:
        return ()
    notes = [note for one in tests for note in _rdma_notes(host, one, judged)]
    return ({"table": "RDMA (perftest)", "host": host.name, "rows": rows, "notes": notes},)


def _rdma_row(test: RdmaTest) -> Row:
    def told(value: Known[Any]) -> Any:
        return "" if isinstance(value, Missing) else value

    largest = test.rows[-1]
    return {
        "test": test.name, "link": told(test.link_layer), "MTU": told(test.mtu_bytes),
        "size": format_bytes(largest.size_bytes), "Gb/s": told(largest.average_gbits),
        "us, typical": told(test.typical_us), "us, 99 %": told(test.p99_us),
        "": "loopback" if test.loopback else "",
    }  # fmt: skip


def _rdma_notes(host: Host, test: RdmaTest, judged: Judged) -> Iterator[str]:
    if not isinstance(test.average_gbits, Missing):
        found = judged.get(("rdma.bandwidth", test.name))
        held = _held(test.average_gbits, rdma_gbits(host, test), found)
        yield f"{test.name} {test.average_gbits:g} Gb/s: {held}"
