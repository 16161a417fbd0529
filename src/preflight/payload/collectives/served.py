"""The agent of a host: it does the tests that the lead tells it, each with fresh ranks."""

from __future__ import annotations

import os
import threading
from typing import Any

from ..ranks import Among, Launch, Tell
from ..site import address_of, interface_of
from .agents import Line, Wire, called
from .plan import Plan
from .work import measured, work

#: Until the first word of a test: ranks find each other, connections are made.
START_S = 120.0
#: What every rank tells alike: the first one's figures are those of all.
OF_ALL = ("size", "step", "joined", "measured")
_SOCKETS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
#: Where the agents call, behind the first of the ports of the first host.
LEAD_PORT = 1


def serve(plan: Plan, at: int) -> None:
    """Until the lead has no more tests. Raises GoneError where there is no lead, and OSError where
    it is lost."""
    wire = called((plan.master, plan.port + LEAD_PORT), at, plan.job, plan.addresses[at])
    while True:
        for order in wire.received():
            if order["test"] < 0:
                wire.close()
                return
            _done(plan, at, order, wire)


def _done(plan: Plan, at: int, order: Line, wire: Wire) -> None:
    launch = Launch(plan.ranks, _work_of(plan, order), silent_s=plan.silent_s, start_s=START_S,
                    among=_among(plan, at, order))  # fmt: skip
    number = {"test": order["test"]}
    # Whoever waits for a host that comes to no end is there for the next test.
    timer = threading.Timer(order["limit_s"], _end, [launch])
    timer.daemon = True
    timer.start()
    try:
        for line in launch.lines():
            if line["kind"] not in OF_ALL or line["rank"] == 0:
                wire.send({**line, **number})
    finally:
        timer.cancel()
        launch.kill()
    wire.send({"kind": "over", **number})


def _end(launch: Launch) -> None:
    for one in launch.ranks:
        one.kill()


def _work_of(plan: Plan, order: Line) -> Any:
    def worked(tell: Tell) -> None:
        if order["do"] == "sizes":
            work(plan, tell)
        else:
            measured(plan, order["collective"], order["bytes"], order["repeats"], tell)

    return worked


def _among(plan: Plan, at: int, order: Line) -> Among:
    hosts = order["hosts"]
    return Among(
        first=hosts.index(at) * plan.ranks, world=len(hosts) * plan.ranks,
        master=plan.addresses[hosts[0]], port=order["port"],
        environment={**socket_names(plan.interface, own=plan.interface or _own()),
                     **order.get("environment", {})},
    )  # fmt: skip


def _own() -> str:
    """Hosts may call theirs by other names. Left alone, gloo takes what the host's name resolves
    to, and on many that is 127.0.1.1."""
    return interface_of(address_of(""))


def socket_names(interface: str, own: str = "") -> dict[str, str]:
    """The variables that name the interface of sockets. On one host nothing has to be resolved, and
    nothing leaves it."""
    chosen = interface or own
    if chosen:
        return dict.fromkeys(_SOCKETS, chosen)
    return {} if _SOCKETS[0] in os.environ else {_SOCKETS[0]: "lo"}
