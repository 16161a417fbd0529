"""What the lines below a function of lspci say: capabilities, links, buses, flags, driver."""

from __future__ import annotations

import re
from collections.abc import Callable

from preflight.model import Missing
from preflight.probes.pci.function import NO_LINK, Function

_SPEED = re.compile(r"Speed (\d{1,4}(?:\.\d{1,2})?)GT/s(?: \((\w+)\))?")
_WIDTH = re.compile(r"Width x(\d{1,4})(?: \((\w+)\))?")
_BUS = re.compile(r"primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_CONTROL = re.compile(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes")
_PORT = re.compile(r"Express(?: \(v\d+\))? ([A-Z][\w/ -]{0,60}?)(?: \(Slot[+-]\))?, ")
_VFS = re.compile(r"Number of VFs: (\d+)")
_FLAGS = re.compile(r"(?:[\w<>/]+[+-]\s*)+")


def read_detail(function: Function, line: str, number: int) -> None:
    """One line below the function's own."""
    function.details = True
    word = line.partition(" ")[0].partition("\t")[0]
    # Text whose blanks were lost on its way: `LnkSta:Speed 32GT/s`.
    reader = _DETAILS.get(word) or _DETAILS.get(f"{word.partition(':')[0]}:")
    if reader:
        function.flags = ""
        reader(function, line, number)
    elif function.flags and _FLAGS.fullmatch(line):
        function.told[function.flags] += _set(line)
    else:
        function.flags = ""


def _capability(function: Function, line: str, _number: int) -> None:
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


def _link(function: Function, line: str, number: int) -> None:
    at = "_max" if line.startswith("LnkCap:") else ""
    speed, width = _SPEED.search(line), _WIDTH.search(line)
    unread = Missing("unreadable", f"line {number}: no speed or width in {line[:80]!r}")
    nothing = width is not None and width[1] == "0"  # a port without a device, a virtual function
    absent = NO_LINK if nothing else unread
    gtps = "speed_max_gtps" if at else "speed_gtps"
    function.told[gtps] = float(speed[1]) if speed and not nothing else absent
    function.told[f"width{at}"] = int(width[1]) if width and not nothing else absent
    if not at:
        function.told["link_line"] = number
        function.told["speed_word"] = (speed[2] if speed else "") or ""
        function.told["width_word"] = (width[2] if width else "") or ""


def _bus(function: Function, line: str, _number: int) -> None:
    found = _BUS.search(line)
    if found:
        names = ("primary", "secondary", "subordinate")
        function.told |= {name: int(found[at], 16) for at, name in enumerate(names, 1)}


def _control(function: Function, line: str, _number: int) -> None:
    found = _CONTROL.match(line)
    if found:
        function.told["payload_bytes"] = int(found[1][:6])
        function.told["read_request_bytes"] = int(found[2][:6])


def _set(line: str) -> tuple[str, ...]:
    return tuple(word[:-1] for word in line.split() if word.endswith("+"))


#: Which lists of flags are shown as evidence, and who keeps their line.
_LINE_OF = {"uncorrected": "errors_line", "acs": "acs_line"}


def _flags_of(name: str) -> Callable[[Function, str, int], None]:
    def read(function: Function, line: str, number: int) -> None:
        function.told[name] = _set(line.partition(":")[2])
        function.flags = name
        if name in _LINE_OF:
            function.told[_LINE_OF[name]] = number

    return read


def _number_of(name: str, label: str) -> Callable[[Function, str, int], None]:
    def read(function: Function, line: str, _number: int) -> None:
        value = line.removeprefix(label).strip()
        if line.startswith(label) and value.isdecimal() and len(value) < 10:
            function.told[name] = int(value)

    return read


def _kernel(function: Function, line: str, _number: int) -> None:
    label = "Kernel driver in use: "
    function.modules |= line.startswith("Kernel modules: ")
    if line.startswith(label):
        function.told["driver"] = line.removeprefix(label).strip()


def _given(function: Function, line: str, _number: int) -> None:
    """`Initial VFs: 16, Total VFs: 16, Number of VFs: 2, Function Dependency Link: 00`"""
    found = _VFS.search(line)
    function.virtual_functions |= found is not None and found[1].strip("0") != ""


def _oddity(function: Function, line: str, _number: int) -> None:
    if line.startswith("!!! Unknown header type 7f"):
        function.told["answers"] = False


#: First word of a line -> who reads it.
_DETAILS: dict[str, Callable[[Function, str, int], None]] = {
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
