"""Every function on PCI, from lspci: plain, -n, -nn, -v to -vvv, -mm, -vmm, with and without -D."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.pci.forms import for_people
from preflight.probes.pci.lists import Listed, lacking
from preflight.probes.pci.names import class_of, vendor_of
from preflight.probes.spec import probe

_PROBE = "lspci"
_DENIED = Missing(
    "denied",
    "lspci may not read the capabilities; run preflight as root or with --sudo "
    "(`sudo lspci -Dvvvnn`)",
)
_CUT = Missing("unreadable", "lspci is cut short within this function, the last of the input")
_NO_LINK = Missing("not-applicable", "it has no PCI Express link")

_HEAD = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) +(\S.*)")
#: -nn `3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)`, -n `0302: ...`
_REVISION = re.compile(r" \(rev ([0-9a-f]{2})\)")
_IDS = re.compile(r"(?: \[|^)([0-9a-f]{4}):([0-9a-f]{4})\]?(?= \(|$)")
_CLASS = re.compile(r"(?:(?P<name>.*?) )?\[(?P<id>[0-9a-f]{4})\]|(?:Class )?(?P<bare>[0-9a-f]{4})")
_SPEED = re.compile(r"Speed (\d{1,4}(?:\.\d{1,2})?)GT/s(?: \((\w+)\))?")
_WIDTH = re.compile(r"Width x(\d{1,4})(?: \((\w+)\))?")
_BUS = re.compile(r"primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_CONTROL = re.compile(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes")
_PORT = re.compile(r"Express(?: \(v\d+\))? ([A-Z][\w/ -]{0,60}?)(?: \(Slot[+-]\))?, ")
_VFS = re.compile(r"Number of VFs: (\d+)")
_FLAGS = re.compile(r"(?:[\w<>/]+[+-]\s*)+")
_TREE = re.compile(r"-\[[0-9a-f]{4,8}:|[|+\\ ]*[+\\|]-")


@probe(_PROBE, ["lspci", "-Dvvvnn"], timeout_s=20, needs_root=True)
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
    functions: dict[str, _Function] = {}
    for block in blocks:
        functions[block.address] = block.after(functions.get(block.address))
    functions[blocks[-1].address].ends(text, list(functions.values()))
    _without_lanes(functions.values())
    drivers = any("driver" in each.told for each in functions.values())
    devices = tuple(each.device(drivers) for each in functions.values())
    cut = functions[blocks[-1].address].cut or _ends_within(devices, max(functions))
    return PciTree(devices, probe=_PROBE, may_be_cut=cut)


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


def _without_lanes(functions: Iterable[_Function]) -> None:
    """A link of no lanes is what virtual functions show, and a card whose link is down."""
    given = any(each.virtual_functions for each in functions)
    for each in functions:
        product = str(each.told.get("product", ""))
        virtual = given or "Virtual Function" in product or each.told.get("device_id") in _VF_IDS
        at = each.told.get("link_line")
        if each.told.get("width") == _NO_LINK and each.is_card() and not virtual:
            text = f"line {at}: its link has no lanes (x0): it is down, or a virtual function's"
            each.told |= dict.fromkeys(("speed_gtps", "width"), Missing("unreadable", text))


def _blocks(text: str) -> list[_Function]:
    """Each function's line with the lines below it; one that is told twice is there twice."""
    blocks: list[_Function] = []
    for number, line in enumerate(for_people(text).split("\n"), 1):
        head = _HEAD.match(line) if line[:1] in _HEX else None
        if head:
            blocks.append(_Function(head[1], head[2], number))
        elif blocks and (told := line.strip()) and not _TREE.match(told):
            blocks[-1].detail(told, number)
    return blocks


