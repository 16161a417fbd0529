"""The drawing of `lspci -t` and `-tv`: which bridge is above which device."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import NOT_IN_INPUT
from preflight.probes.pci.names import vendor_of
from preflight.probes.spec import probe

_PROBE = "lspci-tree"

#: A branch, `+-` or `\-`; a bus, `[81-8f]`; a function, `01.0`, with its name behind two blanks.
_PIECE = re.compile(
    r"(?P<branch>[+\\])-"
    r"|\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-(?P<last>[0-9a-f]{2}))?\]"
    r"|(?P<function>[0-9a-f]{2}\.[0-7])(?=-\[|  | *$)(?:  (?P<name>.*))?"
    r"|[-| ]",
    re.ASCII,
)
_IDS = re.compile(r"(?: \[|^)([0-9a-f]{4}):([0-9a-f]{4})\]?$", re.ASCII)
_FILLING = ("-", "|", " ")
#: Longer than any machine draws.
_LONGEST = 2000


class _Bus(Struct):
    """A bus with its number, and the way to it."""

    domain: str
    number: int
    way: tuple[str, ...]


class _Drawing(Struct):
    """What has been read of it. `branches`: column -> the bus whose functions branch off there;
    `open`: columns at which more must follow: the last branch of each is drawn as `\\-`."""

    functions: dict[str, dict[str, Any]] = field(default_factory=dict)
    branches: dict[int, _Bus | None] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)


@probe(_PROBE, ["lspci", "-tv"], timeout_s=20)
def lspci_tree(text: str) -> PciTree:
    """Bridges with their buses, and the functions below them; what they are is told by their names
    alone. Raises ParseError where a line is none of a tree."""
    drawing = _Drawing()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _read(drawing, line.rstrip()[:_LONGEST], number)
    if not drawing.functions:
        raise ParseError("expected lines such as `-[0000:00]-+-00.0  Intel Corporation ...`", 1)
    unknown: dict[str, Any] = {"probe": _PROBE, "answers": NOT_IN_INPUT}
    found = (PciDevice(name, **unknown, **told) for name, told in drawing.functions.items())
    devices = tuple(sorted(found, key=lambda each: each.name))
    return PciTree(devices, probe=_PROBE, may_be_cut=bool(drawing.open))


def _read(drawing: _Drawing, line: str, number: int) -> None:
    """One line: from where it branches off, along its buses, to a function."""
    at, here, bridge, started = 0, None, "", False
    while at < len(line):
        piece = _PIECE.match(line, at)
        if piece is None:
            raise _refused(line, number)
        if piece["branch"]:
            (drawing.open.add if piece["branch"] == "+" else drawing.open.discard)(at)
            here = _branch(drawing, at, here, started)
        elif piece["bus"]:
            here = _bus(drawing, piece, here, bridge)
        elif piece["function"] and here is None:
            raise _refused(line, number)
        elif piece["function"] and here:
            bridge = _function(drawing, here, piece, number)
        started = started or piece[0] not in _FILLING
        at = piece.end()


def _refused(line: str, number: int) -> ParseError:
    return ParseError(f"not a line of lspci's tree: {line.strip()[:80]!r}", number)


def _branch(drawing: _Drawing, at: int, here: _Bus | None, started: bool) -> _Bus | None:
    """The first branch of a line goes on where one began above; others begin here."""
    if started:
        drawing.branches[at] = here
        return here
    return drawing.branches.get(at)


def _bus(drawing: _Drawing, piece: re.Match[str], above: _Bus | None, bridge: str) -> _Bus:
    """The bus of a root complex, or the one below a bridge, which is told its numbers."""
    number = int(piece["bus"], 16)
    if above is None or not bridge:
        domain = piece["domain"] or "0000"
        return _Bus(domain, number, (f"pci{domain}:{piece['bus']}",))
    depth = len(above.way) - 1
    drawing.functions[bridge] |= {
        "class_id": "0x0604",
        "port": "Root Port" if not depth else "Upstream Port" if depth % 2 else "Downstream Port",
        "primary": above.number,
        "secondary": number,
        "subordinate": int(piece["last"] or piece["bus"], 16),
    }
    return _Bus(piece["domain"] or above.domain, number, (*above.way, bridge))


def _function(drawing: _Drawing, bus: _Bus, piece: re.Match[str], number: int) -> str:
    name = f"{bus.domain}:{bus.number:02x}:{piece['function']}"
    told: dict[str, Any] = {"line": number, "way": bus.way}
    said = (piece["name"] or "").strip()
    ids = _IDS.search(said)
    if ids:
        told |= {"vendor_id": f"0x{ids[1]}", "device_id": f"0x{ids[2]}"}
    product = said[: ids.start()].strip() if ids else said
    if product:
        told["product"] = product
    if not ids and (vendor := vendor_of(product)):
        told["vendor_id"] = vendor
    drawing.functions.setdefault(name, told)
    return name
