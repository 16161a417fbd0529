"""The links of one host by themselves, from the lines of a bench (payload/wire)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.collectives import RdmaTest
from preflight.facts.wire import Wire, WireEnd, WireLink, WireTest
from preflight.model import Known, Missing
from preflight.probes.collectives.lines import PROBE, Line, Told, said
from preflight.probes.collectives.perftest import perftest

#: A test in which processors were busy for this share of the time was limited by them; the payload
#: compares ends by the same (payload/wire/ends.py).
_BOUND = 0.65
_LATENCY = "ib_write_lat"
_NO_LINE = Missing("unreadable", "no test of that kind came to its end")
_NO_END = Missing("exited", "no test between two hosts came to its end, or it was cut short")
_ALONE = Missing("not-applicable", "one host: its links to others take --hosts 'node[01-02]'")
_ONE = Missing("not-applicable", "one adapter")
_SLOW_END = Missing("not-applicable", "one end of each is slow with all: judged as wire.host")
_LEAST = 3
_TWO = Missing("not-applicable", "of two hosts neither can be told from the other; it takes three")
_BY_PROCESSORS = Missing(
    "not-applicable", "processors were the limit: the link carries what was measured, or more"
)


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
    ends = tuple(_end(one, site, tests) for one in told.of["wire_end"])
    links = tuple(map(_link, told.of["wire_link"]))
    return Wire(
        str(site["tool"]), str(site["why"]), float(site["loopback_gbits"]),
        _numbered(tests) or _NO_LINE, ends or _without(told, _NO_END),
        links or _no_link(told, ends),
        _loopback(str(site["tool"]), tests), tuple(map(_adapter, site["nics"])), site["line"],
        PROBE,
    )  # fmt: skip


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
        return _TWO
    return _without(told, _SLOW_END if ends else _NO_END)


def _loopback(tool: str, tests: Sequence[WireTest]) -> Known[float]:
    if tool == "tcp":
        return Missing("not-applicable", "by TCP a host talks to itself without its adapters")
    mine = [one for one in tests if one.loopback]
    return _share(mine) if any(one.together for one in mine) or not mine else _ONE


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
    figure: Known[float] = float(one["median_gbits"]) if "median_gbits" in one else _NO_LINE
    return WireTest(
        _name(one, nic, host), sender, receiver, str(one["tool"]), nic, int(one["rail"]),
        int(one["flows"]), str(one.get("memory", "host")), bool(one.get("together")),
        sender == receiver, figure, len(gbits) or int("median_gbits" in one),
        round(max(gbits) - min(gbits), 4) if gbits else _NO_LINE,
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


def _numbered(tests: Sequence[WireTest]) -> tuple[WireTest, ...]:
    """Each by a name of its own."""
    seen: dict[str, int] = defaultdict(int)
    named = []
    for one in tests:
        seen[one.name] += 1
        again = f"{one.name}, {seen[one.name]}" if seen[one.name] > 1 else one.name
        named.append(replace(one, name=again))
    return tuple(named)


def _end(one: Line, site: Line, tests: Sequence[WireTest]) -> WireEnd:
    host, tool, rail = str(one["of"]), str(one["tool"]), int(one["rail"])
    rates = {str(key): float(gbits) for key, gbits in one["gbits"].items()}
    bound = set(map(str, one["bound"]))
    mine = [test for test in tests if test.rail == rail and not test.loopback]
    ways = {way: _best(rates, way) for way in ("sends", "receives")}
    slower = min(filter(None, ways.values()), key=lambda key: rates[key], default="")
    pair = [
        [test for test in mine if peer in (test.sender, test.receiver)]
        for peer in {test.receiver if test.sender == host else test.sender for test in mine}
    ]
    shares = [share for each in pair if not isinstance(share := _share(each), Missing)]
    return WireEnd(
        str(site["interface"] if tool == "tcp" else one["nic"]), tool, rail,
        rates[ways["sends"]] if ways["sends"] else _NO_LINE,
        rates[ways["receives"]] if ways["receives"] else _NO_LINE,
        gbits=_NO_LINE if not slower else _BY_PROCESSORS if slower in bound else rates[slower],
        ways_apart=_ways_apart(rates, ways, bound),
        flows_apart=_flows_apart(rates, bound, site["rates_gbits"]),
        together_share=max(shares, default=_NO_LINE) if tool == "tcp" else _rails(tests, host),
        slower_percent=_behind(one, bound), slower_where=str(one.get("where", "")),
        latency_us=_latency_of(mine), physical=bool(site["physical"]),
        mtu_bytes=int(site["mtu_bytes"]),
        rates_gbits=tuple(float(rate) for rate in site["rates_gbits"]),
        line=one["line"], probe=PROBE,
    )  # fmt: skip


def _best(rates: dict[str, float], way: str) -> str:
    """The number of connections in which this way is fastest."""
    mine = [key for key in rates if key.startswith(f"{way},")]
    return max(mine, key=lambda key: rates[key], default="")


def _ways_apart(rates: dict[str, float], ways: dict[str, str], bound: set[str]) -> Known[float]:
    if not all(ways.values()):
        return _NO_LINE
    slow, fast = sorted(ways.values(), key=lambda key: rates[key])
    if slow in bound:
        return _BY_PROCESSORS
    return round(rates[fast] / rates[slow], 2) if rates[slow] else _NO_LINE


def _flows_apart(
    rates: dict[str, float], bound: set[str], members: Sequence[float]
) -> Known[float]:
    """Of the way in which it is more. One connection takes one member of a bond."""
    if len(members) > 1:
        return Missing("not-applicable", "a bond: one connection takes one of its members")
    found = []
    for way in ("sends", "receives"):
        one, most = f"{way}, 1 flow", _best(rates, way)
        if one in bound:
            return _BY_PROCESSORS
        if rates.get(one) and most:
            found.append(rates[most] / rates[one])
    return round(max(found), 2) if found else _NO_LINE


def _behind(one: Line, bound: set[str]) -> Known[float]:
    if "behind_percent" not in one:
        return _TWO
    if one.get("undetermined"):
        return Missing("unreadable", str(one["undetermined"]))
    return _BY_PROCESSORS if one["where"] in bound else float(one["behind_percent"])


def _share(tests: Sequence[WireTest]) -> Known[float]:
    """What ran together over what the same did one by one: of the number of connections for which
    it is more."""
    found = []
    for flows in {one.flows for one in tests if one.together}:
        mine = [one for one in tests if one.flows == flows and one.memory == "host"]
        together = [one for one in mine if one.together]
        alone = [one for one in mine if not one.together]
        if any(one.processor_bound for one in together):
            return _BY_PROCESSORS
        least = sum(_figures(alone))
        if least and len(list(_figures(together))) == len(list(_figures(alone))):
            found.append(sum(_figures(together)) / least)
    return round(max(found), 2) if found else _NO_LINE


def _rails(tests: Sequence[WireTest], host: str) -> Known[float]:
    """Of RDMA all adapters at once, with the best of the peers and in the worse way."""
    by: dict[tuple[str, str], list[WireTest]] = defaultdict(list)
    for one in tests:
        if not one.loopback and one.flows == 1:
            by[one.sender, one.receiver].append(one)
    ways = []
    for at in (0, 1):
        shares = [_share(each) for pair, each in by.items() if pair[at] == host]
        known = [share for share in shares if not isinstance(share, Missing)]
        ways += [max(known)] if known else []
    if not ways and not any(one.together for one in tests):
        return _ONE
    return min(ways, default=_NO_LINE)


def _figures(tests: Iterable[WireTest]) -> Iterator[float]:
    for one in tests:
        if not isinstance(one.gbits, Missing):
            yield one.gbits


def _latency_of(tests: Sequence[WireTest]) -> Known[float]:
    told = [one.p50_us for one in tests if not isinstance(one.p50_us, Missing)]
    return min(told) if told else _NO_LINE


def _link(one: Line) -> WireLink:
    rail = f", rail {one['rail']}" if one["tool"] == "rdma" else ""
    return WireLink(
        f"{one['from']} to {one['to']}{rail}", float(one["gbits"]), float(one["behind_percent"]),
        one["line"], PROBE,
    )  # fmt: skip


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