_HEX = frozenset("0123456789abcdef")
#: ConnectX-4 Lx to ConnectX-6 Dx, as virtual functions (mlx5_core_pci_table of the kernel).
_VF_IDS = frozenset({"0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e"})
#: Base classes of what has a driver on a host that works: network, display, bridges.
_CLOSED = ("0x02", "0x03", "0x06")
_MAY_GO_ON = ("LnkCap:", "LnkSta:", "UESta:", "CESta:", "ACSCtl:")
_MARKS = (
    "express", "capabilities", "extended", "denied", "details", "modules", "virtual_functions",
)  # fmt: skip
_IDENTITY = ("vendor_id", "device_id", "class_id")
#: What one function says in all forms of lspci. Speeds too: of two looks nobody knows which counts.
_SAME = (
    *_IDENTITY, "revision", "port", "primary", "secondary", "subordinate",
    "speed_max_gtps", "width_max", "speed_gtps", "width", "payload_bytes", "read_request_bytes",
    "numa_node", "acs", "uncorrected",
)  # fmt: skip


class _Function:
    """One function while its lines are read."""

    def __init__(self, address: str, said: str, number: int) -> None:
        self.address = address if address.count(":") == 2 else f"0000:{address}"
        self.line = number
        self.told: dict[str, Any] = {}
        self.express = self.capabilities = self.extended = self.denied = self.details = False
        self.modules = self.cut = self.virtual_functions = False
        self.flags = ""  # whose list of flags may go on in the next line
        self._head(said)

    def _head(self, said: str) -> None:
        revision = _REVISION.search(said)
        self.told["revision"] = revision[1] if revision else "00"
        self.told["answers"] = self.told["revision"] != "ff"
        kind, _, product = said.partition(": ")
        ids = _IDS.search(product)
        if ids:
            self.told |= {"vendor_id": f"0x{ids[1]}", "device_id": f"0x{ids[2]}"}
        named = product[: ids.start()] if ids else product.split(" (rev ")[0].split(" (prog-if ")[0]
        if named.strip():
            self.told["product"] = named.strip()
            if not ids and (vendor := vendor_of(named)):
                self.told["vendor_id"] = vendor
        told = _CLASS.fullmatch(kind)
        name = told["name"] if told else kind
        number = (told["id"] or told["bare"]) if told else class_of(kind)
        self.told |= {"class_name": name} if name else {}
        self.told |= {"class_id": f"0x{number}"} if number else {}

    def listed(self) -> Listed:
        """What lists are compared by."""
        return Listed(self.address, str(self.told.get("class_id", "")), self.line)

    def after(self, first: _Function | None) -> _Function:
        """This form with what another one told before it, which is of the same function."""
        if first is None:
            return self
        for key in _SAME:
            mine, theirs = self.told.get(key), first.told.get(key)
            known = not any(each is None or isinstance(each, Missing) for each in (mine, theirs))
            if known and mine != theirs:
                raise self._second(first, key)
        self.told = {**first.told, **self.told}
        for name in (
            "express",
            "capabilities",
            "extended",
            "denied",
            "details",
            "modules",
            "virtual_functions",
        ):
            setattr(self, name, getattr(self, name) or getattr(first, name))
        return self

    def _second(self, first: _Function, key: str) -> ParseError:
        """Two hosts in one text, or one host at two times."""
        what = "two different devices" if key in _IDENTITY else f"told twice, with another {key}"
        return ParseError(
            f"a second list begins here: {self.address} is {what} (line {first.line}): "
            "give the lspci of each host by itself",
            self.line,
        )

    def detail(self, line: str, number: int) -> None:
        self.details = True
        word = line.partition(" ")[0].partition("\t")[0]
        # Text whose blanks were lost on its way: `LnkSta:Speed 32GT/s`.
        reader = _DETAILS.get(word) or _DETAILS.get(f"{word.partition(':')[0]}:")
        if reader:
            self.flags = ""
            reader(self, line, number)
        elif self.flags and _FLAGS.fullmatch(line):
            self.told[self.flags] += _set(line)
        else:
            self.flags = ""

    def ends(self, text: str, functions: list[_Function]) -> None:
        """The last function of the text. Each closes with its driver and its modules, where it has
        any: one that has neither, unlike others of its kind, is cut."""
        if not text.endswith("\n"):
            last = text.rpartition("\n")[2].strip()
            if not last.endswith(")") and last.startswith(
                ("LnkCap:", "LnkSta:", "UESta:", "CESta:", "ACSCtl:")
            ):
                self._forget(last)
            elif "nvidia".startswith(str(self.told.get("driver", "-"))):
                self.told.pop("driver")
        if self.modules or self.told.get("driver"):
            return
        alike = [one for one in functions if one is not self and one.kind() == self.kind()]
        closed = any(one.modules or one.told.get("driver") for one in alike)
        gpu = self.told.get("vendor_id") == "0x10de" and self.capabilities
        self.cut = closed or (gpu and not alike and not text.endswith("\n\n"))
        self.cut |= not text.endswith("\n\n") and self._breaks_off(text, functions)

    def _breaks_off(self, text: str, functions: list[_Function]) -> bool:
        """Whether the text stops before the function does: lspci closes each with an empty line,
        which a paste may lose, and those with a driver with its name."""
        others = [one for one in functions if one is not self]
        if not text.endswith("\n") and self.details:
            return any(one.modules or one.told.get("driver") for one in others)
        if not self.details:
            if any(one.told.get("vendor_id") for one in others) and "vendor_id" not in self.told:
                return not text.endswith("\n")
            return any(one.details and one.base() == self.base() for one in others)
        closed = (one for one in others if one.modules or one.told.get("driver"))
        return self.base() in _CLOSED and any(one.base() == self.base() for one in closed)

    def is_card(self) -> bool:
        """A GPU, an NVSwitch or an adapter of NVIDIA, which all have a link."""
        return self.told.get("vendor_id") in ("0x10de", "0x15b3") and self.base() in _CLOSED

    def base(self) -> str:
        return str(self.told.get("class_id"))[:4]

    def _forget(self, line: str) -> None:
        """What a line says that may go on."""
        word = line.partition(":")[0]
        at = "_max" if word == "LnkCap" else ""
        for name in {"UESta": ("uncorrected",), "CESta": ("corrected",), "ACSCtl": ("acs",)}.get(
            word, (f"speed{at}_gtps", f"width{at}")
        ):
            self.told.pop(name, None)
        self.cut = True

    def kind(self) -> tuple[object, ...]:
        """What functions of one model have in common."""
        names = ("class_id", "vendor_id", "device_id", "product")
        return tuple(self.told.get(name) for name in names)

    def device(self, drivers: bool) -> PciDevice:
        """The record; `drivers`: whether this form of lspci names them, so that none is none."""
        told = dict(self.told)
        if self.cut:
            told.setdefault("driver", _CUT)
            told["answers"] = told["answers"] and _CUT
        if self.details and drivers and told["answers"]:
            told.setdefault("driver", "")
        for name in ("speed_max_gtps", "width_max", "speed_gtps", "width"):
            told.setdefault(name, self._absent(NOT_IN_INPUT if self.express else _NO_LINK))
        for name, what in (("acs", "ACS"), ("uncorrected", "AER"), ("corrected", "AER")):
            none = Missing("not-applicable", f"it has no {what} registers")
            told.setdefault(name, self._absent(none if self.extended else NOT_IN_INPUT))
        if self.denied:
            for name in ("port", "payload_bytes", "read_request_bytes"):
                told.setdefault(name, _DENIED)
        if not told["answers"]:
            silent = Missing("not-applicable", "it does not answer on PCI")
            told |= dict.fromkeys(_CONFIGURATION, silent)
        return PciDevice(self.address, self.line, _PROBE, **told)

    def _absent(self, else_: Missing) -> Missing:
        """Why a capability is not there."""
        if self.denied:
            return _DENIED
        if self.cut:
            return _CUT
        return else_ if self.capabilities else NOT_IN_INPUT


