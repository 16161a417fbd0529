"""The links of one host by themselves, from the lines of a bench (payload/wire)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.collectives import RdmaTest
from preflight.facts.wire import Wire, WireBetween, WireEnd, WireTest
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.nodesets import fold
from preflight.probes.collectives.derived import apart
from preflight.probes.collectives.lines import PROBE, Line, Told, said
from preflight.probes.collectives.perftest import perftest
from preflight.probes.collectives.wire_ends import (
    NO_LINE,
    ONE,
    TWO,
    end_of,
    link_of,
    share_of,
)

#: A test in which processors were busy for this share of the time was limited by them; the payload
#: compares ends by the same (payload/wire/ends.py).
_BOUND = 0.65
_LATENCY = "ib_write_lat"
_NO_END = Missing("exited", "no test between two hosts came to its end, or it was cut short")
_ALONE = Missing("not-applicable", "one host: its links to others take --hosts 'node[01-02]'")
_SLOW_END = Missing("not-applicable", "one end of each is slow with all: judged as wire.host")
_LED = Missing("not-applicable", "told by the host that led the others")
_LEAST = 3


def wire(told: Told) -> Known[Wire]:
    """What was told of this host."""
    site = next(iter(told.of["wire_site"]), None)
    if not told.plan.get("wire") and site is None:
        return Missing("not-asked", "needs --wire auto: the links without collectives")
    if site is None:
        lost = next((said(one) for one in told.of["gone"] + told.of["absent"]), "")
        return Missing(
            "exited", f"the bench did not come to its links: {lost or 'it was cut short'}"
        )
    many = len(told.plan.get("hosts") or ()) > 1
    if not site["tool"]:
        # One of those that were to be timed, or none is and nobody asked for more.
        return Missing("no-tool" if site["asked"] == "rdma" or many else "not-applicable",
                       str(site["why"]))  # fmt: skip
    behind = {str(one) for end in told.of["wire_end"] for one in end["peers_behind"]}
    host = str(site.get("of", ""))
    tests = tuple(_test(one, host, str(site["interface"]), behind) for one in told.of["wire"])
    ends = tuple(end_of(one, site, tests) for one in told.of["wire_end"])
    links = tuple(map(link_of, told.of["wire_link"]))
    return Wire(
        str(site["tool"]), str(site["why"]), float(site["loopback_gbits"]),
        apart(tests) or NO_LINE, ends or _without(told, _NO_END),
        links or _no_link(told, ends), _between(told, host),
        _loopback(str(site["tool"]), tests), _left(told),
        tuple(map(_adapter, site["nics"])), site["line"], PROBE,
    )  # fmt: skip


def _between(told: Told, host: str) -> Known[tuple[WireBetween, ...]]:
    """What the best end loses is lost between all of them, and told once."""
    hosts = [str(one) for one in told.plan.get("hosts") or ()]
    lost = next((one for one in told.of["wire_end"] if "lost_everywhere_percent" in one), None)
    if len(hosts) < 2:
        return _ALONE
    if hosts[0] != host:
        return _LED
    if lost is None:
        return NOT_IN_INPUT
    percent = float(lost["lost_everywhere_percent"])
    return (WireBetween(f"between {fold(hosts)}", percent, lost["line"], PROBE),)


def _left(told: Told) -> str:
    return next((f"{one['rounds']} of {one['of']} rounds were left out: they would take too long"
                 for one in told.of["wire_left"]), "")  # fmt: skip


def _adapter(one: Line) -> str:
    gid = "" if one["gid"] is None else f", GID index {one['gid']}"
    return f"{one['nic']} ({one['rate_gbits']:g} Gb/s, {one['layer']}{gid})"


def _without(told: Told, alone: Missing) -> Missing:
    """Why there is nothing to compare."""
    if len(told.plan.get("hosts") or ()) < 2:
        return _ALONE
    return alone


def _no_link(told: Told, ends: Sequence[WireEnd]) -> Missing:
    if ends and len(told.plan.get("hosts") or ()) < _LEAST:
        return TWO
    return _without(told, _SLOW_END if ends else _NO_END)


def _loopback(tool: str, tests: Sequence[WireTest]) -> Known[float]:
    if tool == "tcp":
        return Missing("not-applicable", "by TCP a host talks to itself without its adapters")
    mine = [one for one in tests if one.loopback]
    return share_of(mine) if any(one.together for one in mine) or not mine else ONE


def _test(one: Line, host: str, interface: str, behind: set[str]) -> WireTest:
    sender, receiver = str(one["from"]), str(one["to"])
    gbits = [float(each) for each in one.get("gbits", ())]
    # An adapter is named where it is this host's, or as the other's is.
    nic = str(one.get("nic") or interface)
    measures = {} if one.get("trouble") else _latency(one)
    trouble: Known[str] = str(one.get("trouble") or "none")
    peer = receiver if sender == host else sender
    if trouble != "none" and peer in behind:
        trouble = Missing(
            "not-applicable", f"{peer} is slow or fails with others too: judged there"
        )
    figure: Known[float] = float(one["median_gbits"]) if "median_gbits" in one else NO_LINE
    return WireTest(
        _name(one, nic, host), sender, receiver, str(one["tool"]), nic, int(one["rail"]),
        int(one["flows"]), str(one.get("memory", "host")), bool(one.get("together")),
        sender == receiver, figure, len(gbits) or int("median_gbits" in one),
        round(max(gbits) - min(gbits), 4) if gbits else NO_LINE,
        round(100 * one["again"] / one["sent"], 2) if one.get("sent") else NO_LINE,
        processor_bound=float(one.get("busy", 0.0)) >= _BOUND, trouble=trouble,
        line=one["line"], probe=PROBE, **measures,
    )  # fmt: skip


def _name(one: Line, nic: str, host: str) -> str:
    """mlx5_0 to h2, 4 flows, GPU 3."""
    sender, receiver = str(one["from"]), str(one["to"])
    way = "loopback" if sender == receiver else (
        f"to {receiver}" if sender == host else f"from {sender}"
    )  # fmt: skip
    flows = "latency" if "p50_us" in one or one["tool"] == _LATENCY else (
        f"{one['flows']} flow" if one["flows"] == 1 else f"{one['flows']} flows"
    )  # fmt: skip
    all_ = "both ways at once" if one["tool"] == "tcp" else "all adapters at once"
    parts = [f"{nic} {way}".strip(), flows, all_ if one.get("together") else "",
             "" if one.get("memory", "host") == "host" else str(one["memory"])]  # fmt: skip
    return ", ".join(filter(None, parts))


def _latency(one: Line) -> dict[str, Known[float]]:
    if "p50_us" in one:
        return {"p50_us": float(one["p50_us"]), "p99_us": float(one["p99_us"])}
    if one["tool"] == _LATENCY and "text" in one:
        (test, *_) = perftest(str(one["text"])).tests
        return {"p50_us": test.typical_us, "p99_us": test.p99_us}
    return {}


def rdma_of(told: Told) -> tuple[RdmaTest, ...]:
    """Tests of perftest by which an adapter is judged: alone, by itself and with the best of its
    peers. With others it may be the other end that is slow."""
    best: dict[tuple[str, str, int, str], Line] = {}
    for one in told.of["wire"]:
        if one.get("text") and not one.get("together") and not one.get("trouble"):
            kind = "loopback" if one["from"] == one["to"] else "pair"
            key = (str(one["nic"]), f"{one['tool']} {one['memory']} {kind}", int(one["flows"]), "")
            if key not in best or _figure(one) > _figure(best[key]):
                best[key] = one
    return tuple(_rdma(one) for one in best.values())


def _figure(one: Line) -> float:
    return float(one.get("median_gbits", 0.0))


def _rdma(one: Line) -> RdmaTest:
    try:
        (test, *_) = perftest(str(one["text"])).tests
    except ParseError as error:
        raise ValueError(f"the text of {one['tool']}: {error}") from error
    loopback = one["from"] == one["to"]
    words = [
        str(one["nic"]), "loopback" if loopback else f"to {one['to']}", test.verb, test.kind,
        f"of {one['flows']} queue pairs" if one["flows"] > 1 else "",
        "" if one["memory"] == "host" else f"of {one['memory']}",
    ]  # fmt: skip
    return replace(test, name=" ".join(filter(None, words)), loopback=loopback,
                   rate_gbits=float(one["rate_gbits"]), line=one["line"], probe=PROBE)  # fmt: skip
