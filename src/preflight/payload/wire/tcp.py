"""Two hosts by TCP: each way by itself and both at once, in one connection and in many."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from ..collectives.plan import Plan
from . import processors
from .flows import Flow, counted, ping, pong
from .sides import ANSWER_S, ApartError, Line, Side, met

#: Connections of a test.
MANY = 8
#: Of a test: what is left out as slow start, and so many spans of time that count.
_RAMP_S, _EACH_S, _TIMES = 0.4, 0.2, 5
#: Trips of one byte.
_PING_S = 0.3


class Test(NamedTuple):
    """`sends`: the sides that do, 0, 1 or both."""

    sends: tuple[int, ...]
    flows: int


TESTS = tuple(Test(sends, flows) for flows in (1, MANY) for sends in ((0,), (1,), (0, 1)))


def tcp(plan: Plan, at: int, order: Line) -> Iterator[Line]:
    """The part of host number `at` in its pair. What it receives it tells."""
    hosts = order["hosts"]
    number = hosts.index(at)
    own, other = (plan.addresses[hosts[one]] for one in (number, 1 - number))
    names = [plan.hosts[one] for one in hosts]
    try:
        with met(number, own, other, order["port"]) as side:
            for test in TESTS:
                yield from _tested(side, test, names, order.get("share", 1.0))
            yield from _latency(side, names)
    except (ApartError, OSError) as error:
        yield {"kind": "wire", "tool": "tcp", "from": names[1 - number], "to": names[number],
               "flows": 1, "rail": 0, "trouble": str(error)}  # fmt: skip


def _tested(side: Side, test: Test, names: Sequence[str], share: float) -> Iterator[Line]:
    """`share`: of the usual time of a test."""
    before, began_s = processors.look(), time.monotonic()
    flows = _connected(side, test)
    try:
        gbits, packets = _measured(flows, share)
        side.swap(over=True)
        busy = processors.busiest(before, processors.look())
    finally:
        for flow, _ in flows:
            flow.stop()
    spent_s = time.monotonic() - began_s
    busy = max([busy, *(flow.cpu_s / spent_s for flow, _ in flows)])
    heard = side.swap(busy=busy, packets=packets)
    named = {**_named(side, names, test.flows), "together": len(test.sends) > 1}
    if any(gbits):
        yield {
            **named, "gbits": [round(one, 4) for one in gbits],
            "median_gbits": round(median(gbits), 4),
            "busy": round(max(busy, heard["busy"]), 3), "sent": heard["packets"][0],
            "again": heard["packets"][1],
        }  # fmt: skip
    elif gbits:
        text = f"connected, and nothing arrived for {_TIMES * _EACH_S * share:.1f} s"
        yield {**named, "trouble": text}


def _measured(flows: Sequence[tuple[Flow, bool]], share: float) -> tuple[list[float], list[int]]:
    """Gbit/s of each span of time, none where this side only sends; the packets that it sent, and
    sent once more. The slow start is left out."""
    time.sleep(_RAMP_S * share)
    before = _packets(flows)
    receives = [flow for flow, sends in flows if not sends]
    gbits = counted(receives, _EACH_S * share, _TIMES)
    pairs = zip(before, _packets(flows))  # noqa: B905 - Python 3.9
    return gbits if receives else [], [after - one for one, after in pairs]


def _packets(flows: Sequence[tuple[Flow, bool]]) -> list[int]:
    """What this side has sent, and how much of it once more."""
    told = [flow.packets() for flow, sends in flows if sends]
    return [sum(one[at] for one in told) for at in (0, 1)]


def _named(side: Side, names: Sequence[str], flows: int) -> Line:
    return {"kind": "wire", "tool": "tcp", "from": names[1 - side.number],
            "to": names[side.number], "rail": 0, "flows": flows}  # fmt: skip


def _connected(side: Side, test: Test) -> list[tuple[Flow, bool]]:
    """The connections of the test with whether this side sends there: the first side listens."""
    ways = [sender for sender in test.sends for _ in range(test.flows)]
    found: list[tuple[socket.socket, int]] = []
    if side.number == 0:
        with _listening(side, len(ways)) as server:
            for _ in ways:  # they may come in any order: the first byte tells who sends
                one, _address = server.accept()
                one.settimeout(ANSWER_S)
                found.append((one, int(one.recv(1))))
    else:
        place = (side.other, side.hear()["port"])
        for sender in ways:
            one = socket.create_connection(place, ANSWER_S, (side.own, 0))
            one.sendall(b"%d" % sender)
            found.append((one, sender))
    side.swap(ready=True)
    return [(Flow(one, sends=sender == side.number), sender == side.number)
            for one, sender in found]  # fmt: skip


def _listening(side: Side, many: int) -> socket.socket:
    """For the other side, which is told where."""
    server = socket.create_server((side.own, 0), backlog=many)
    server.settimeout(ANSWER_S)
    side.say(port=server.getsockname()[1])
    return server


def _latency(side: Side, names: Sequence[str]) -> Iterator[Line]:
    """Trips there and back of one byte; the second side begins them."""
    if side.number == 0:
        with _listening(side, 1) as server:
            connection, _ = server.accept()
        pong(connection)
        side.hear()
        return
    place = (side.other, side.hear()["port"])
    trips = ping(socket.create_connection(place, ANSWER_S, (side.own, 0)), _PING_S)
    side.say(over=True)
    if trips:
        yield {**_named(side, names, 1), "from": names[1], "to": names[0], **_times(trips)}


def _times(trips: Sequence[float]) -> dict[str, Any]:
    """Microseconds there and back: the median, and 99 of 100."""
    told = sorted(1e6 * one for one in trips)
    return {"trips": len(told), "p50_us": round(told[len(told) // 2], 2),
            "p99_us": round(told[int(0.99 * (len(told) - 1))], 2)}  # fmt: skip
