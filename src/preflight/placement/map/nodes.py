"""The branches of a host by the NUMA nodes on which they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.facts.host import Host
from preflight.facts.topology import Topology
from preflight.model import MapNode, Missing
from preflight.placement.map.devices import Drawn

#: Devices that PIX or PXB joins are behind switches of their own.
_SWITCHED = ("PIX", "PXB")
#: Paths that do not leave a NUMA node. PHB is the word for it where nodes are not told apart.
_WITHIN = ("PIX", "PXB", "PHB", "NODE")


def by_node(host: Host, found: Sequence[Drawn]) -> tuple[MapNode, ...]:
    """A node of the map for each NUMA node that has processors or devices, in their order; what is
    on none that is known comes last."""
    cpus = _cpus(host)
    where: dict[int | None, list[Drawn]] = {number: [] for number in cpus}
    only = next(iter(cpus)) if len(cpus) == 1 and not isinstance(host.numa_nodes, Missing) else None
    beside = nodes_beside(host.topology)
    for each in found:
        number = each.numa_node
        if number is None:
            number = beside.get(each.node.name, only)
        where.setdefault(number, []).append(each)
    order = sorted(where, key=lambda number: (number is None, number or 0))
    return tuple(
        MapNode("numa", _name(number), cpus.get(number, ""), below=_below(host, where[number]))
        for number in order
        if where[number] or cpus.get(number)
    )


def _name(number: int | None) -> str:
    return "NUMA node not told" if number is None else f"NUMA node {number}"


def nodes_beside(topology: Topology) -> dict[str, int]:
    """The nodes of adapters by those of the GPUs that they reach within a node."""
    places = () if isinstance(topology.gpus, Missing) else topology.gpus
    links = () if isinstance(topology.links, Missing) else topology.links
    nodes = {each.name: each.numa_node for each in places if isinstance(each.numa_node, int)}
    return {one.b: nodes[one.a] for one in links if one.a in nodes and one.path in _WITHIN}


def _cpus(host: Host) -> dict[int | None, str]:
    """The processors of each node; "" where they are not known."""
    nodes = () if isinstance(host.numa_nodes, Missing) else host.numa_nodes
    numbers = {each.name: each.name.removeprefix("node") for each in nodes}
    found: dict[int | None, str] = {
        int(number): _listed(each.cpu_list, each.cpus)
        for each in nodes
        if (number := numbers[each.name]).isdecimal()
    }
    places = () if isinstance(host.topology.gpus, Missing) else host.topology.gpus
    for place in places:
        if isinstance(place.numa_node, int) and isinstance(place.cpus, str):
            found[place.numa_node] = found.get(place.numa_node) or f"CPUs {place.cpus}"
    return found


def _listed(cpu_list: object, cpus: object) -> str:
    if isinstance(cpu_list, str):
        return f"CPUs {cpu_list}" if cpu_list else ""
    return f"{cpus} CPUs" if isinstance(cpus, int) and cpus else ""


def _below(host: Host, found: Sequence[Drawn]) -> tuple[MapNode, ...]:
    """What PCI tells of as it is; the rest by the switches that the table of links tells of."""
    told = [each.node for each in sorted(found, key=_place) if each.address]
    return (*told, *_switched([each.node for each in found if not each.address], host.topology))


def _place(drawn: Drawn) -> tuple[int, str]:
    """The order of addresses, by domains: 10000 comes after 0001."""
    return len(drawn.address), drawn.address


def _switched(nodes: Sequence[MapNode], topology: Topology) -> Iterator[MapNode]:
    links = () if isinstance(topology.links, Missing) else topology.links
    near = {(one.a, one.b): one.path for one in links if one.path in _SWITCHED}
    near |= {(b, a): path for (a, b), path in near.items()}
    left = list(nodes)
    while left:
        group = [left.pop(0)]
        for each in group:
            joined = [other for other in left if (each.name, other.name) in near]
            left = [other for other in left if other not in joined]
            group += joined
        if len(group) == 1:
            yield group[0]
            continue
        paths = {near.get((a.name, b.name)) for a in group for b in group if a is not b}
        name = "a PCIe switch" if paths == {"PIX"} else "PCIe switches"
        yield MapNode("switch", name, below=tuple(group))
