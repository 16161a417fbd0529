"""How far two devices are from each other on PCI, in the words of nvidia-smi.

The words are defined in nvidia-smi's legend and in NCCL (src/graph/topo.h, PATH_*): PIX at most one
switch, PXB several, PHB the host bridge, NODE host bridges of one NUMA node, SYS several nodes.
"""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.pci_tree import PciPath
from preflight.model import NOT_IN_INPUT, Known, Missing

_UNKNOWN = Missing("not-in-input", "its way to the root of PCI is not in the input")


class Way(Struct, frozen=True):
    """Where a device hangs: its bridges from it upwards, by address, and its NUMA node."""

    address: str  # 0000:1b:00.0
    bridges: tuple[str, ...] = ()
    node: Known[int] = NOT_IN_INPUT
    whole: bool = True  # the last bridge is the root port


def way_of(path: PciPath, node: Known[int]) -> Way:
    """The way of a device that the tree of PCI shows."""
    above = path.above
    cut = isinstance(above, Missing) and above.kind == "not-in-input"
    return Way(path.bus_id[4:], path.bridges, node, not cut or _on_root_bus(path))


def _on_root_bus(path: PciPath) -> bool:
    """A hypervisor puts devices beside the host bridge, with no port above them."""
    return path.virtual and not path.bridges


def path_between(one: Way, other: Way, *, nodes: Known[int] = NOT_IN_INPUT) -> Known[str]:
    """PIX, PXB, PHB, NODE or SYS. `nodes`: how many NUMA nodes the host has: of one node all
    devices are."""
    if _slot(one.address) == _slot(other.address):
        return "PIX"  # functions of one device
    below = set(other.bridges)
    shared = next((bridge for bridge in one.bridges if bridge in below), "")
    if shared:
        deepest = max(one.bridges.index(shared), other.bridges.index(shared))
        return "PIX" if deepest <= 1 else "PXB"  # a switch is a port below and a port above
    if not one.whole or not other.whole:
        return _UNKNOWN
    if _root_bus(one) == _root_bus(other):
        return "PHB"
    return _between_roots(one.node, other.node, nodes)


def _between_roots(one: Known[int], other: Known[int], nodes: Known[int]) -> Known[str]:
    if nodes == 1:
        return "NODE"
    if isinstance(one, Missing):
        return one
    if isinstance(other, Missing):
        return other
    return "NODE" if one == other else "SYS"


def _slot(address: str) -> str:
    return address.rpartition(".")[0]


def _root_bus(way: Way) -> str:
    """Domain and bus on which the way ends: one host bridge's."""
    top = way.bridges[-1] if way.bridges else way.address
    return top.rpartition(":")[0]
