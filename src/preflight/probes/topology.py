"""How GPUs, NVSwitches, network adapters and NVMe drives hang on PCI, from sysfs."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from preflight.errors import ParseError
from preflight.probes.spec import probe

# Classes as in PCI Code and ID Assignment Specification: 02h network, 0108h NVMe, 03h display, 12h
# accelerators, 0680h other bridge (NVSwitch). The real path of a device in sysfs names every bridge
# above it; `cd -P` finds it without a process. Virtual functions (physfn) are what somebody made.
_ASK = """\
[ -d /sys/bus/pci/devices ] || { echo 'no /sys/bus/pci/devices' >&2; exit 2; }
for d in /sys/bus/pci/devices/*; do
  c=; { read -r c <"$d/class"; } 2>/dev/null
  case $c in 0x02*|0x0108*|0x03*|0x12*|0x0680*) ;; *) continue ;; esac
  if [ -e "$d/physfn" ]; then continue; fi
  v=; { read -r v <"$d/vendor"; } 2>/dev/null
  n=; { read -r n <"$d/numa_node"; } 2>/dev/null
  cd -P "$d" && echo "$c $v ${n:--1} $PWD"
done
echo end"""

_LINE = re.compile(r"0x([0-9a-f]{6}) 0x([0-9a-f]{4}) (-?[0-9]{1,4}) (\S{1,2000})", re.ASCII)
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", re.ASCII)
_NVIDIA = "10de"
#: Far deeper than machines are.
_DEEPEST = 64


@probe("topology", ["sh", "-c", _ASK], timeout_s=10)
def topology(text: str) -> str:
    """The shape in words, such as `numa0: 2 x (2 gpu, nic), nvme; numa1: ...`: alike exactly where
    machines are built alike, for it holds no bus number. Parentheses are a bridge or a root complex
    with several devices below it; bridges with one thing below are left out."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of PCI functions is cut short: no closing `end`", len(lines))
    nodes: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines[:-1], 1):
        match = _LINE.fullmatch(line)
        if not match:
            raise ParseError(f"expected 'CLASS VENDOR NODE PATH', got {line[:80]!r}", number)
        kind = _kind(match[1], match[2])
        if kind:
            _hang(nodes.setdefault(int(match[3]), {}), _way(match[4]), kind)
    told = (f"{_node(node)}{_below(tree)}" for node, tree in sorted(nodes.items()))
    return "; ".join(told) or "none of GPU, NVSwitch, network adapter and NVMe on PCI"


def _kind(class_id: str, vendor_id: str) -> str:
    """What it is; "" for the display of a management controller and the like."""
    if class_id.startswith("02"):
        return "nic"
    if class_id.startswith("0108"):
        return "nvme"
    if class_id.startswith("0680"):
        return "nvswitch" if vendor_id == _NVIDIA else ""
    accelerator = class_id.startswith(("0302", "12"))
    return "gpu" if accelerator or vendor_id == _NVIDIA else ""


def _way(path: str) -> list[str]:
    """The root complex, the bridges, the device; its functions are one device."""
    parts = path.split("/")
    start = next((at for at, part in enumerate(parts) if _ROOT.fullmatch(part)), len(parts) - 1)
    return [*parts[start:-1][:_DEEPEST], parts[-1].rpartition(".")[0]]


def _hang(tree: dict[str, Any], way: list[str], kind: str) -> None:
    """Put a function into the tree: bridges are dicts, devices lists of their functions' kinds."""
    *bridges, device = way
    for bridge in bridges:
        below = tree.setdefault(bridge, {})
        tree = below if isinstance(below, dict) else tree
    functions = tree.setdefault(device, [])
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
