"""How much a device sends and asks for at once, held against the bridges above it."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.facts.pci_tree import PathPayload, PciDevice
from preflight.model import Known, Missing

#: The registers of a virtual function say nothing: its adapter's count (Single Root I/O
#: Virtualization and Sharing Specification 1.1, 3.5.4).
_VIRTUAL = Missing("not-applicable", "it is a virtual function: its adapter's setting counts")


def path_payload(device: PciDevice, above: Sequence[PciDevice]) -> PathPayload:
    """Bridges that do not tell theirs are left out, unless none tells it."""
    own, first = _own(device, device.payload_bytes), device.line
    told = [each for each in above if not isinstance(each.payload_bytes, Missing)]
    if isinstance(own, Missing):
        return PathPayload(own, own, first, device.probe)
    if not told:
        missing = Missing("not-in-input", "the bridges above it are not in the input")
        why = above[0].payload_bytes if above else missing
        return PathPayload(own, why if isinstance(why, Missing) else missing, first, device.probe)
    unlike = [each for each in told if each.payload_bytes != own]
    names = tuple(f"{each.name} at {each.payload_bytes}" for each in unlike)
    return PathPayload(own, names, unlike[0].line if unlike else first, device.probe)


def read_request(device: PciDevice) -> Known[int]:
    """The most bytes that it asks for at once."""
    return _own(device, device.read_request_bytes)


def _own(device: PciDevice, value: Known[int]) -> Known[int]:
    """A virtual function shows a link without lanes."""
    unlinked = isinstance(device.width, Missing) and device.width.kind == "not-applicable"
    return _VIRTUAL if device.virtual or (device.answers is not False and unlinked) else value
