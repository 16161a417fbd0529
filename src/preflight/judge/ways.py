"""How a bench sent its data, and the steps of advice for that: of sockets no adapter of RDMA is to
be looked at, between processors no GPU, and the interface is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from preflight.facts.bench import DeviceGrowth
from preflight.facts.collectives import BenchStack
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.facts.wire import WireEnd, WireLink
from preflight.model import Missing, Result

#: Steps for one way, or for what sends, begin with its name.
RDMA, TCP, PCIE = "RDMA", "TCP", "PCIe"
_CHOICES = ((RDMA, TCP, PCIE), ("GPU", "processors"))
_SENDER = {"gloo": "processors", "nccl": "GPU"}
_OF_KIND = {"rdma": RDMA, "interface": TCP, "pci": PCIE, "tcp": TCP}
_INTERFACE = re.compile(r"\bIFACE\b")


def on_its_way(host: Host, element: Any, found: Result) -> Result:
    """The result with the steps for how its data went; all of them where that is not known."""
    if found.fix:
        known = (_way(host, element), _SENDER.get(_backend(host), ""))
        found.fix = of_way(found.fix, known, _interface(host, element))
    return found


def of_way(steps: Sequence[str], known: Sequence[str], interface: str = "") -> tuple[str, ...]:
    """`known`: of each choice what it is, "" where that is not known: then steps keep the name."""
    for names, mine in zip(_CHOICES, known, strict=True):
        others = tuple(f"{one}: " for one in names if one != mine) if mine else ()
        steps = [one.removeprefix(f"{mine}: ") if mine else one for one in steps
                 if not one.startswith(others)]  # fmt: skip
    return tuple(_INTERFACE.sub(interface, one) if interface else one for one in steps)


def _way(host: Host, element: Any) -> str:
    if isinstance(element, DeviceGrowth):
        return _OF_KIND.get(element.kind, "")
    if isinstance(element, (WireEnd, WireLink)):
        return _OF_KIND.get(getattr(element, "tool", ""), "")
    if _backend(host) == "gloo":
        return TCP
    if isinstance(host.nic_ports, Missing) or not host.nic_ports:
        return ""
    return RDMA if any(map(_is_rdma, host.nic_ports)) else ""


def _backend(host: Host) -> str:
    return host.bench_stack.backend if isinstance(host.bench_stack, BenchStack) else ""


def _is_rdma(port: NicPort) -> bool:
    return isinstance(port.link_layer, str)


def _interface(host: Host, element: Any) -> str:
    """The one of sockets; "" where it is not known, or there are several."""
    if isinstance(element, DeviceGrowth):
        return element.name if element.kind == "interface" else ""
    name = host.bench_stack.interface if isinstance(host.bench_stack, BenchStack) else ""
    return "" if "," in name else name
