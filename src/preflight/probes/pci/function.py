"""One function of lspci while its lines are read, and the record that they make."""

from __future__ import annotations

import re
from typing import Any

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.pci.lists import Listed
from preflight.probes.pci.names import class_of, vendor_of

PROBE = "lspci"
_DENIED = Missing(
    "denied",
    "lspci may not read the capabilities; run preflight as root or with --sudo "
    "(`sudo lspci -Dvvvnn`)",
)
_CUT = Missing("unreadable", "lspci is cut short within this function, the last of the input")
NO_LINK = Missing("not-applicable", "it has no PCI Express link")
#: -nn `3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)`, -n `0302: ...`
_REVISION = re.compile(r" \(rev ([0-9a-f]{2})\)")
_IDS = re.compile(r"(?: \[|^)([0-9a-f]{4}):([0-9a-f]{4})\]?(?= \(|$)")
_CLASS = re.compile(r"(?:(?P<name>.*?) )?\[(?P<id>[0-9a-f]{4})\]|(?:Class )?(?P<bare>[0-9a-f]{4})")

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


class Function:
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

    def after(self, first: Function | None) -> Function:
        """This form with what another one told before it, which is of the same function."""
        if first is None:
            return self
        for key in _SAME:
            mine, theirs = self.told.get(key), first.told.get(key)
            known = not any(each is None or isinstance(each, Missing) for each in (mine, theirs))
            if known and mine != theirs:
                raise self._second(first, key)
        self.told = {**first.told, **self.told}
        for name in _MARKS:
            setattr(self, name, getattr(self, name) or getattr(first, name))
        return self

    def _second(self, first: Function, key: str) -> ParseError:
        """Two hosts in one text, or one host at two times."""
        what = "two different devices" if key in _IDENTITY else f"told twice, with another {key}"
        return ParseError(
            f"a second list begins here: {self.address} is {what} (line {first.line}): "
            "give the lspci of each host by itself",
            self.line,
        )

    def ends(self, text: str, functions: list[Function]) -> None:
        """The last function of the text. Each closes with its driver and its modules, where it has
        any: one that has neither, unlike others of its kind, is cut."""
        if not text.endswith("\n"):
            last = text.rpartition("\n")[2].strip()
            if not last.endswith(")") and last.startswith(_MAY_GO_ON):
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

    def _breaks_off(self, text: str, functions: list[Function]) -> bool:
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
            told.setdefault(name, self._absent(NOT_IN_INPUT if self.express else NO_LINK))
        for name, what in (("acs", "ACS"), ("uncorrected", "AER"), ("corrected", "AER")):
            none = Missing("not-applicable", f"it has no {what} registers")
            told.setdefault(name, self._absent(none if self.extended else NOT_IN_INPUT))
        if self.denied:
            for name in ("port", "payload_bytes", "read_request_bytes"):
                told.setdefault(name, _DENIED)
        if not told["answers"]:
            silent = Missing("not-applicable", "it does not answer on PCI")
            told |= dict.fromkeys(_CONFIGURATION, silent)
        return PciDevice(self.address, self.line, PROBE, **told)

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
