"""lspci for machines (-mm, -vmm) as the form for people, line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_QUOTED_LINE = re.compile(rf'({_ADDRESS}) (".*)')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_REVISION = re.compile(r" -r([0-9a-f]{2})\b")
_SLOT = re.compile(rf"Slot:[ \t]+({_ADDRESS})[ \t]*")
_NUMBERED = re.compile(r"(?:(.*?) )?\[([0-9a-f]{4})\]|([0-9a-f]{4})")
#: Of -vmm: how the form for people writes it.
_DETAILS = {
    "Driver": "\tKernel driver in use: {}",
    "Module": "\tKernel modules: {}",
    "NUMANode": "\tNUMA node: {}",
    "IOMMUGroup": "\tIOMMU group: {}",
}


def for_people(text: str) -> str:
    """The text with each function's line as lspci prints it without -m; lines keep their places."""
    if '"' not in text and "Slot:" not in text:
        return text
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if slot := _SLOT.fullmatch(lines[at]):
            at = _record(lines, at, slot[1])
        elif quoted := _QUOTED_LINE.match(lines[at]):
            lines[at] = _function(quoted[1], quoted[2])
            at += 1
        else:
            at += 1
    return "\n".join(lines)


def _record(lines: list[str], at: int, address: str) -> int:
    """One record of -vmm, `Tag:<tab>value` lines down to an empty one; returns where it ends."""
    end = at + 1
    told: dict[str, str] = {}
    while end < len(lines) and lines[end].strip() and not _SLOT.fullmatch(lines[end]):
        tag, _, value = lines[end].partition(":")
        told.setdefault(tag, value.strip())
        lines[end] = _DETAILS[tag].format(value.strip()) if tag in _DETAILS else ""
        end += 1
    lines[at] = f"{address} {_head(told)}"
    return end


def _function(address: str, said: str) -> str:
    fields = _QUOTED.findall(said)
    told = dict(zip(("Class", "Vendor", "Device"), fields, strict=False))
    if revision := _REVISION.search(said):
        told["Rev"] = revision[1]
    return f"{address} {_head(told)}"


def _head(told: Mapping[str, str]) -> str:
    vendor, vendor_id = _named(told.get("Vendor", ""))
    device, device_id = _named(told.get("Device", ""))
    names = " ".join(filter(None, (vendor, device)))
    ids = f"{vendor_id}:{device_id}" if vendor_id and device_id else ""
    shown = f"{names} [{ids}]" if names and ids else names or ids
    revision = f" (rev {told['Rev']})" if told.get("Rev") else ""
    return f"{told.get('Class') or 'Unknown class'}: {shown}{revision}"


def _named(text: str) -> tuple[str, str]:
    """`Intel Corporation [8086]`, `8086` or a name alone -> the name, the number."""
    found = _NUMBERED.fullmatch(text)
    if not found:
        return text, ""
    return found[1] or "", found[2] or found[3]
