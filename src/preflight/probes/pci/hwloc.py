"""PCI and NUMA nodes from `lstopo --of xml` of hwloc, versions 1 and 2 of its format.

The format: hwloc.dtd and hwloc2.dtd, and "Importing and exporting topologies from/to XML files" in
hwloc's documentation. The speed of a link is told as GB/s of all its lanes, and 0 where it is not
known; bridges without a device below them are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from msgspec.structs import replace

from preflight import cpulists
from preflight.errors import ParseError
from preflight.facts.hwloc import Machine
from preflight.facts.numa import NumaNode
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.printable import printable
from preflight.probes.pci.names import name_of
from preflight.probes.spec import probe
from preflight.probes.xml_text import parsed

_PROBE = "hwloc"

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_TYPE = re.compile(
    r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\](?: \[[0-9a-f:]{9}\])?(?: ([0-9a-f]{2}))?",
    re.ASCII,
)
_BUSES = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-([0-9a-f]{2})\]", re.ASCII)
_RATE = re.compile(r"[0-9]{1,4}\.[0-9]{1,9}", re.ASCII)
_SET = re.compile(r"(?:0x[0-9a-f]{1,8})?(?:,(?:0x[0-9a-f]{1,8})?){0,2048}", re.ASCII)
_INTEGER = re.compile(r"[0-9]{1,18}", re.ASCII)
#: No object lies deeper.
_DEEPEST = 64


class _Place(NamedTuple):
    """Where an object is: its way on PCI, and the node that it is near to."""

    way: tuple[str, ...] = ()
    node: Known[int] = NOT_IN_INPUT
    depth: int = 0  # of objects


@probe(_PROBE, ["lstopo", "--of", "xml"], timeout_s=20)
def hwloc(text: str) -> Machine:
    """The document; what stands before it is no part of it."""
    root, lines = _document(text)
    devices: dict[str, PciDevice] = {}
    nodes: dict[int, NumaNode] = {}
    for element, place in _objects(root, _Place()):
        line, kind = lines[element], element.get("type", "")
        if kind in ("PCIDev", "Bridge") and (device := _device(element, place, line)):
            devices.setdefault(device.name, device)
        elif kind == "NUMANode" and (node := _node(element, line)):
            nodes.setdefault(int(node.name.removeprefix("node")), node)
    found = tuple(devices[name] for name in sorted(devices))
    return Machine(
        PciTree(found, probe=_PROBE) if found else _no("PCI devices"),
        _with_distances(nodes, root) or _no("NUMA nodes"),
        lines[root],
        _PROBE,
    )


def _document(text: str) -> tuple[Element, dict[Element, int]]:
    start = min((at for at in map(text.find, ("<!DOCTYPE", "<topology")) if at >= 0), default=-1)
    end = text.rfind("</topology>")
    if start < 0:
        raise ParseError("expected lstopo's XML, which begins with <topology", 1)
    if end < start:
        raise ParseError("the XML is cut short: no closing </topology>", text.count("\n") + 1)
    above = "\n" * text.count("\n", 0, start)
    root, lines = parsed(above + text[start : end + len("</topology>")])
    if root.tag != "topology":
        raise ParseError(f"expected <topology>, got <{printable(root.tag[:60])}>", lines[root])
    return root, lines


def _no(what: str) -> Missing:
    return Missing("not-in-input", f"lstopo's XML holds no {what}")


def _objects(parent: Element, place: _Place) -> Iterator[tuple[Element, _Place]]:
    """Every object, with where its parent has put it."""
    for element in parent:
        if element.tag != "object" or place.depth > _DEEPEST:
            continue
        yield element, place
        node = _only(element.get("nodeset", ""))
        below = place._replace(
            way=(*place.way, *_step(element)),
            node=place.node if node is None else node,
            depth=place.depth + 1,
        )
        yield from _objects(element, below)


def _step(element: Element) -> tuple[str, ...]:
    """What a bridge adds to the way of those below it."""
    if element.get("type") != "Bridge":
        return ()
    address, buses = element.get("pci_busid", ""), _BUSES.fullmatch(element.get("bridge_pci", ""))
    if _ADDRESS.fullmatch(address):
        return (address,)
    return (f"pci{buses[1]}:{buses[2]}",) if buses else ()


def _device(element: Element, place: _Place, line: int) -> PciDevice | None:
    address, told = element.get("pci_busid", ""), _TYPE.fullmatch(element.get("pci_type", ""))
    if not _ADDRESS.fullmatch(address) or not told:
        return None
    class_id, vendor, device, revision = told.groups()
    info = {each.get("name"): each.get("value", "") for each in element.iterfind("info")}
    named = " ".join(filter(None, (info.get("PCIVendor"), info.get("PCIDevice"))))
    return PciDevice(
        address,
        line,
        _PROBE,
        class_id=f"0x{class_id}",
        class_name=name_of(class_id) or NOT_IN_INPUT,
        vendor_id=f"0x{vendor}",
        device_id=f"0x{device}",
        product=element.get("name") or named or f"{vendor}:{device}",
        revision=revision or NOT_IN_INPUT,
        answers=NOT_IN_INPUT,
        **_bridge(element, place),
        rate_gbps=_rate(element.get("pci_link_speed", "")),
        link_line=line,
        numa_node=place.node,
        way=place.way,
        os_names=tuple(each.get("name", "") for each in element.iterfind("object") if _is_os(each)),
    )


def _is_os(element: Element) -> bool:
    return element.get("type") == "OSDev" and bool(element.get("name"))


def _bridge(element: Element, place: _Place) -> dict[str, Any]:
    """Below a root complex a bridge is a root port; then upstream and downstream ports by turns."""
    buses = _BUSES.fullmatch(element.get("bridge_pci", ""))
    if element.get("type") != "Bridge":
        return {"port": "Endpoint"}
    depth = sum(1 for each in place.way if not each.startswith("pci"))
    port = "Root Port" if not depth else "Upstream Port" if depth % 2 else "Downstream Port"
    told: dict[str, Any] = {"port": port}
    if buses:
        told |= {"secondary": int(buses[2], 16), "subordinate": int(buses[3], 16)}
    return told


def _rate(text: str) -> Known[float]:
    found = float(text) if _RATE.fullmatch(text) else 0.0
    return round(found, 2) or Missing("not-in-input", "lstopo tells no speed of its link")


def _node(element: Element, line: int) -> NumaNode | None:
    number = element.get("os_index", "")
    if not _INTEGER.fullmatch(number) or len(number) > 4:
        return None
    memory = element.get("local_memory", "")
    cpus = _members(element.get("cpuset", ""))
    return NumaNode(
        f"node{int(number)}",
        cpus=NOT_IN_INPUT if cpus is None else len(cpus),
        cpu_list=NOT_IN_INPUT if cpus is None else cpulists.fold(cpus),
        total_bytes=int(memory) if _INTEGER.fullmatch(memory) else NOT_IN_INPUT,
        line=line,
        probe=_PROBE,
    )


def _members(text: str) -> list[int] | None:
    """`0x000000ff,0xffffffff`: 32 in a word, the highest first; a word of none is left empty."""
    if not text or not _SET.fullmatch(text):
        return None
    words = [int(word, 16) if word else 0 for word in text.split(",")]
    whole = 0
    for word in words:
        whole = whole << 32 | word
    return [at for at in range(whole.bit_length()) if whole >> at & 1]


def _only(text: str) -> int | None:
    """The one member of a set; None where it has none or several."""
    members = _members(text)
    return members[0] if members and len(members) == 1 else None


def _with_distances(nodes: dict[int, NumaNode], root: Element) -> tuple[NumaNode, ...]:
    """The nodes in their order, with the distances that version 2 tells by their numbers."""
    ordered = [nodes[at] for at in sorted(nodes)]
    for told in root.iterfind("distances2"):
        values = _numbers(told, "u64values")
        whole = len(values) == len(ordered) ** 2 and _numbers(told, "indexes") == sorted(nodes)
        if told.get("type") == "NUMANode" and told.get("indexing") == "os" and whole:
            size = len(ordered)
            rows = [tuple(values[at * size : (at + 1) * size]) for at in range(size)]
            return tuple(
                replace(node, distances=row) for node, row in zip(ordered, rows, strict=True)
            )
    return tuple(ordered)


def _numbers(parent: Element, tag: str) -> list[int]:
    words = " ".join(each.text or "" for each in parent.iterfind(tag)).split()
    return [int(word) for word in words if _INTEGER.fullmatch(word)]
