"""A bench over several hosts: the first of them leads, and looks for the one that is slow."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..locate.found import Found, Search, Settings, Test
from ..locate.pairwise import pairwise
from ..locate.search import locate
from ..parent import die_with_launcher
from ..ranks import Tell
from .agents import Lead, Line
from .plan import Plan
from .served import LEAD_PORT, serve

#: All sizes of all collectives; one test of a search. Its agents end it then, and one that has not
#: told that some time later is gone.
_SIZES_S, _TEST_S, _LATE_S = 1800.0, 90.0, 60.0
#: What is compared: the collective that loads every link of a ring in both directions. On
#: processors a size that a link of 1 Gb/s carries in 70 ms.
_COMPARED = "all_reduce"
_BYTES = {"cuda": 1 << 28, "cpu": 1 << 22}
_LEAST_HOSTS = 3
#: Of so few hosts each pair is tried: that takes as many rounds as a search, and covers all links.
_ALL_PAIRS = 6


def lead(plan: Plan, tell: Tell) -> None:
    """All tests, as the first host has them done. What its own agent does it does in a process of
    its own."""
    with _agent_here(plan):
        agents = Lead(plan.master, plan.port + LEAD_PORT, len(plan.hosts), plan.job)
        try:
            came = agents.gather()
            for at in sorted(set(range(len(plan.hosts))) - set(came)):
                tell({"kind": "absent", "of": plan.hosts[at]})
            if len(came) > 1:
                _sizes(plan, agents, came, tell)
            if plan.locate and len(agents.agents) >= _LEAST_HOSTS:
                _search(plan, agents, tell)
        finally:
            agents.dismiss()


@contextmanager
def _agent_here(plan: Plan) -> Iterator[None]:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_launcher(signal.SIGKILL)
            serve(plan, 0)
            status = 0
        except Exception as error:  # noqa: BLE001 - the lead sees that it is gone
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(status)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _sizes(plan: Plan, agents: Lead, hosts: list[int], tell: Tell) -> None:
    """Every collective in every size, over all hosts."""
    order = {"test": 0, "do": "sizes", "hosts": hosts, "limit_s": _SIZES_S}
    for _, at, line in agents.run([order], _SIZES_S + _LATE_S):
        if line["kind"] != "over":
            tell({**line, "of": plan.hosts[at]})


def _search(plan: Plan, agents: Lead, tell: Tell) -> None:
    """The hosts that are still there, as a ring; the search asks for rounds of tests of them."""
    ring = sorted(agents.agents)
    settings = Settings(repeats=plan.repeats)
    pairs = plan.pairwise or len(ring) <= _ALL_PAIRS
    search: Search = (pairwise if pairs else locate)(len(ring), settings)
    gbps: dict[int, list[float] | None] = {}
    tests = next(search)
    while True:
        gbps = _round(plan, agents, ring, tests, tell)
        try:
            tests = search.send(gbps)
        except StopIteration as end:
            tell({"kind": "found", **_named(plan, ring, end.value)})
            return


def _round(
    plan: Plan, agents: Lead, ring: list[int], tests: list[Test], tell: Tell
) -> dict[int, list[float] | None]:
    """What each test measured; None where it did not come to its end."""
    size = plan.locate_bytes or _BYTES[plan.device]
    orders: list[Line] = [
        {"test": one.number, "do": "compare", "hosts": [ring[node] for node in one.nodes],
         "collective": _COMPARED, "bytes": size, "repeats": plan.repeats, "limit_s": _TEST_S}
        for one in tests
    ]  # fmt: skip
    told = _told(plan, agents, orders)
    # Somebody took the port between the look and the test: that is no fault of a host.
    again = [one for one in orders if any(_port_taken(line) for line in told[one["test"]])]
    told |= _told(plan, agents, again) if again else {}
    found = {}
    for one in tests:
        seconds = next((line["seconds"] for line in told[one.number]
                        if line["kind"] == "measured"), None)  # fmt: skip
        trouble = [line for line in told[one.number] if line["kind"] in _TROUBLE]
        world = len(one.nodes) * plan.ranks
        gbps = [2 * (world - 1) / world * size / each / 1e9 for each in seconds or ()]
        found[one.number] = gbps or None
        tell({"kind": "test", "test": one.number, "why": _hosts_in(plan, ring, one.why),
              "among": [plan.hosts[ring[node]] for node in one.nodes], "bytes": size,
              "busbw_gbps": [round(each, 6) for each in gbps],
              **({"trouble": trouble} if not gbps else {})})  # fmt: skip
    return found


def _told(plan: Plan, agents: Lead, orders: list[Line]) -> dict[int, list[Line]]:
    """What the ranks of each test told, with the name of their host."""
    told: dict[int, list[Line]] = {one["test"]: [] for one in orders}
    for test, at, line in agents.run(orders, _TEST_S + _LATE_S):
        told[test].append({**line, "of": plan.hosts[at]})
    return told


def _port_taken(line: Line) -> bool:
    return line["kind"] == "failed" and "the port is in use" in line["text"]


_TROUBLE = ("failed", "died", "silent", "gone")


def _named(plan: Plan, ring: list[int], found: Found) -> Line:
    """What was found, with the names of the hosts."""

    def names(nodes: Any) -> list[str]:
        return [plan.hosts[ring[node]] for node in nodes]

    return {
        "nodes": names(found.nodes), "links": [names(one) for one in found.links],
        "boundary": [names(side) for side in found.boundary or ()],
        "runs": [{"culprit": _culprit(key, names), "tests": tests}
                 for key, tests in found.runs.items()],
        "undetermined": _hosts_in(plan, ring, found.undetermined), "rounds": found.rounds,
        "covered": found.covered, "level_gbps": found.level,
        "matrix": [[*names(pair), gbps] for pair, gbps in found.matrix.items()],
    }  # fmt: skip


def _culprit(key: object, names: Callable[[Any], list[str]]) -> list[str]:
    """A host, the two ends of a link, or the boundary."""
    return names(key if isinstance(key, tuple) else [key]) if key != "boundary" else ["boundary"]


def _hosts_in(plan: Plan, ring: list[int], text: str) -> str:
    """The search calls hosts n0, n1 ...: their names instead."""
    return re.sub(r"\bn(\d+)\b", lambda match: _host(plan, ring, match), text)


def _host(plan: Plan, ring: list[int], match: re.Match[str]) -> str:
    node = int(match[1])
    return plan.hosts[ring[node]] if node < len(ring) else match[0]
