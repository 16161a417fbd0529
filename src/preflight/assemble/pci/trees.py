"""What lspci, its tree, sysfs and hwloc tell of PCI -> one tree, each field by the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.assemble.tables import SUPPLIERS
from preflight.facts.hwloc import Machine
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import NOT_IN_INPUT, Known, Missing

#: What another tool may tell in place of the first: a field, and where its evidence stands.
_LINK = ("speed_gtps", "width", "speed_max_gtps", "width_max")
_FILLED = (
    "answers", "class_id", "class_name", "vendor_id", "device_id", "product", "port", "primary",
    "secondary", "subordinate", "payload_bytes", "read_request_bytes", "driver", "numa_node",
    "iommu_group", "iommu_type", "rate_gbps", "acs", "uncorrected", "corrected",
)  # fmt: skip
#: What lspci alone tells: where it could not be asked, its reason is theirs.
_BY_LSPCI = ("payload_bytes", "read_request_bytes", "acs", "uncorrected", "corrected")


def pci_tree(found: Mapping[str, Any]) -> Known[PciTree]:
    """The tree of all answers, by probe; the first reason where none of them told one."""
    answers = [found[name] for name in SUPPLIERS["pci_tree"] if name in found]
    told = [each.tree if isinstance(each, Machine) else each for each in answers]
    trees = [each for each in told if not isinstance(each, Missing)]
    if not trees:
        return told[0] if told else NOT_IN_INPUT
    devices: dict[str, PciDevice] = {}
    for tree in trees:
        for each in tree.devices:
            devices[each.name] = _filled(devices[each.name], each) if each.name in devices else each
    if len(trees) > 1:
        devices = {name: devices[name] for name in sorted(devices)}
    lspci = found.get("lspci")
    if isinstance(lspci, Missing):
        devices = {name: _untold(each, lspci) for name, each in devices.items()}
    cut = all(tree.may_be_cut for tree in trees)  # what one of them lacks another may tell
    return replace(trees[0], devices=with_ways(devices.values()), may_be_cut=cut)


def _filled(first: PciDevice, other: PciDevice) -> PciDevice:
    """The first, with what it could not tell from the other."""
    told: dict[str, Any] = {
        name: theirs
        for name in _FILLED
        if _open(getattr(first, name)) and not isinstance(theirs := getattr(other, name), Missing)
    }
    if first.answers is not False and any(_open(getattr(first, name)) for name in _LINK):
        told |= {name: getattr(other, name) for name in _LINK}
        told |= {"link_line": other.link_line or other.line, "link_probe": other.probe}
    return replace(
        first,
        **told,
        way=first.way or other.way,
        virtual=first.virtual or other.virtual,
        os_names=first.os_names or other.os_names,
    )


def _open(value: Any) -> bool:
    """Whether another may know: not what a device is said not to have."""
    return isinstance(value, Missing) and value.kind != "not-applicable"


def _untold(device: PciDevice, why: Missing) -> PciDevice:
    return replace(device, **{name: why for name in _BY_LSPCI if _open(getattr(device, name))})


def with_ways(devices: Iterable[PciDevice]) -> tuple[PciDevice, ...]:
    """The devices with their ways from the top; by the numbers of the buses where no path tells.
    Where bridges are not in the input, the way begins at the first bus that is known."""
    given = tuple(devices)
    bridges = {
        (each.name.partition(":")[0], each.secondary): each
        for each in given
        if isinstance(each.secondary, int) and each.secondary
    }
    return tuple(each if each.way else replace(each, way=_way(each, bridges)) for each in given)


def _way(device: PciDevice, bridges: Mapping[tuple[str, Any], PciDevice]) -> tuple[str, ...]:
    above = list(_above(device, bridges))
    domain, bus, _ = (above[-1] if above else device).name.split(":")
    return (f"pci{domain}:{bus}", *(each.name for each in reversed(above)))


def _above(device: PciDevice, bridges: Mapping[tuple[str, Any], PciDevice]) -> Iterator[PciDevice]:
    """The bridges from the device to the root; hostile bus numbers cannot make it endless."""
    domain, bus, _ = device.name.split(":")
    number, seen = int(bus, 16), set[int]()
    while number not in seen:
        seen.add(number)
        bridge = bridges.get((domain, number))
        if bridge is None:
            return
        yield bridge
        number = int(bridge.name.split(":")[1], 16)


def bridges_above(device: PciDevice, by_name: Mapping[str, PciDevice]) -> Sequence[PciDevice]:
    """The bridges above a device, from it upwards to its root port, as far as they are there. What
    lies above an inner root complex (a VMD domain) is no part of its way for data."""
    above: list[PciDevice] = []
    for name in reversed(device.way):
        if name.startswith("pci") or name not in by_name:
            break
        above.append(by_name[name])
    return above
