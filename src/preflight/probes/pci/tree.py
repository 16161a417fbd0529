"""What hangs on PCI and by which links, from sysfs: needs neither root nor lspci."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.pci.names import name_of
from preflight.probes.spec import probe

_PROBE = "pci-tree"

# Documentation/ABI/testing/sysfs-bus-pci and sysfs-kernel-iommu_groups of the kernel. Classes as in
# the PCI Code and ID Assignment Specification: 01h storage, 02h network, 03h display, 0604h bridge
# between buses, 0680h other bridge (NVSwitch), 12h accelerators. The real path of a device names
# every bridge above it; `cd -P` finds it, and the ends of links, without a process. Told at once:
# over SSH each line that is written by itself is a packet.
_ASK = """\
[ -d /sys/bus/pci/devices ] || { echo 'no /sys/bus/pci/devices' >&2; exit 2; }
exec 2>/dev/null
told=
for d in /sys/bus/pci/devices/*; do
  l=; read -r l <"$d/class"
  case $l in 0x01*|0x02*|0x03*|0x0604*|0x0680*|0x12*) ;; *) continue ;; esac
  cd -P "$d" || continue
  p=$PWD
  for f in vendor device revision numa_node current_link_speed current_link_width max_link_speed \\
      max_link_width secondary_bus_number subordinate_bus_number iommu_group/type; do
    v=; read -r v x <"$f"
    l="$l ${v:--}"
  done
  v=-; if [ -e physfn ]; then v=vf; fi
  r=-; if cd -P driver; then r=${PWD##*/}; fi
  g=-; if cd -P "$p/iommu_group"; then g=${PWD##*/}; fi
  told="$told$l $g $v $r $p
"
done
printf '%s' "${told}end"
"""

_NAMES = (
    "class_id", "vendor_id", "device_id", "revision", "numa_node", "speed_gtps", "width",
    "speed_max_gtps", "width_max", "secondary", "subordinate", "iommu_type", "iommu_group",
    "virtual", "driver", "path",
)  # fmt: skip
_LINE = re.compile(
    r"0x[0-9a-f]{6}(?: 0x[0-9a-f]{1,4}){3} -?[0-9]{1,4}(?: [\w.+-]{1,40}){10} /\S{1,3000}", re.ASCII
)
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", re.ASCII)
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,2})?", re.ASCII)
_BRIDGE = "0x0604"
#: Far deeper than machines are.
_DEEPEST = 64
#: The six bits of the width, all of them set: what a read gives that nothing answers.
_SILENT_WIDTH = "63"
_NO_LINK = Missing("not-applicable", "it has no PCI Express link")
_SILENT = Missing("not-applicable", "it does not answer on PCI")
_UNASKED = Missing("not-in-input", "sysfs does not tell whether it answers; lspci does")
_NO_NODE = Missing("not-applicable", "the kernel tells no NUMA node of it")
_NO_GROUP = Missing("not-applicable", "no IOMMU translates for it: it is in no group")
_UNTOLD = Missing("not-applicable", "this kernel does not tell how its IOMMU group is translated")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def pci_tree(text: str) -> PciTree:
    """Bridges, storage, network, display, accelerators and NVSwitches, a line each, in the order of
    their addresses. `port` is told by the place in the path."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of PCI functions is cut short: no closing `end`", len(lines))
    found: dict[str, PciDevice] = {}
    for number, line in enumerate(lines[:-1], 1):
        if not _LINE.fullmatch(line):
            raise ParseError(
                f"expected 'CLASS VENDOR DEVICE REVISION NODE ... PATH', got {line[:80]!r}", number
            )
        device = _device(dict(zip(_NAMES, line.split(" "), strict=True)), number)
        if device:
            found.setdefault(device.name, device)
    return PciTree(tuple(found[name] for name in sorted(found)), probe=_PROBE)