#: What is read from the configuration of a device, and so is all ones where it does not answer.
_CONFIGURATION = (
    "speed_max_gtps", "width_max", "speed_gtps", "width", "port", "payload_bytes",
    "read_request_bytes", "acs", "uncorrected", "corrected",
)  # fmt: skip


def _capability(function: _Function, line: str, _number: int) -> None:
    if "<access denied>" in line:
        function.denied = True
        return
    function.capabilities = True
    # Those beyond the first 256 bytes have a version: [1b8 v2].
    function.extended |= " v" in line.partition("]")[0]
    if " Express " in line:
        function.express = True
        port = _PORT.search(line + ", ")
        if port:
            function.told["port"] = port[1]
            function.express = port[1] != "Root Complex Integrated Endpoint"


def _link(function: _Function, line: str, number: int) -> None:
    at = "_max" if line.startswith("LnkCap:") else ""
    speed, width = _SPEED.search(line), _WIDTH.search(line)
    unread = Missing("unreadable", f"line {number}: no speed or width in {line[:80]!r}")
    nothing = width is not None and width[1] == "0"  # a port without a device, a virtual function
    absent = _NO_LINK if nothing else unread
    gtps = "speed_max_gtps" if at else "speed_gtps"
    function.told[gtps] = float(speed[1]) if speed and not nothing else absent
    function.told[f"width{at}"] = int(width[1]) if width and not nothing else absent
    if not at:
        function.told["link_line"] = number
        function.told["speed_word"] = (speed[2] if speed else "") or ""
        function.told["width_word"] = (width[2] if width else "") or ""


