"""What the file says of each device beside what the host says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.nccl_topo import NcclTopo
from preflight.facts.pci_tree import PciPath
from preflight.model import Known, Missing

#: Rates are the same where they differ by less: FDR is 54.5 Gbit/s to some and 56 to others.
_ALIKE = 0.05
_IN_VM = Missing(
    "not-applicable", "in a virtual machine the file tells what the machine does not show"
)
_NO_DEVICE = Missing("not-applicable", "the file names no GPU and no adapter")
_NOTHING = Missing("not-applicable", "nothing that the file says can be held against this host")


class Compared(Struct, frozen=True):
    """One comparison."""

    differs: bool
    told: str
    line: int


#: What a look finds; Missing: why it cannot tell.
Found = list[Compared] | Missing


def key(address: str) -> str:
    """An address to be compared: 00000000:18:00.0 and 0000:18:00.0 are one."""
    return address.lower().lstrip("0")


def devices(host: Host, topo: NcclTopo) -> Found:
    """GPUs, and adapters that training uses, which the file does not name: NCCL finds them by
    itself, so that only a part of the machine is as the file says."""
    if isinstance(host.gpus, Missing):
        return host.gpus
    here = [("gpu", gpu.name, gpu.bus_id) for gpu in host.gpus]
    here += [
        ("nic", nic.name, nic.address)
        for nic in (() if isinstance(host.topology.nics, Missing) else host.topology.nics)
        if nic.role == "training" and isinstance(nic.address, str)
    ]
    named: dict[str, set[str]] = {}
    for one in topo.devices:
        named.setdefault(one.kind, set()).add(key(one.name))
    if not named:
        return _NO_DEVICE
    return [
        Compared(key(at) not in named[kind], f"{name} at {at} is not in the file", topo.line)
        for kind, name, at in here
        if kind in named
    ] or _NOTHING


def tree(host: Host, topo: NcclTopo) -> Found:
    """On bare metal the bridges above a device are those that the kernel shows: a file with others
    stands in the way of what NCCL would find. A dump leaves out every second bridge."""
    if host.virtualization == "vm":
        return _IN_VM
    paths = _paths(host)
    if isinstance(paths, Missing):
        return paths
    return list(_bridges(topo, paths)) or _NOTHING


def _bridges(topo: NcclTopo, paths: dict[str, PciPath]) -> Iterator[Compared]:
    for one in topo.devices:
        path = paths.get(key(one.name))
        if path is None:
            continue
        above = {key(up) for up in path.bridges}
        other = [up for up in one.bridges if key(up) not in above]
        told = f"{path.name} below {', '.join(other)}, which is not above it here"
        yield Compared(bool(other), told, one.line)


def _paths(host: Host) -> Known[dict[str, PciPath]]:
    """The devices that training uses, by their addresses."""
    if isinstance(host.pci_paths, Missing):
        return host.pci_paths
    found = host.pci_paths.devices
    return found if isinstance(found, Missing) else {key(one.bus_id): one for one in found}


def values(host: Host, topo: NcclTopo) -> Found:
    """Links, nodes and rates. In a virtual machine the kernel shows links and nodes as the
    hypervisor likes: there the file is the better source."""
    looks: list[Callable[[Host, NcclTopo], Iterator[Compared]]] = [_rates, _nvlinks]
    if host.virtualization != "vm":
        looks += [_links, _nodes]
    found = [one for look in looks for one in look(host, topo)]
    if found:
        return found
    known = (host.pci_paths, host.nic_ports, host.gpus)
    return next((one for one in known if isinstance(one, Missing)), _NOTHING)


def _rates(host: Host, topo: NcclTopo) -> Iterator[Compared]:
    """Network devices. Two ports that NCCL joins have a plus between their names."""
    rates: dict[str, float] = {}
    for port in () if isinstance(host.nic_ports, Missing) else host.nic_ports:
        if port.state == "ACTIVE" and not isinstance(port.rate_gbits, Missing):
            rates[port.nic] = max(port.rate_gbits, rates.get(port.nic, 0.0))
    for net in topo.nets:
        names = net.name.split("+")
        if isinstance(net.rate_gbits, Missing) or not all(name in rates for name in names):
            continue
        here = sum(rates[name] for name in names)
        differs = abs(net.rate_gbits - here) > _ALIKE * here
        yield Compared(differs, f"{net.name} at {net.rate_gbits:g} Gbit/s, here {here:g}", net.line)


def _nvlinks(host: Host, topo: NcclTopo) -> Iterator[Compared]:
    """GPUs with another number of NVLinks: a dump that was made while one was down."""
    counts: dict[str, int] = {}
    for place in () if isinstance(host.topology.gpus, Missing) else host.topology.gpus:
        if isinstance(place.bus_id, str) and isinstance(place.nvlinks, int):
            counts[key(place.bus_id)] = place.nvlinks
    for gpu in () if isinstance(host.gpus, Missing) else host.gpus:
        if not isinstance(gpu.nvlink, Missing) and isinstance(gpu.nvlink.up, int):
            counts[key(gpu.bus_id)] = gpu.nvlink.up
    for one in topo.devices:
        here = counts.get(key(one.name))
        if here is not None and isinstance(one.nvlinks, int):
            told = f"{one.name} with {one.nvlinks} NVLinks, here {here}"
            yield Compared(one.nvlinks != here, told, one.line)


def _links(host: Host, topo: NcclTopo) -> Iterator[Compared]:
    """What both ends of a device's link can do, which is what NCCL would read."""
    paths = _paths(host)
    for one in topo.devices:
        path = None if isinstance(paths, Missing) else paths.get(key(one.name))
        if path is None:
            continue
        for told, here, unit in (
            (one.width, path.link.width_can, "x"),
            (one.speed_gtps, path.link.speed_can_gtps, "GT/s "),
        ):
            if not isinstance(told, Missing) and not isinstance(here, Missing):
                shown = f"{path.name} at {unit}{told:g}, here {unit}{here:g}"
                yield Compared(told != here, shown, one.line)


def _nodes(host: Host, topo: NcclTopo) -> Iterator[Compared]:
    found = () if isinstance(host.pci_tree, Missing) else host.pci_tree.devices
    nodes = {key(one.name): one.numa_node for one in found}
    for one in topo.devices:
        here = nodes.get(key(one.name))
        if isinstance(here, int) and isinstance(one.numa_node, int):
            told = f"{one.name} on NUMA node {one.numa_node}, here {here}"
            yield Compared(here != one.numa_node, told, one.line)
