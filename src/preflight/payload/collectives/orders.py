"""What a host does of a bench when it is told to: by ranks of its own, or by itself.

An order is a JSON object: `test`, its number; `do`, one of those below; `hosts`, who has a part in
it, in the order of their ring; `limit_s`, after which it is ended; `port`, where its ranks meet on
the first of the hosts; `environment` of its ranks, and `devices`, those of each host that take part
(all where none are named); `log`, whether what NCCL says meanwhile is told; and what its kind
takes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ..ranks import Among, Launch, Tell
from ..site import address_of, interface_of
from ..wire.look import look
from ..wire.rdma import rdma
from ..wire.tcp import tcp
from .counters import counters
from .load import load
from .nccl_log import NcclLog
from .plan import Plan
from .repeating import repeating
from .setting import setting
from .work import measured, work

Line = dict[str, Any]

#: Until the first word of a test: ranks find each other, connections are made.
START_S = 120.0
#: What every rank tells alike: the first one's figures are those of all.
_OF_ALL = ("size", "step", "joined", "measured", "window")
_SOCKETS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def _compare(plan: Plan, order: Line, tell: Tell) -> None:
    measured(plan, order["collective"], order["bytes"], order["repeats"], tell)


#: What ranks do, in processes that are forked for it.
BY_RANKS: dict[str, Callable[[Plan, Line, Tell], None]] = {
    "sizes": lambda plan, _, tell: work(plan, tell),
    "compare": _compare,
    "setting": setting,
    "repeating": repeating,
}  # fmt: skip
#: What the host does itself: by the plan, its number among the hosts, and the order.
BY_ITSELF: dict[str, Callable[[Plan, int, Line], Iterator[Line]]] = {
    "wire_look": look, "tcp": tcp, "rdma": rdma,
    "counters": counters, "load": load,
}  # fmt: skip


def done(plan: Plan, at: int, order: Line) -> Generator[Line, None, None]:
    """Do the order as host number `at`; what is told of it. Whoever stops listening closes it."""
    if order["do"] in BY_ITSELF:
        yield from BY_ITSELF[order["do"]](plan, at, order)
        return
    log = NcclLog(plan, order)
    launch = Launch(len(_devices(plan, order)), _work_of(plan, order), silent_s=plan.silent_s,
                    start_s=START_S, among=_among(plan, at, order, log.environment))  # fmt: skip
    # Whoever waits for a host that comes to no end is there for the next test.
    timer = threading.Timer(order["limit_s"], _end, [launch])
    timer.daemon = True
    timer.start()
    try:
        for line in launch.lines():
            if line["kind"] not in _OF_ALL or line["rank"] == 0:
                yield line
    finally:
        timer.cancel()
        launch.kill()
    yield from log.lines()


def _end(launch: Launch) -> None:
    for one in launch.ranks:
        one.kill()


def _devices(plan: Plan, order: Line) -> list[int]:
    """Of this host those that take part, by number."""
    return list(order.get("devices") or range(plan.ranks))


def _work_of(plan: Plan, order: Line) -> Callable[[Tell], None]:
    return lambda tell: BY_RANKS[order["do"]](plan, order, tell)


def _among(plan: Plan, at: int, order: Line, log: dict[str, str]) -> Among:
    hosts, devices = order["hosts"], _devices(plan, order)
    many = len(plan.hosts) > 1
    sockets = socket_names(plan.interface, own=plan.interface or _own() if many else "")
    return Among(
        first=hosts.index(at) * len(devices), world=len(hosts) * len(devices),
        master=plan.addresses[hosts[0]] if many else "127.0.0.1", port=order.get("port", 0),
        environment={**sockets, **_names(plan, hosts), **_adapters(plan), **log,
                     **order.get("environment", {})},
        devices=devices,
    )  # fmt: skip


def _names(plan: Plan, hosts: list[int]) -> dict[str, str]:
    """What a rank calls the hosts of the others (group/join.py)."""
    return {"PREFLIGHT_HOSTS": ",".join(plan.hosts[at] for at in hosts)} if plan.hosts else {}


def _adapters(plan: Plan) -> dict[str, str]:
    return {"NCCL_IB_HCA": plan.nics} if plan.nics else {}


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