def _device(told: dict[str, str], number: int) -> PciDevice | None:
    *above, name = told["path"].split("/")
    if not _ADDRESS.fullmatch(name):
        return None
    way = _way(above)
    answers = _answers(told["width"])
    silent = answers is False
    class_id = told["class_id"][:6]
    return PciDevice(
        name,
        number,
        _PROBE,
        **_what(told, class_id),
        answers=answers,
        port=_SILENT if silent else _port(class_id, way, told["width_max"]),
        **_link(told, silent),
        **_buses(told),
        link_line=number,
        link_probe=_PROBE,
        driver="" if told["driver"] == "-" else told["driver"],
        numa_node=int(told["numa_node"]) if told["numa_node"][0] != "-" else _NO_NODE,
        iommu_group=int(group) if (group := told["iommu_group"]).isdecimal() else _NO_GROUP,
        iommu_type=_translated(told),
        virtual=told["virtual"] == "vf",
        way=way,
    )


def _what(told: dict[str, str], class_id: str) -> dict[str, Any]:
    """What it is; its name is its numbers, for sysfs has no list of names."""
    vendor, device = told["vendor_id"], told["device_id"]
    return {
        "class_id": class_id,
        "class_name": name_of(class_id[2:]) or NOT_IN_INPUT,
        "vendor_id": vendor,
        "device_id": device,
        "product": f"{vendor[2:]}:{device[2:]}",
        "revision": f"{int(told['revision'], 16):02x}",
    }


def _way(parts: Sequence[str]) -> tuple[str, ...]:
    """From the first root complex down; a device whose path names none begins at its own bus."""
    start = next((at for at, part in enumerate(parts) if _ROOT.fullmatch(part)), len(parts))
    return tuple(parts[start:][:_DEEPEST])


def _port(class_id: str, way: Sequence[str], width_max: str) -> Known[str]:
    """Below a root complex a bridge is a root port; below that are the upstream port of a switch
    and its downstream ports, by turns. One without a link is of conventional PCI."""
    if not _NUMBER.fullmatch(width_max):
        return _NO_LINK
    if class_id != _BRIDGE:
        return "Endpoint"
    depth = next((at for at, part in enumerate(reversed(way)) if _ROOT.fullmatch(part)), len(way))
    if depth == 0:
        return "Root Port"
    return "Upstream Port" if depth % 2 else "Downstream Port"


def _answers(width: str) -> Known[bool]:
    """What sysfs tells of a device without a link, it has from the time when it was found."""
    if width == _SILENT_WIDTH:
        return False
    return True if _NUMBER.fullmatch(width) else _UNASKED


def _link(told: dict[str, str], silent: bool) -> dict[str, Any]:
    """A port with nothing below it has a link of no lanes, of a speed that means nothing."""
    if silent:
        return dict.fromkeys(("speed_gtps", "width", "speed_max_gtps", "width_max"), _SILENT)
    found: dict[str, Any] = {}
    for at in ("", "_max"):
        speed, width = told[f"speed{at}_gtps"], told[f"width{at}"]
        linked = bool(_NUMBER.fullmatch(width)) and width.strip("0.") != ""
        rated = linked and _NUMBER.fullmatch(speed)
        unread = Missing("unreadable", f"the kernel tells no speed of its link: {speed}")
        found[f"width{at}"] = int(float(width)) if linked else _NO_LINK
        found[f"speed{at}_gtps"] = float(speed) if rated else unread if linked else _NO_LINK
    return found


def _buses(told: dict[str, str]) -> dict[str, Any]:
    if told["class_id"][:6] != _BRIDGE:
        return {}
    found: dict[str, Any] = {"primary": int(told["path"].rpartition("/")[2].split(":")[1], 16)}
    for name in ("secondary", "subordinate"):
        if told[name].isdecimal():
            found[name] = int(told[name][:4])
    return found


def _translated(told: dict[str, str]) -> Known[str]:
    if told["iommu_type"] != "-":
        return told["iommu_type"]
    return _NO_GROUP if told["iommu_group"] == "-" else _UNTOLD
