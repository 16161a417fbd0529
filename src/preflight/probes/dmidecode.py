"""The memory modules that are fitted, from `dmidecode -t 17`."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.host_memory import Dimm, Dimms
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "dmidecode"
_HANDLE = re.compile(r"\s*Handle 0x[0-9A-Fa-f]{1,8}, DMI type (\d{1,3})")
_FIELD = re.compile(r"\s+([A-Z][A-Za-z -]{1,40}): (.*)")
_SIZE = re.compile(r"([0-9]{1,9}) (kB|MB|GB|TB|KiB|MiB|GiB)")
_SPEED = re.compile(r"([0-9]{1,6}) (?:MT/s|MHz)")
_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
#: What hypervisors enter in place of a module.
_VIRTUAL = re.compile(r"QEMU|VMware|Virtual|Xen|Amazon|Google|Microsoft", re.IGNORECASE)


@probe(_PROBE, ["dmidecode", "-t", "17"], timeout_s=10, needs_root=True)
def dmidecode(text: str) -> Known[Dimms]:
    """One block of `Key: value` lines for each slot (SMBIOS type 17, Memory Device)."""
    slots = _slots(text)
    if not slots:
        if "No SMBIOS nor DMI entry point" in text:
            return Missing("not-applicable", "the firmware tells nothing of its memory modules")
        raise ParseError("expected blocks `Memory Device` as `dmidecode -t 17` prints", 1)
    if all(_VIRTUAL.search(slot.get("Manufacturer", "")) for _, slot in slots):
        return Missing("not-applicable", "the memory is a virtual machine's, it has no modules")
    fitted = [_dimm(line, slot, n) for n, (line, slot) in enumerate(slots) if _has_module(slot)]
    none = Missing("unreadable", "no slot tells of a module in it")
    return Dimms(
        fitted=tuple(fitted) if fitted else none,
        count=len(fitted) if fitted else none,
        slots=len(slots),
        line=slots[0][0],
        probe=_PROBE,
    )


def _slots(text: str) -> list[tuple[int, dict[str, str]]]:
    """Line and fields of each slot. Without handles (a `grep`) each `Size` begins one."""
    slots: list[tuple[int, dict[str, str]]] = []
    wanted = False
    for number, line in enumerate(text.split("\n"), 1):
        handle = _HANDLE.match(line)
        if handle:
            wanted = handle[1] == "17"
            if wanted:
                slots.append((number, {}))
        elif line.strip() == "Memory Device" and not wanted:
            wanted = True
            slots.append((number, {}))
        elif wanted and (field := _FIELD.fullmatch(line.rstrip())):
            slots[-1][1].setdefault(field[1], field[2].strip())
        elif not line.strip():
            wanted = False
    return [(line, fields) for line, fields in slots if "Size" in fields]


def _has_module(slot: dict[str, str]) -> bool:
    return "no module" not in slot["Size"].lower() and slot["Size"] != "Not Installed"


def _dimm(line: int, slot: dict[str, str], number: int) -> Dimm:
    size = _size(slot["Size"])
    where = " ".join(filter(None, (slot.get("Locator"), _bank(slot.get("Bank Locator", "")))))
    speed = slot.get("Configured Memory Speed") or slot.get("Configured Clock Speed") or ""
    return Dimm(
        name=where or f"slot {number}",
        size_bytes=size,
        size_gib=size if isinstance(size, Missing) else size / (1 << 30),
        kind=_text(slot, "Type"),
        rated_mts=_speed(slot.get("Speed", "")),
        speed_mts=_speed(speed),
        part=_text(slot, "Part Number"),
        line=line,
        probe=_PROBE,
    )


def _bank(text: str) -> str:
    return "" if text in ("", "Not Specified", "Unknown") else f"({text})"


def _text(slot: dict[str, str], key: str) -> Known[str]:
    value = slot.get(key, "")
    if value in ("", "Unknown", "Not Specified", "None"):
        return Missing("not-applicable", f"the firmware tells no {key.lower()}")
    return value


def _size(text: str) -> Known[int]:
    match = _SIZE.fullmatch(text)
    if match is None:
        return Missing("unreadable", f"{text[:40]!r} is no size of a module")
    return int(match[1]) * _BYTES[match[2][0].lower()]


def _speed(text: str) -> Known[int]:
    match = _SPEED.fullmatch(text)
    if match is None:
        return Missing("not-applicable", "the firmware tells no speed of the module")
    return int(match[1])
