"""The ends of the links of one host: what they reach with the best of their peers, by the tests in
which this host has a part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from preflight.facts.wire import WireEnd, WireLink, WireTest
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.lines import PROBE, Line

NO_LINE = Missing("unreadable", "no test of that kind came to its end")
TWO = Missing("not-applicable", "of two hosts neither can be told from the other; it takes three")
ONE = Missing("not-applicable", "one adapter")
_BY_PROCESSORS = Missing(
    "not-applicable", "processors were the limit: the link carries what was measured, or more"
)
#: From so many percent on payload/wire/losses.py calls an end lossy.
_LOSSY = 0.5
_ALL_LOSE = Missing(
    "not-applicable", "every end loses packets: not one host, see wire.lost_everywhere"
)
_BY_ADAPTERS = Missing("not-applicable", "RDMA: its adapters count what they send once more")


def end_of(one: Line, site: Line, tests: Sequence[WireTest]) -> WireEnd:
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
    shares = [share for each in pair if not isinstance(share := share_of(each), Missing)]
    return WireEnd(
        str(site["interface"] if tool == "tcp" else one["nic"]), tool, rail,
        rates[ways["sends"]] if ways["sends"] else NO_LINE,
        rates[ways["receives"]] if ways["receives"] else NO_LINE,
        gbits=NO_LINE if not slower else _BY_PROCESSORS if slower in bound else rates[slower],
        ways_apart=_ways_apart(rates, ways, bound),
        flows_apart=_flows_apart(rates, bound, site["rates_gbits"]),
        lost_percent=_lost_of(one, mine, host) if tool == "tcp" else _BY_ADAPTERS,
        together_share=max(shares, default=NO_LINE) if tool == "tcp" else _rails(tests, host),
        slower_percent=_behind(one, bound), slower_where=str(one.get("where", "")),
        behind_from_percent=_told(one, "behind_from_percent"),
        bound_from_percent=_told(one, "bound_from_percent"),
        latency_us=_latency_of(mine), physical=bool(site["physical"]),
        mtu_bytes=int(site["mtu_bytes"]),
        rates_gbits=tuple(float(rate) for rate in site["rates_gbits"]),
        line=one["line"], probe=PROBE,
    )  # fmt: skip


def _told(one: Line, name: str) -> Known[float]:
    return round(float(one[name]), 1) if name in one else NOT_IN_INPUT


def _best(rates: dict[str, float], way: str) -> str:
    """The number of connections in which this way is fastest."""
    mine = [key for key in rates if key.startswith(f"{way},")]
    return max(mine, key=lambda key: rates[key], default="")


def _ways_apart(rates: dict[str, float], ways: dict[str, str], bound: set[str]) -> Known[float]:
    if not all(ways.values()):
        return NO_LINE
    slow, fast = sorted(ways.values(), key=lambda key: rates[key])
    if slow in bound:
        return _BY_PROCESSORS
    return round(rates[fast] / rates[slow], 2) if rates[slow] else NO_LINE


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
    return round(max(found), 2) if found else NO_LINE


def _lost_of(one: Line, tests: Sequence[WireTest], host: str) -> Known[float]:
    """Where its peers lose as much with everybody it is not known who of them does."""
    lost, peers = _lost(tests, host), ", ".join(map(str, one.get("peers_lossy", ())))
    if not peers:
        return lost
    if float(one["lost_everywhere_percent"]) > _LOSSY:
        return _ALL_LOSE
    return Missing("unreadable", f"{lost} % are sent again, and all that it was timed with lose "
                   f"packets too ({peers}): --pairwise tries it with the others")  # fmt: skip


def _lost(tests: Sequence[WireTest], host: str) -> Known[float]:
    """Of each way with the best of the peers."""
    found = []
    for mine in ([one for one in tests if one.sender == host],
                 [one for one in tests if one.receiver == host]):  # fmt: skip
        told = [one.again_percent for one in mine if one.flows == 1 and not one.together]
        found += [min(known)] if (known := [one for one in told if isinstance(one, float)]) else []
    return max(found, default=NO_LINE)


def _behind(one: Line, bound: set[str]) -> Known[float]:
    if "behind_percent" not in one:
        return TWO
    if one.get("undetermined"):
        return Missing("unreadable", str(one["undetermined"]))
    return _BY_PROCESSORS if one["where"] in bound else float(one["behind_percent"])


def share_of(tests: Sequence[WireTest]) -> Known[float]:
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
    return round(max(found), 2) if found else NO_LINE


def _rails(tests: Sequence[WireTest], host: str) -> Known[float]:
    """Of RDMA all adapters at once, with the best of the peers and in the worse way."""
    by: dict[tuple[str, str], list[WireTest]] = defaultdict(list)
    for one in tests:
        if not one.loopback and one.flows == 1:
            by[one.sender, one.receiver].append(one)
    ways = []
    for at in (0, 1):
        shares = [share_of(each) for pair, each in by.items() if pair[at] == host]
        known = [share for share in shares if not isinstance(share, Missing)]
        ways += [max(known)] if known else []
    if not ways and not any(one.together for one in tests):
        return ONE
    return min(ways, default=NO_LINE)


def _figures(tests: Iterable[WireTest]) -> Iterator[float]:
    for one in tests:
        if not isinstance(one.gbits, Missing):
            yield one.gbits


def _latency_of(tests: Sequence[WireTest]) -> Known[float]:
    told = [one.p50_us for one in tests if not isinstance(one.p50_us, Missing)]
    return min(told) if told else NO_LINE


def link_of(one: Line) -> WireLink:
    rail = f", rail {one['rail']}" if one["tool"] == "rdma" else ""
    return WireLink(
        f"{one['from']} to {one['to']}{rail}", float(one["gbits"]), float(one["behind_percent"]),
        one["line"], PROBE,
    )  # fmt: skip
