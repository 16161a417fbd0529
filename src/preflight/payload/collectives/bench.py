"""What a bench has to do, part after part, by the hosts that are there.

The parts ask the hosts alike whether there are several, with an agent each, or this one alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from ..ranks import Tell
from .agents import Lead
from .orders import Line, done
from .plan import Plan

#: Agents end a test when its time is over; one that has not told so by then is gone.
_LATE_S = 60.0
#: A test of one collective in one size.
TEST_S = 90.0
#: What ranks tell that did not come to their end, and the lead of hosts that did not.
TROUBLE = ("failed", "died", "silent", "gone")


class Here:
    """This host alone: orders are done one after another."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.agents, self.about = plan, [0], dict[int, Line]()

    def leave(self, at: int) -> None:
        """No more tests for it."""
        self.agents.remove(at)

    def run(self, orders: Sequence[Line], _limit_s: float) -> Iterator[tuple[int, int, Line]]:
        """What is told: the number of the order, that of the host, the line."""
        for order in orders:
            with closing(done(self.plan, 0, order)) as lines:
                for line in lines:
                    yield order["test"], 0, line


class Bench:
    """The hosts, and what is told of them. `hosts`: the numbers of those that are still there;
    `slow`, `sound`: of those that a search found to be that."""

    def __init__(self, plan: Plan, tell: Tell, many: Lead | Here) -> None:
        self.plan, self.tell, self.many = plan, tell, many
        self.slow: list[int] = []
        self.sound: list[int] = []
        self._numbers = itertools.count()

    @property
    def hosts(self) -> list[int]:
        return sorted(self.many.agents)

    def name(self, at: int) -> str:
        """Of a host; "" of this one where it is alone."""
        return self.plan.hosts[at] if self.plan.hosts else ""

    def rails(self, at: int) -> list[str]:
        """The ways out of a host that it told, side by side."""
        return list(self.many.about.get(at, {}).get("rails", ()))

    def order(self, do: str, hosts: Sequence[int], limit_s: float = TEST_S, **more: Any) -> Line:
        """An order with a number of its own."""
        return {"test": next(self._numbers), "do": do, "hosts": list(hosts), "limit_s": limit_s,
                **more}  # fmt: skip

    def heard(self, orders: Sequence[Line]) -> Iterator[tuple[int, Line]]:
        """Have orders done at the same time; no host may have a part in two of them. The number of
        the order with each line, in which the host stands as `of`."""
        limit_s = max(one["limit_s"] for one in orders) + _LATE_S
        for test, at, line in self.many.run(orders, limit_s):
            if line["kind"] != "over":
                yield test, ({**line, "of": self.name(at)} if self.plan.hosts else line)

    def told(self, orders: Sequence[Line]) -> dict[int, list[Line]]:
        """The same, all lines of each order together. One whose port somebody took between the look
        and the test is done again: that is no fault of a host."""
        found = self._told(orders)
        again = [one for one in orders if any(map(_port_taken, found[one["test"]]))]
        return found | (self._told(again) if again else {})

    def _told(self, orders: Sequence[Line]) -> dict[int, list[Line]]:
        found: dict[int, list[Line]] = {one["test"]: [] for one in orders}
        for test, line in self.heard(orders) if orders else ():
            found[test].append(line)
        return found


def _port_taken(line: Line) -> bool:
    return line["kind"] == "failed" and "the port is in use" in line["text"]


def seconds_in(lines: Sequence[Line]) -> list[float]:
    """What the ranks of a `compare` measured, the first of all for all of them; none where it did
    not come to its end."""
    return next((list(line["seconds"]) for line in lines if line["kind"] == "measured"), [])


def busbw_gbps(size: int, world: int, seconds: Sequence[float]) -> list[float]:
    """Of an all-reduce, of each repeat: 2(n-1)/n of its bytes (nccl-tests, doc/PERFORMANCE.md)."""
    return [2 * (world - 1) / world * size / each / 1e9 for each in seconds]
