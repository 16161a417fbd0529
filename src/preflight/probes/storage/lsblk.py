"""Block devices by `lsblk -J`: with -O, or -o and the columns, it tells more of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError
from preflight.facts.storage import BlockDevice
from preflight.model import NOT_IN_INPUT, Known
from preflight.probes.spec import probe

_PROBE = "lsblk"
#: lsblk(8): what it calls them -> what they are here.
_KINDS = {
    "part": "partition",
    "loop": "loop",
    "crypt": "dm",
    "lvm": "dm",
    "mpath": "dm",
    "dm": "dm",
}
_NAMES = {"nvme": "nvme", "zram": "memory", "vd": "virtual", "xvd": "virtual"}
_NAMED = re.compile(r'"name" ?: ?"([^"\n]{1,200})"')
_SIZE = re.compile(r"(\d{1,18}(?:[.,]\d{1,3})?)([BKMGTPE])?", re.ASCII)
_UNITS = {unit: 1 << (10 * at) for at, unit in enumerate("BKMGTPE")}
#: Deeper than disk, partition, RAID, encryption and volume.
_DEEPEST = 16


@probe(_PROBE, ["lsblk", "-J", "-O", "-b"])
def lsblk(text: str) -> tuple[BlockDevice, ...]:
    """What stands on a device is a child of it; what stands on several, a child of each."""
    try:
        told = json.loads(text)["blockdevices"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParseError("expected the JSON of `lsblk -J`, whole", 1) from error
    if not isinstance(told, list):
        raise ParseError("expected a list of `blockdevices`", 1)
    below: dict[str, tuple[str, ...]] = {}
    found: dict[str, dict[str, Any]] = {}
    for one, on in _each(told, "", 0):
        name = str(one["name"])
        found.setdefault(name, one)
        below[name] = (
            *below.get(name, ()),
            *([on] if on and on not in below.get(name, ()) else []),
        )
    lines = _lines(text)
    return tuple(_device(one, below[name], lines.get(name, 1)) for name, one in found.items())


def _each(told: object, on: str, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    for one in told if isinstance(told, list) and depth < _DEEPEST else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one, on
            yield from _each(one.get("children"), one["name"], depth + 1)


def _lines(text: str) -> dict[str, int]:
    """Where each name stands first."""
    found: dict[str, int] = {}
    for at, line in enumerate(text.split("\n"), 1):
        for name in _NAMED.findall(line):
            found.setdefault(name, at)
    return found


def _device(told: dict[str, Any], below: tuple[str, ...], line: int) -> BlockDevice:
    name, kind = told["name"], str(told.get("type"))
    by_name = next((one for begin, one in _NAMES.items() if name.startswith(begin)), "disk")
    known = "md" if kind.startswith("raid") else _KINDS.get(kind, by_name)
    tran, ahead = told.get("tran"), _whole(told.get("ra"))
    return BlockDevice(
        name=name,
        kind=known,
        device=str(told.get("maj:min") or "").strip(),
        size_bytes=_bytes(told.get("size")),
        model=_text(told.get("model")),
        rotational=_flag(told.get("rota")),
        scheduler=_text(told.get("sched")),
        requests=_whole(told.get("rq-size")),
        read_ahead_bytes=ahead * 1024 if isinstance(ahead, int) else ahead,
        transport="pcie" if tran == "nvme" else _text(tran),
        raid_level=kind if known == "md" else NOT_IN_INPUT,
        below=below,
        line=line,
        probe=_PROBE,
    )


def _text(value: object) -> Known[str]:
    return value.strip() if isinstance(value, str) and value.strip() else NOT_IN_INPUT


def _flag(value: object) -> Known[bool]:
    """Older versions write "0" and "1"."""
    return {"1": True, "0": False, "True": True, "False": False}.get(str(value), NOT_IN_INPUT)


def _whole(value: object) -> Known[int]:
    return int(str(value)) if re.fullmatch(r"\d{1,18}", str(value), re.ASCII) else NOT_IN_INPUT


def _bytes(value: object) -> Known[int]:
    """A number with -b; else rounded, in powers of 1024: 256G."""
    match = _SIZE.fullmatch(str(value))
    if not match:
        return NOT_IN_INPUT
    return round(float(match[1].replace(",", ".")) * _UNITS[match[2] or "B"])
