"""Every function on PCI, from lspci: plain, -n, -nn, -v to -vvv, -mm, -vmm, with and without -D."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import Missing
from preflight.probes.pci.details import read_detail
from preflight.probes.pci.forms import for_people
from preflight.probes.pci.function import NO_LINK, PROBE, Function
from preflight.probes.pci.lists import lacking
from preflight.probes.spec import probe

_HEAD = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) +(\S.*)")
_TREE = re.compile(r"-\[[0-9a-f]{4,8}:|[|+\\ ]*[+\\|]-")


@probe(PROBE, ["lspci", "-Dvvvnn"], timeout_s=20, needs_root=True)
def lspci(text: str) -> PciTree:
    """The functions in their order; where the text holds several forms, the details of the longer.
    Raises ParseError where two different functions have one address, or where one of two whole
    lists lacks what the other has."""
    blocks = _blocks(text)
    if not blocks:
        raise ParseError("expected a line such as `0000:1b:00.0 3D controller: ...`", 1)
    if gone := lacking([block.listed() for block in blocks]):
        raise ParseError(
            f"two lists, of which one alone has {gone.address}: of two hosts, or of one at two "
            "times: give each by itself",
            gone.line,
        )
    functions: dict[str, Function] = {}
    for block in blocks:
        functions[block.address] = block.after(functions.get(block.address))
    functions[blocks[-1].address].ends(text, list(functions.values()))
    _without_lanes(functions.values())
    drivers = any("driver" in each.told for each in functions.values())
    devices = tuple(each.device(drivers) for each in functions.values())
    cut = functions[blocks[-1].address].cut or _ends_within(devices, max(functions))
    return PciTree(devices, probe=PROBE, may_be_cut=cut)


def _ends_within(devices: Sequence[PciDevice], last: str) -> bool:
    """Whether the last function stands where a whole list hardly ends: it is a GPU, or within a
    bridge that has more buses than are shown. lspci sorts by address."""
    domain, bus, _ = last.split(":")
    shown = {each.name.rpartition(":")[0] for each in devices}
    for each in devices:
        if each.name == last and str(each.class_id).startswith("0x03"):
            return True
        if isinstance(each.secondary, int) and isinstance(each.subordinate, int):
            within = each.name == last or each.secondary <= int(bus, 16) <= each.subordinate
            more = f"{domain}:{each.subordinate:02x}" not in shown
            if within and more and each.name.startswith(f"{domain}:"):
                return True
    return False


def _without_lanes(functions: Iterable[Function]) -> None:
    """A link of no lanes is what virtual functions show, and a card whose link is down."""
    given = any(each.virtual_functions for each in functions)
    for each in functions:
        product = str(each.told.get("product", ""))
        virtual = given or "Virtual Function" in product or each.told.get("device_id") in _VF_IDS
        at = each.told.get("link_line")
        if each.told.get("width") == NO_LINK and each.is_card() and not virtual:
            text = f"line {at}: its link has no lanes (x0): it is down, or a virtual function's"
            each.told |= dict.fromkeys(("speed_gtps", "width"), Missing("unreadable", text))


def _blocks(text: str) -> list[Function]:
    """Each function's line with the lines below it; one that is told twice is there twice."""
    blocks: list[Function] = []
    for number, line in enumerate(for_people(text).split("\n"), 1):
        head = _HEAD.match(line) if line[:1] in _HEX else None
        if head:
            blocks.append(Function(head[1], head[2], number))
        elif blocks and (told := line.strip()) and not _TREE.match(told):
            read_detail(blocks[-1], told, number)
    return blocks


_HEX = frozenset("0123456789abcdef")
#: ConnectX-4 Lx to ConnectX-6 Dx, as virtual functions (mlx5_core_pci_table of the kernel).
_VF_IDS = frozenset({"0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e"})
