"""What a host has for tests of its links."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from statistics import median

from ..collectives.plan import Plan
from ..site import address_of, interface_of
from . import gpus
from .adapters import adapters, interface
from .flows import Flow, counted
from .programs import knows_cuda, version
from .sides import Line
from .tcp import MANY

#: Of the loopback: the time that does not count, each span that does, and how many.
_RAMP_S, _EACH_S, _TIMES = 0.1, 0.1, 3
_TOLD = ("nic", "port", "rate_gbits", "layer", "gid")


def look(plan: Plan, at: int, _order: Line) -> Iterator[Line]:
    """One line. `loopback_gbits`: what its processors carry by TCP without any adapter, more or
    less; over a single host that is all that TCP would tell."""
    nics = [{name: one[name] for name in _TOLD} for one in adapters(plan.nics)]
    address = plan.addresses[at] if plan.addresses else address_of(plan.interface)
    cuda = bool(nics) and plan.device == "cuda" and knows_cuda() and bool(gpus.places())
    by_tcp = len(plan.hosts) > 1 and (plan.wire == "tcp" or not nics)
    yield {
        "kind": "wire_site", "perftest": version(), "cuda": cuda, "nics": nics,
        **interface(plan.interface.partition(",")[0] or interface_of(address)),
        "loopback_gbits": max(map(_loopback, (1, MANY))) if by_tcp else 0.0,
    }  # fmt: skip


def _loopback(many: int) -> float:
    """Gbit/s of so many connections of this host with itself."""
    flows: list[Flow] = []
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=many) as server:
            for _ in range(many):
                sender = socket.create_connection(server.getsockname())
                flows += [Flow(server.accept()[0], sends=False), Flow(sender, sends=True)]
        time.sleep(_RAMP_S)
        return round(median(counted(flows[::2], _EACH_S, _TIMES)), 3)
    except OSError:
        return 0.0
    finally:
        for one in flows[::-1]:
            one.stop()
