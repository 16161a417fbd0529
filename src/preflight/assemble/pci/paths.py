"""From the functions on PCI to the way of each GPU, NVSwitch and NIC to its root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from preflight.assemble.pci.acs import judged_for_acs, path_acs
from preflight.assemble.pci.kinds import (
    HOST_BRIDGE,
    NVIDIA,
    NVSWITCH,
    bus_id_of,
    is_own,
    is_server,
    kind_of,
    may_be_a_laptop,
    named_by_order,
)
from preflight.assemble.pci.payload import path_payload, read_request
from preflight.assemble.pci.speeds import with_judged_speeds
from preflight.assemble.pci.trees import bridges_above
from preflight.expect.pcie import link_gbps
from preflight.facts.gpu import NvidiaSmi
from preflight.facts.host import PciFunction
from preflight.facts.pci_tree import LinkErrors, LinkState, PciDevice, PciPath, PciPaths, PciTree
from preflight.facts.topology import Matrix
from preflight.model import NOT_IN_INPUT, Known, Missing

N = TypeVar("N", int, float)

#: Vendors whose functions exist in virtual machines only: QEMU, VMware, Hyper-V, Xen, VirtualBox.
#: Not virtio (0x1af4): BlueField and other cards show it to real machines.
_HYPERVISORS = frozenset({"0x1b36", "0x15ad", "0x1414", "0x5853", "0x80ee"})
#: Unsupported requests are what enumeration itself causes, unexpected completions what is masked by
#: default (pci_regs.h, PCI_ERR_UNC_*; PCI Express Base Specification, 7.8.4.3).
_COMMONPLACE = frozenset({"UnsupReq", "UnxCmplt"})
_TWO_HOSTS = (
    "lspci and nvidia-smi have no GPU in common, as of two hosts: give each its name, "
    "--from NAME=FILE"
)
_NO_PARENT = Missing("not-in-input", "the bridges above it are not in the input")
_DIRECT = Missing("not-applicable", "its own link leads to the root port, there is none above it")


def looks_virtual(tree: Known[PciTree]) -> bool:
    """Whether the functions are those of a virtual machine."""
    if isinstance(tree, Missing):
        return False
    return any(each.vendor_id in _HYPERVISORS for each in tree.devices)


def functions(tree: Known[PciTree], smi: Known[NvidiaSmi]) -> Known[tuple[PciFunction, ...]]:
    """The same list that sysfs gives. An excerpt, which has fewer GPUs than nvidia-smi, has no say
    in how many there are, save for those that nvidia-smi lacks; nor a list in which the classes
    cannot be told. Two lists without a GPU in common are of two hosts."""
    if isinstance(tree, Missing):
        return tree
    found = tuple(
        PciFunction(each.name, f"{each.class_id}00", str(each.vendor_id), _id(each), each.driver,
                    each.line, each.probe)
        for each in tree.devices
        if str(each.class_id)[:4] in ("0x03", "0x12") or each.class_id == NVSWITCH
    )  # fmt: skip
    shown = {bus_id_of(each) for each in tree.devices if kind_of(each) == "gpu"}
    listed = set[str]() if isinstance(smi, Missing) else {gpu.bus_id for gpu in smi.gpus}
    if shown and listed and "" not in listed and not shown & listed:
        return Missing("unreadable", f"{_TWO_HOSTS} ({min(shown)[4:]}, {min(listed)[4:]})")
    whole = shown or any(each.class_id == HOST_BRIDGE for each in tree.devices)
    excerpt = shown <= listed and not all(shows(tree, each) for each in listed - shown)
    if excerpt or not whole:
        return Missing("not-in-input", "lspci is there in part only")
    return found


def shows(tree: Known[PciTree] | None, bus_id: str) -> bool:
    """Whether lspci would show the function with this address: it goes on behind it, and shows the
    port above it or is no excerpt at all. True of sysfs, where there is no tree to ask."""
    if tree is None or isinstance(tree, Missing):
        return tree is None
    if bus_id.count(":") != 2:  # of a GPU without an address nothing can be said
        return False
    domain, bus, _ = bus_id.split(":")
    here = any(
        each.class_id == HOST_BRIDGE
        or (each.secondary == int(bus, 16) and bus_id_of(each).startswith(f"{domain}:"))
        for each in tree.devices
    )
    return here and any(bus_id_of(each) > bus_id for each in tree.devices)


def _id(device: PciDevice) -> str:
    return device.device_id if isinstance(device.device_id, str) else ""


def paths(
    tree: Known[PciTree], smi: Known[NvidiaSmi], virtualization: Known[str],
    matrix: Known[Matrix] = NOT_IN_INPUT,
) -> Known[PciPaths]:  # fmt: skip
    """One record for each GPU, NVSwitch, NIC and NVMe disk that no virtual machine was given."""
    if isinstance(tree, Missing):
        return tree
    gpus = () if isinstance(smi, Missing) else smi.gpus
    names = {gpu.bus_id: gpu.name for gpu in gpus} or named_by_order(tree, matrix)
    judged = not isinstance(virtualization, Missing)  # else pcie.width cannot be
    told = {gpu.bus_id for gpu in gpus if judged and not isinstance(gpu.pcie.width, Missing)}
    view = _View(tree, virtualization, told)
    found = with_judged_speeds(
        view.path(device, kind, names.get(bus_id_of(device), device.name))
        for device in tree.devices
        if (kind := kind_of(device)) and is_own(device)
    )
    sleeps, rest = may_be_a_laptop(tree.devices), ("nvswitch", "nic")
    awake = rest if sleeps else ("gpu", *rest)
    silent = tuple(view.path(each, "bridge", each.name) for each in _silent(tree.devices, sleeps))
    return PciPaths(
        devices=_those(found, "GPU, NVSwitch or NIC", awake),
        answering=_those((*found, *silent), "GPU, NVSwitch or NIC", (*awake, "bridge")),
        may_sleep=_those(found, "GPU that a laptop may switch off", ("gpu",) if sleeps else ()),
        gpus=_those(found, "NVIDIA GPU", ("gpu",)),
        cards=_those(found, "GPU of a server", () if sleeps else ("gpu",)),
        board=_those(found, "NVIDIA GPU or NVSwitch", ("gpu", "nvswitch")),
        nics=_those(found, "NIC", ("nic",)),
        nvmes=_those(found, "NVMe disk", ("nvme",)),
        acs=judged_for_acs(
            tree, _those(found, "NVIDIA GPU", ("gpu",)), _those(found, "NIC", ("nic",))
        ),
    )


def _those(found: Sequence[PciPath], what: str, kinds: Sequence[str]) -> Known[tuple[PciPath, ...]]:
    kept = tuple(each for each in found if each.kind in kinds)
    return kept or Missing("not-applicable", f"no {what} is shown on PCI")


def _silent(devices: Sequence[PciDevice], sleeps: bool) -> Iterator[PciDevice]:
    """Bridges that do not answer, and what else stands where the list breaks off. Laptops switch
    bridges off at rest."""
    server = not sleeps and any(is_server(each) or kind_of(each) == "gpu" for each in devices)
    for each in devices:
        lost = each.answers is False and str(each.class_id).startswith("0x06") and server
        cut = isinstance(each.answers, Missing) and each.answers.kind == "unreadable"
        if (lost or cut) and not kind_of(each):
            yield each


class _View:
    """The tree with what is asked of it for every device."""

    def __init__(self, tree: PciTree, virtualization: Known[str], by_driver: set[str]) -> None:
        self.by_driver = by_driver
        self.by_name = {each.name: each for each in tree.devices}
        told = None if isinstance(virtualization, Missing) else virtualization == "vm"
        self.virtual = looks_virtual(tree) if told is None else told
        self.told_virtual = told is not None

    def path(self, device: PciDevice, kind: str, name: str) -> PciPath:
        above = bridges_above(device, self.by_name)
        return PciPath(
            name=name,
            bus_id=bus_id_of(device),
            kind=kind,
            answers=device.answers,
            by_driver=bus_id_of(device) in self.by_driver,
            virtual=self.virtual or (not self.told_virtual and _on_root_bus(device, above)),
            bridges=tuple(each.name for each in above),
            link=self._link(device, above[0] if above else None),
            above=self._slowest(above),
            errors=self._errors([device, *above]),
            acs=path_acs(above),
            payload=path_payload(device, above),
            read_request_bytes=read_request(device),
            product=device.product,
            iommu_type=device.iommu_type,
            line=device.line,
            probe=device.probe,
        )

    def _link(self, lower: PciDevice, upper: PciDevice | None) -> LinkState:
        other = lower if upper is None else upper
        width_can = _least(lower.width_max, other.width_max)
        speed_can = _least(lower.speed_max_gtps, other.speed_max_gtps)
        slot = _end(upper) if upper else "which is not in the input"
        return LinkState(
            lower=lower.name,
            width=lower.width,
            width_can=width_can,
            speed_gtps=lower.speed_gtps,
            speed_can_gtps=speed_can,
            rate_gbps=_rate_now(lower),
            rate_can_gbps=_rate(speed_can, width_can),
            card_width=lower.width_max,
            slot_width=upper.width_max if upper else _NO_PARENT,
            ends=f"device {_end(lower)}, port above {slot}",
            line=lower.link_line or lower.line,
            probe=lower.link_probe or lower.probe,
        )

    def _slowest(self, above: Sequence[PciDevice]) -> Known[LinkState]:
        """The slowest of the links above the device's own: below each of them is the upstream port
        of a switch."""
        if not above:
            return _NO_PARENT
        unread = next((each.port for each in above if isinstance(each.port, Missing)), None)
        if unread is not None:
            return unread
        if above[-1].port != "Root Port" and "Root" not in str(above[-1].port):
            return _NO_PARENT
        links = [
            self._link(lower, upper)
            for lower, upper in pairwise(above)
            if lower.port == "Upstream Port"
        ]
        broken = next((each for each in links if isinstance(each.rate_gbps, Missing)), None)
        return broken or min(links, key=_rate_of, default=_DIRECT)

    def _errors(self, way: Sequence[PciDevice]) -> LinkErrors:
        found: list[tuple[str, PciDevice]] = []
        for each in way:
            if isinstance(each.uncorrected, Missing):
                continue
            flags = (flag for flag in each.uncorrected if flag not in _COMMONPLACE)
            found += [(f"{each.name} {flag}", each) for flag in flags]
        if isinstance(way[0].uncorrected, Missing) and not found:
            return LinkErrors(way[0].uncorrected, way[0].line, way[0].probe)
        first = found[0][1] if found else way[0]
        line = first.errors_line or first.line
        return LinkErrors(tuple(flag for flag, _ in found), line, first.probe)


def _rate_of(link: LinkState) -> float:
    return link.rate_gbps if isinstance(link.rate_gbps, float) else 0.0


def _rate_now(device: PciDevice) -> Known[float]:
    """By speed and width; of hwloc, which tells neither, as it is."""
    rate = _rate(device.speed_gtps, device.width)
    if isinstance(rate, Missing) and not isinstance(device.rate_gbps, Missing):
        return device.rate_gbps
    return rate


def _rate(speed: Known[float], width: Known[int]) -> Known[float]:
    if isinstance(speed, Missing):
        return speed
    return width if isinstance(width, Missing) else link_gbps(speed, width)


def _least(one: Known[N], other: Known[N]) -> Known[N]:
    """What both ends can do; where the other end does not tell, what this one can."""
    if isinstance(other, Missing) or isinstance(one, Missing):
        return one
    return min(one, other)


def _end(device: PciDevice) -> str:
    speed, width = device.speed_max_gtps, device.width_max
    if isinstance(speed, Missing) or isinstance(width, Missing):
        return "not told"
    return f"{speed:g} GT/s x{width}"


def _on_root_bus(device: PciDevice, above: Sequence[PciDevice]) -> bool:
    """A card without a port above it is one that a hypervisor put there."""
    return not above and device.name.split(":")[1] == "00"


def has_nvswitch(pci: Known[tuple[PciFunction, ...]]) -> Known[bool]:
    """Whether an NVSwitch is on PCI that is not handed to a virtual machine."""
    if isinstance(pci, Missing):
        return pci
    return any(
        each.vendor_id == NVIDIA and each.class_id[:6] == NVSWITCH and each.driver != "vfio-pci"
        for each in pci
    )
