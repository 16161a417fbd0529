"""What the links of a host carry by themselves, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.expect.wire import wire_tcp_gbits
from preflight.facts.host import Host
from preflight.facts.wire import Wire, WireEnd, WireTest
from preflight.model import Known, Missing

Row = dict[str, Any]


def wire_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """The ends of this host, beside those of the others; then its tests."""
    wire = host.wire
    if isinstance(wire, Missing):
        return ()
    what = "TCP" if wire.tool == "tcp" else "RDMA"
    ends = () if isinstance(wire.ends, Missing) else wire.ends
    tests = () if isinstance(wire.tests, Missing) else wire.tests
    tables = []
    if ends:
        notes = [*_about(wire), *(note for one in ends for note in _held(host, one)),
                 *_limits(ends[0])]  # fmt: skip
        rows = [_end(one) for one in ends]
        title = f"links by {what}, with the best of the peers"
        tables.append({"table": title, "host": host.name, "rows": rows, "notes": notes})
    if tests:
        rows = [_test(one) for one in tests]
        notes = [
            "Gb/s of data; spread: from the least to the most of the repeats",
            *_again(wire),
            *(f"{one.name}: {one.trouble}" for one in tests if _failed(one)),
        ]
        title = f"tests of links by {what}"
        tables.append({"table": title, "host": host.name, "rows": rows, "notes": notes})
    return tuple(tables)


def _told(value: Known[Any]) -> Any:
    return "" if isinstance(value, Missing) else value


def _failed(test: WireTest) -> bool:
    return isinstance(test.trouble, str) and test.trouble != "none"


def _end(end: WireEnd) -> Row:
    lost = {"% lost": _told(end.lost_percent)} if end.tool == "tcp" else {}
    return {
        "end": end.name, "sends Gb/s": _told(end.sends_gbits),
        "receives Gb/s": _told(end.receives_gbits), "% slower": _told(end.slower_percent),
        "many/one": _told(end.flows_apart),
        **lost, "all at once": _told(end.together_share),
        "us": _told(end.latency_us),
    }  # fmt: skip


def _about(wire: Wire) -> Iterator[str]:
    if wire.left:
        yield wire.left
    if wire.why:
        yield f"not by RDMA: {wire.why}"
    if wire.tool == "rdma":
        yield f"adapter k with adapter k: {', '.join(wire.adapters)}; us: one way"
    elif wire.loopback_gbits:
        yield (
            f"{wire.loopback_gbits:g} Gb/s is what the processors of this host carry without its "
            "interface; us: there and back"
        )


def _limits(end: WireEnd) -> Iterator[str]:
    """What the bench itself went by."""
    if isinstance(end.behind_from_percent, Missing) or isinstance(end.bound_from_percent, Missing):
        return
    yield (
        f"nobody is held against an end that is {end.behind_from_percent:g} % behind or more; a "
        f"test that took {end.bound_from_percent:g} % or more of a processor was limited by it"
    )


def _again(wire: Wire) -> Iterator[str]:
    if wire.tool == "tcp":
        yield "% again: packets that were sent once more; of many flows that fill a link, some are"


def _held(host: Host, end: WireEnd) -> Iterator[str]:
    """What it is held against."""
    if isinstance(end.slower_percent, Missing):
        yield f"{end.name} is held against no other host: {end.slower_percent.text}"
    elif end.slower_percent >= 1:
        yield f"{end.name} is {end.slower_percent:g} % slower where it {end.slower_where}"
    if end.tool != "tcp":
        return
    bound = wire_tcp_gbits(host, end)
    if isinstance(bound, Missing):
        yield f"{end.name} is held against no rate: {bound.text}"
    elif isinstance(end.gbits, Missing):
        yield f"{end.name}: {end.gbits.text}; its rate is {bound.value:g} ({bound.formula})"
    else:
        share = end.gbits / bound.value
        yield f"{end.name} {end.gbits:g} Gb/s: {share:.0%} of {bound.value:g} ({bound.formula})"


def _test(test: WireTest) -> Row:
    least = ">= " if test.processor_bound and not isinstance(test.gbits, Missing) else ""
    again = {"% again": _told(test.again_percent)} if test.tool == "tcp" else {}
    return {
        "test": test.name, "Gb/s": f"{least}{_told(test.gbits)}",
        "spread": _told(test.spread_gbits), **again, "us": _told(test.p50_us),
        "us, 99 %": _told(test.p99_us),
    }  # fmt: skip