def _bus(function: _Function, line: str, _number: int) -> None:
    found = _BUS.search(line)
    if found:
        names = ("primary", "secondary", "subordinate")
        function.told |= {name: int(found[at], 16) for at, name in enumerate(names, 1)}


def _control(function: _Function, line: str, _number: int) -> None:
    found = _CONTROL.match(line)
    if found:
        function.told["payload_bytes"] = int(found[1][:6])
        function.told["read_request_bytes"] = int(found[2][:6])


def _set(line: str) -> tuple[str, ...]:
    return tuple(word[:-1] for word in line.split() if word.endswith("+"))


#: Which lists of flags are shown as evidence, and who keeps their line.
_LINE_OF = {"uncorrected": "errors_line", "acs": "acs_line"}


def _flags_of(name: str) -> Callable[[_Function, str, int], None]:
    def read(function: _Function, line: str, number: int) -> None:
        function.told[name] = _set(line.partition(":")[2])
        function.flags = name
        if name in _LINE_OF:
            function.told[_LINE_OF[name]] = number

    return read


def _number_of(name: str, label: str) -> Callable[[_Function, str, int], None]:
    def read(function: _Function, line: str, _number: int) -> None:
        value = line.removeprefix(label).strip()
        if line.startswith(label) and value.isdecimal() and len(value) < 10:
            function.told[name] = int(value)

    return read


def _kernel(function: _Function, line: str, _number: int) -> None:
    label = "Kernel driver in use: "
    function.modules |= line.startswith("Kernel modules: ")
    if line.startswith(label):
        function.told["driver"] = line.removeprefix(label).strip()


def _given(function: _Function, line: str, _number: int) -> None:
    """`Initial VFs: 16, Total VFs: 16, Number of VFs: 2, Function Dependency Link: 00`"""
    found = _VFS.search(line)
    function.virtual_functions |= found is not None and found[1].strip("0") != ""


def _oddity(function: _Function, line: str, _number: int) -> None:
    if line.startswith("!!! Unknown header type 7f"):
        function.told["answers"] = False


#: First word of a line -> who reads it.
_DETAILS: dict[str, Callable[[_Function, str, int], None]] = {
    "Capabilities:": _capability,
    "LnkCap:": _link,
    "LnkSta:": _link,
    "Bus:": _bus,
    "MaxPayload": _control,
    "ACSCtl:": _flags_of("acs"),
    "UESta:": _flags_of("uncorrected"),
    "CESta:": _flags_of("corrected"),
    "NUMA": _number_of("numa_node", "NUMA node: "),
    "IOMMU": _number_of("iommu_group", "IOMMU group: "),
    "Initial": _given,
    "Kernel": _kernel,
    "!!!": _oddity,
}
