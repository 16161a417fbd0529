"""Which host or link makes the others slow: the search asks for rounds of tests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from ..locate.found import Found, Search, Settings, Test
from ..locate.pairwise import pairwise
from ..locate.search import locate
from .bench import TEST_S, TROUBLE, Bench, busbw_gbps, seconds_in
from .orders import Line

#: What is compared: the collective that loads every link of a ring in both directions. On
#: processors a size that a link of 1 Gb/s carries in 70 ms.
COMPARED = "all_reduce"
BYTES = {"cuda": 1 << 28, "cpu": 1 << 22}
_LEAST_HOSTS = 3
#: Of so few hosts each pair is tried: that takes as many rounds as a search, and covers all links.
_ALL_PAIRS = 8
#: Where chance is too large a search is done again, within so many seconds, each time with so many
#: times the repeats; with less than so many times it would tell no more.
GROW_S, _TIMES, _WORTH = 240.0, 3.0, 1.5
_MOST_REPEATS = 1000
_LOAD_S = 10.0


def slow(bench: Bench) -> None:
    """The hosts that are still there, as a ring. Where chance is too large to decide the search is
    done again with more repeats of each test, as long as there is time for it."""
    plan, ring = bench.plan, bench.hosts
    if not plan.locate or len(ring) < _LEAST_HOSTS:
        bench.sound = ring  # neither of two can be told from the other
        return
    search, until_s = _Search(bench, ring), time.monotonic() + GROW_S
    while True:
        began_s = time.monotonic()
        found = search.made()
        now_s = time.monotonic()
        more = min(_TIMES, (until_s - now_s) / (now_s - began_s))
        done = not found.undetermined or not found.level
        if done or more < _WORTH or search.repeats >= _MOST_REPEATS:
            break
        search.repeats = min(int(more * search.repeats), _MOST_REPEATS)
    loads = _loads(bench) if found.undetermined else {}
    bench.tell({"kind": "found", **search.named(found), "loads": loads})
    _sort(bench, ring, found)


class _Search:
    """One search, or one after the other: their tests and rounds are counted on."""

    def __init__(self, bench: Bench, ring: list[int]) -> None:
        self.bench, self.ring, self.repeats = bench, ring, bench.plan.repeats
        self.size = bench.plan.locate_bytes or BYTES[bench.plan.device]
        self.rounds = self.before = self.tests = self.pairs = 0
        self.what = ""

    def made(self) -> Found:
        """What it finds."""
        plan, many = self.bench.plan, len(self.ring)
        settings = Settings(repeats=self.repeats, threshold=1 - plan.behind_percent / 100)
        pairs = plan.pairwise or many <= _ALL_PAIRS
        search: Search = (pairwise if pairs else locate)(many, settings)
        self.before, self.pairs = self.tests, many * (many - 1) // 2 if pairs else 0
        self.what = self._announced()
        tests = next(search)
        while True:
            gbps = self._round(tests)
            try:
                tests = search.send(gbps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def _announced(self) -> str:
        """What is done, for whoever waits."""
        again = f"again with {self.repeats} repeats, " if self.rounds else ""
        many = f"{self.pairs} pairs and more" if self.pairs else (
            f"about {len(self.ring).bit_length() + 6} rounds of tests")  # fmt: skip
        return f"who is slow? {again}{many}, side by side"

    def _round(self, tests: list[Test]) -> dict[int, list[float] | None]:
        """What each test measured; None where it did not come to its end."""
        bench, plan = self.bench, self.bench.plan
        limit_s = TEST_S * max(1.0, self.repeats / plan.repeats)
        orders = {
            one.number: bench.order("compare", [self.ring[node] for node in one.nodes], limit_s,
                                    collective=COMPARED, bytes=self.size, repeats=self.repeats)
            for one in tests
        }  # fmt: skip
        self.rounds += 1
        self.tests += len(tests)
        among = [list(map(bench.name, order["hosts"])) for order in orders.values()]
        bench.tell({"kind": "round", "round": self.rounds, "what": self.what, "pairs": self.pairs,
                    "tests": self._numbers(list(orders)), "among": among})  # fmt: skip
        told = bench.told(list(orders.values()))
        return {one.number: self._measured(one, told[orders[one.number]["test"]]) for one in tests}

    def _measured(self, test: Test, lines: list[Line]) -> list[float] | None:
        bench = self.bench
        trouble = [line for line in lines if line["kind"] in TROUBLE]
        gbps = busbw_gbps(self.size, len(test.nodes) * bench.plan.ranks, seconds_in(lines))
        bench.tell({"kind": "test", "test": self._numbers([test.number])[0],
                    "why": self._in_words(test.why),
                    "among": [bench.name(self.ring[node]) for node in test.nodes],
                    "bytes": self.size, "busbw_gbps": [round(each, 6) for each in gbps],
                    **({"trouble": trouble} if not gbps else {})})  # fmt: skip
        return gbps or None

    def _numbers(self, tests: list[int]) -> list[int]:
        """Those of a search, counted on from the one before it."""
        return [number + self.before for number in tests]

    def named(self, found: Found) -> Line:
        """What was found, with the names of the hosts."""

        def names(nodes: Any) -> list[str]:
            return [self.bench.name(self.ring[node]) for node in nodes]

        return {
            "nodes": names(found.nodes), "links": [names(one) for one in found.links],
            "boundary": [names(side) for side in found.boundary or ()],
            "runs": [{"culprit": _culprit(key, names), "tests": self._numbers(tests)}
                     for key, tests in found.runs.items()],
            "undetermined": self._in_words(found.undetermined), "rounds": self.rounds,
            "covered": found.covered, "level_gbps": found.level, "repeats": self.repeats,
            "matrix": [[*names(pair), gbps] for pair, gbps in found.matrix.items()],
        }  # fmt: skip

    def _in_words(self, text: str) -> str:
        """The search calls hosts n0, n1 ... and counts its own tests."""
        text = re.sub(r"\btest (\d+)", lambda match: f"test {int(match[1]) + self.before}", text)
        return re.sub(r"\bn(\d+)\b", self._host, text)

    def _host(self, match: re.Match[str]) -> str:
        node = int(match[1])
        return self.bench.name(self.ring[node]) if node < len(self.ring) else match[0]


def _loads(bench: Bench) -> dict[str, list[float]]:
    """How busy each host is, and how many processors it has."""
    orders = [bench.order("load", [at], _LOAD_S) for at in bench.hosts]
    return {line["of"]: [line["load"], line["cpus"]]
            for _, line in bench.heard(orders) if line["kind"] == "load"}  # fmt: skip


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
