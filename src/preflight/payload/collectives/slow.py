"""Which host or link makes the others slow: the search asks for rounds of tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..locate.found import Found, Search, Settings, Test
from ..locate.pairwise import pairwise
from ..locate.search import locate
from .bench import TROUBLE, Bench, busbw_gbps, seconds_in
from .orders import Line

#: What is compared: the collective that loads every link of a ring in both directions. On
#: processors a size that a link of 1 Gb/s carries in 70 ms.
COMPARED = "all_reduce"
BYTES = {"cuda": 1 << 28, "cpu": 1 << 22}
_LEAST_HOSTS = 3
#: Of so few hosts each pair is tried: that takes as many rounds as a search, and covers all links.
_ALL_PAIRS = 8


def slow(bench: Bench) -> None:
    """The hosts that are still there, as a ring."""
    plan, ring = bench.plan, bench.hosts
    if not plan.locate or len(ring) < _LEAST_HOSTS:
        bench.sound = ring  # neither of two can be told from the other
        return
    settings = Settings(repeats=plan.repeats, threshold=1 - plan.behind_percent / 100)
    pairs = plan.pairwise or len(ring) <= _ALL_PAIRS
    search: Search = (pairwise if pairs else locate)(len(ring), settings)
    tests = next(search)
    while True:
        gbps = _round(bench, ring, tests)
        try:
            tests = search.send(gbps)
        except StopIteration as end:
            bench.tell({"kind": "found", **_named(bench, ring, end.value)})
            _sort(bench, ring, end.value)
            return


def _round(bench: Bench, ring: list[int], tests: list[Test]) -> dict[int, list[float] | None]:
    """What each test measured; None where it did not come to its end."""
    plan, size = bench.plan, bench.plan.locate_bytes or BYTES[bench.plan.device]
    orders = {
        one.number: bench.order("compare", [ring[node] for node in one.nodes],
                                collective=COMPARED, bytes=size, repeats=plan.repeats)
        for one in tests
    }  # fmt: skip
    told = bench.told(list(orders.values()))
    found: dict[int, list[float] | None] = {}
    for one in tests:
        lines = told[orders[one.number]["test"]]
        trouble = [line for line in lines if line["kind"] in TROUBLE]
        gbps = busbw_gbps(size, len(one.nodes) * plan.ranks, seconds_in(lines))
        found[one.number] = gbps or None
        bench.tell({"kind": "test", "test": one.number, "why": _hosts_in(bench, ring, one.why),
                    "among": [bench.name(ring[node]) for node in one.nodes], "bytes": size,
                    "busbw_gbps": [round(each, 6) for each in gbps],
                    **({"trouble": trouble} if not gbps else {})})  # fmt: skip
    return found


def _named(bench: Bench, ring: list[int], found: Found) -> Line:
    """What was found, with the names of the hosts."""

    def names(nodes: Any) -> list[str]:
        return [bench.name(ring[node]) for node in nodes]

    return {
        "nodes": names(found.nodes), "links": [names(one) for one in found.links],
        "boundary": [names(side) for side in found.boundary or ()],
        "runs": [{"culprit": _culprit(key, names), "tests": tests}
                 for key, tests in found.runs.items()],
        "undetermined": _hosts_in(bench, ring, found.undetermined), "rounds": found.rounds,
        "covered": found.covered, "level_gbps": found.level,
        "matrix": [[*names(pair), gbps] for pair, gbps in found.matrix.items()],
    }  # fmt: skip


def _sort(bench: Bench, ring: list[int], found: Found) -> None:
    """The slow hosts, and those that nothing is wrong with; what is undetermined is neither."""
    if not found.undetermined:
        ends = {node for one in found.links for node in one}
        bench.slow = [ring[node] for node in found.nodes]
        bench.sound = [at for node, at in enumerate(ring)
                       if node not in ends and node not in found.nodes]  # fmt: skip


def _culprit(key: object, names: Callable[[Any], list[str]]) -> list[str]:
    """A host, the two ends of a link, or the boundary."""
    return names(key if isinstance(key, tuple) else [key]) if key != "boundary" else ["boundary"]


def _hosts_in(bench: Bench, ring: list[int], text: str) -> str:
    """The search calls hosts n0, n1 ...: their names instead."""
    return re.sub(r"\bn(\d+)\b", lambda match: _host(bench, ring, match), text)


def _host(bench: Bench, ring: list[int], match: re.Match[str]) -> str:
    node = int(match[1])
    return bench.name(ring[node]) if node < len(ring) else match[0]
