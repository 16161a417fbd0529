"""How GPUs, NVSwitches, network adapters and NVMe drives hang on PCI, in words."""

from __future__ import annotations

from collections import Counter
from typing import Any

from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import Known, Missing

_NVIDIA = "0x10de"


def shape(tree: Known[PciTree]) -> Known[str]:
    """The shape, such as `numa0: 2 x (2 gpu, nic), nvme; numa1: ...`: alike exactly where machines
    are built alike, for it holds no bus number. Parentheses are a bridge or a root complex with
    several devices below it; bridges with one thing below are left out, and so are virtual
    functions, which are what somebody made."""
    if isinstance(tree, Missing):
        return tree
    nodes: dict[int, dict[str, Any]] = {}
    for device in tree.devices:
        kind = "" if device.virtual else _kind(device)
        if kind:
            node = device.numa_node if isinstance(device.numa_node, int) else -1
            _hang(nodes.setdefault(node, {}), device, kind)
    told = (f"{_node(node)}{_below(below)}" for node, below in sorted(nodes.items()))
    return "; ".join(told) or "none of GPU, NVSwitch, network adapter and NVMe on PCI"


def _kind(device: PciDevice) -> str:
    """What it is; "" for the display of a management controller and the like."""
    nvidia, class_id = device.vendor_id == _NVIDIA, str(device.class_id)
    if class_id.startswith("0x02"):
        return "nic"
    if class_id == "0x0108":
        return "nvme"
    if class_id == "0x0680":
        return "nvswitch" if nvidia else ""
    if class_id.startswith("0x12"):
        return "gpu"
    display = class_id.startswith("0x03")
    return "gpu" if display and (nvidia or class_id == "0x0302") else ""


def _hang(tree: dict[str, Any], device: PciDevice, kind: str) -> None:
    """Put a function into the tree: bridges are dicts, devices lists of their functions' kinds;
    the functions of one device are one."""
    for bridge in device.way:
        below = tree.setdefault(bridge, {})
        tree = below if isinstance(below, dict) else tree
    functions = tree.setdefault(device.name.rpartition(".")[0], [])
    if isinstance(functions, list):
        functions.append(kind)


def _node(number: int) -> str:
    return f"numa{number}: " if number >= 0 else ""


def _below(tree: dict[str, Any]) -> str:
    """What hangs below, in an order that does not depend on addresses: larger groups first."""
    counted = Counter(_shape(each) for each in tree.values())
    ordered = sorted(counted.items(), key=lambda item: (-len(item[0]), item[0]))
    return ", ".join(shape if count == 1 else _times(count, shape) for shape, count in ordered)


def _shape(part: dict[str, Any] | list[str]) -> str:
    """A device by its kind, with the number of its functions; a bridge by what is below it."""
    if isinstance(part, list):
        functions = Counter(part)
        several = (
            kind if count == 1 else f"{count}-function {kind}"
            for kind, count in sorted(functions.items())
        )  # fmt: skip
        return " + ".join(several)
    if len(part) == 1:
        return _shape(next(iter(part.values())))
    return f"({_below(part)})"


def _times(count: int, shape: str) -> str:
    return f"{count} {shape}" if shape.isalpha() else f"{count} x {shape}"
