"""What hangs on what: from root ports over switches to the devices that are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from preflight.facts.host import Host
from preflight.facts.pci_tree import PciDevice
from preflight.model import MapNode, Missing
from preflight.placement.map.devices import Drawn
from preflight.placement.map.links import Links, address_of, short

#: What the ports of bridges are, by their place below the root, where nothing tells it: switches
#: have one port up and several down.
_BY_PLACE = ("Upstream Port", "Downstream Port")


class _Bridge(Struct):
    """A bridge with what is below it that is drawn."""

    device: PciDevice
    above: PciDevice | None
    depth: int
    bridges: dict[str, _Bridge] = field(default_factory=dict)
    devices: list[Drawn] = field(default_factory=list)


def branches(host: Host, found: Sequence[Drawn]) -> list[Drawn]:
    """The root ports and what is on none, each with its NUMA node."""
    roots: dict[str, _Bridge] = {}
    bare: list[Drawn] = []
    bridges = _by_bus(host)
    for drawn in found:
        way = list(_way(drawn.address, bridges)) if drawn.address else []
        level, above = roots, None
        for depth, device in enumerate(reversed(way)):
            bridge = level.setdefault(device.name, _Bridge(device, above, depth))
            level, above = bridge.bridges, device
            if depth == len(way) - 1:
                bridge.devices.append(drawn)
        if not way:
            bare.append(drawn)
    links = Links(host)
    return [*(_root(each, links) for each in roots.values()), *bare]


def _by_bus(host: Host) -> dict[tuple[str, int], PciDevice]:
    tree = () if isinstance(host.pci_tree, Missing) else host.pci_tree.devices
    return {
        (address_of(each.name).split(":")[0], each.secondary): each
        for each in tree
        if isinstance(each.secondary, int) and each.secondary
    }


def _way(address: str, bridges: dict[tuple[str, int], PciDevice]) -> Iterator[PciDevice]:
    """The bridges from a device to the root; hostile bus numbers cannot make it endless."""
    domain, bus, _ = address.split(":")
    number, seen = int(bus, 16), set[int]()
    while number not in seen and (bridge := bridges.get((domain, number))):
        seen.add(number)
        yield bridge
        number = int(address_of(bridge.name).split(":")[1], 16)


def _root(bridge: _Bridge, links: Links) -> Drawn:
    port = bridge.device.port
    # Of an excerpt the topmost bridge may be any.
    kind = "root" if isinstance(port, Missing) or "Root" in port else "bridge"
    node = MapNode(kind, bridge.device.name, below=tuple(_below(bridge, links)))
    told = bridge.device.numa_node
    if isinstance(told, int) and told >= 0:
        return Drawn(node, bridge.device.name, told)
    known = (each.numa_node for each in _all(bridge) if each.numa_node is not None)
    return Drawn(node, bridge.device.name, next(known, None))


def _all(bridge: _Bridge) -> Iterator[Drawn]:
    yield from bridge.devices
    for each in bridge.bridges.values():
        yield from _all(each)


def _below(bridge: _Bridge, links: Links) -> Iterator[MapNode]:
    """What hangs on a bridge; the ports of a switch that lead down are not told one by one."""
    yield from (drawn.node for drawn in bridge.devices)
    for each in bridge.bridges.values():
        if _port(each) == "Downstream Port":
            yield from _below(each, links)
            continue
        kind = "switch" if _port(each) == "Upstream Port" else "bridge"
        link, fault = links.of_switch(each.device, each.above)
        label, name = short(each.device.product), each.device.name
        yield MapNode(kind, name, label, link, fault, tuple(_below(each, links)))


def _port(bridge: _Bridge) -> str:
    """`depth` 0 is the root port."""
    told = bridge.device.port
    return _BY_PLACE[(bridge.depth - 1) % 2] if isinstance(told, Missing) else told
