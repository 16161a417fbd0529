"""The devices of a host that are drawn, each with the name that its driver gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.nics import Nic
from preflight.facts.pci_tree import PciDevice
from preflight.facts.topology import NicPlace
from preflight.model import Known, MapNode, Missing
from preflight.nodesets import fold
from preflight.placement.map.links import Links, address_of, short
from preflight.placement.map.ports import Ports

_NVIDIA, _VIRTIO = "0x10de", "0x1af4"
_GPU = ("0x0300", "0x0302")
_NVSWITCH, _NVME = "0x0680", "0x0108"
_VIRTUAL = "Virtual Function"
#: Base classes: network, processing accelerators; 3D controllers that show nothing on a screen.
_NETWORK, _ACCELERATOR, _THREE_D = "0x02", "0x12", "0x0302"


class Drawn(Struct, frozen=True):
    """A device and where it is. `address` is empty where nothing tells its place on PCI."""

    node: MapNode
    address: str = ""
    numa_node: int | None = None


def devices_of(host: Host) -> list[Drawn]:
    """Those on PCI in the order of their addresses, then those that only other tools name."""
    links, ports = Links(host), Ports(host)
    gpus = _gpu_names(host)
    tree = () if isinstance(host.pci_tree, Missing) else host.pci_tree.devices
    cards = _cards(tree, ports)
    found = [_on_pci(card, spare, gpus, links, ports) for card, spare in cards]
    there = {address_of(each.name) for card, _ in cards for each in card}
    return [*found, *_off_pci(host, there, links, ports)]


def _kind(device: PciDevice) -> str:
    """gpu | nvswitch | nic | nvme | other; empty for what is not drawn: the console, disks on a
    controller, timers."""
    told = str(device.class_id)
    if device.vendor_id == _NVIDIA and (told in _GPU or told == _NVSWITCH):
        return "nvswitch" if told == _NVSWITCH else "gpu"
    if told == _NVME or told[:4] == _NETWORK:
        return "nvme" if told == _NVME else "nic"
    virtual_disk = device.vendor_id == _VIRTIO and told[:4] == "0x01"
    return "other" if told[:4] == _ACCELERATOR or told == _THREE_D or virtual_disk else ""


def _cards(tree: Sequence[PciDevice], ports: Ports) -> list[tuple[list[PciDevice], int]]:
    """The functions of one card that do the same, and how many virtual ones belong to it."""
    there = sorted(filter(_kind, tree), key=lambda each: address_of(each.name))
    giving = [each for each in there if _kind(each) == "nic" and not ports.is_virtual(each)]
    cards: list[list[PciDevice]] = []
    virtual = Counter[str]()
    for device in there:
        giver = _giver(giving, device) if ports.is_virtual(device) else None
        if giver is not None:
            virtual[giver.name] += 1
        elif cards and _slot(cards[-1][0]) == _slot(device):
            cards[-1].append(device)
        else:
            cards.append([device])
    return [(card, sum(virtual[each.name] for each in card)) for card in cards]


def _giver(giving: Sequence[PciDevice], device: PciDevice) -> PciDevice | None:
    """The adapter that gives this virtual function away: the last above it of its model, else of
    its vendor. They may stand behind other devices."""
    at, domain = address_of(device.name), device.name.split(":")[0]
    mine = [
        each
        for each in giving
        if each.vendor_id == device.vendor_id
        and each.name.split(":")[0] == domain
        and address_of(each.name) < at
    ]
    model = short(str(device.product).replace(_VIRTUAL, "")).strip()
    same = [each for each in mine if short(each.product) == model]
    return next(reversed(same or mine), None)


def _slot(device: PciDevice) -> tuple[str, str]:
    return device.name.rpartition(".")[0], _kind(device)


def _on_pci(
    card: Sequence[PciDevice], virtual: int, gpus: dict[str, str], links: Links, ports: Ports
) -> Drawn:
    first, kind = card[0], _kind(card[0])
    address = address_of(first.name)
    names = [each for device in card for each in ports.names(device.name)]
    name = gpus.get(address) or fold(dict.fromkeys(names)) or first.name
    link, fault = links.of(first)
    label = _label(first, name, kind, links)
    told = [label, ports.told(names)] if kind == "nic" else [label]
    told += [f"{virtual} virtual functions"] if virtual else []
    told += ["handed to a virtual machine"] if first.driver == "vfio-pci" else []
    faults = [fault, ports.fault(names)] if kind == "nic" else [fault]
    node = MapNode(kind, name, _joined(told), link, _joined(faults))
    return Drawn(node, address, _node(first.numa_node))


def _joined(told: Iterable[str]) -> str:
    return ", ".join(filter(None, told))


def _label(device: PciDevice, name: str, kind: str, links: Links) -> str:
    if kind == "gpu":
        return links.product(device.name) or short(device.product)
    return short(device.product)


def _gpu_names(host: Host) -> dict[str, str]:
    places = () if isinstance(host.topology.gpus, Missing) else host.topology.gpus
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    named = {address_of(each.bus_id): each.name for each in places if isinstance(each.bus_id, str)}
    return named | {address_of(each.bus_id): each.name for each in gpus if each.bus_id}


def _off_pci(host: Host, there: set[str], links: Links, ports: Ports) -> Iterator[Drawn]:
    """GPUs and adapters that no list of PCI functions in the input shows."""
    drawn = set[str]()
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    places = () if isinstance(host.topology.gpus, Missing) else host.topology.gpus
    numa = {each.name: _node(each.numa_node) for each in places}
    for name, bus_id in [*_named(gpus), *_named(places)]:
        if name not in drawn and not (bus_id and address_of(bus_id) in there):
            drawn.add(name)
            link, fault = links.of_gpu(name)
            node = MapNode("gpu", name, links.product(bus_id, name), link, fault)
            yield Drawn(node, numa_node=numa.get(name))
    yield from _nics_off_pci(host, there, ports)


def _nics_off_pci(host: Host, there: set[str], ports: Ports) -> Iterator[Drawn]:
    places = () if isinstance(host.topology.nics, Missing) else host.topology.nics
    nics = () if isinstance(host.nics, Missing) else host.nics
    hidden = {each.name for each in nics if each.virtual}
    both: list[Nic | NicPlace] = [*nics, *places]
    known = {each.name: each for each in both if each.name not in hidden}
    for name, each in known.items():
        if not (isinstance(each.address, str) and address_of(each.address) in there):
            node = MapNode("nic", name, ports.told([name]), fault=ports.fault([name]))
            yield Drawn(node, numa_node=_node(each.numa_node))


def _named(devices: Iterable[object]) -> list[tuple[str, str]]:
    told = [(getattr(each, "name", ""), getattr(each, "bus_id", "")) for each in devices]
    return [(name, bus_id if isinstance(bus_id, str) else "") for name, bus_id in told]


def _node(told: Known[int]) -> int | None:
    """The kernel says -1 where the firmware has not told it."""
    return told if isinstance(told, int) and told >= 0 else None
