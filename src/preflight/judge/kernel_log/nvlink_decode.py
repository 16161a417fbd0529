"""What the hex words of an NVLink Xid mean: 74 by its registers, 144-150 by unit and status.

Pure but for the tables checks/data/xid74.yaml and nvlink5.yaml, which are read once.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from preflight import datafiles, strict_yaml
from preflight.model import SEVERITY, Action, Status

_HEX = r"0x[0-9a-fA-F]{1,8}"
#: NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
_XID74 = re.compile(rf"\blink (?P<link>\d{{1,3}}) ?\((?P<words>{_HEX}(?:, ?{_HEX}){{4,6}})\)")
#: NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 ...)
_NVLINK5 = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_/]{2,40})\s+(?P<word>Fatal|Non-?fatal)\s.*?\bLink (?P<link>-?\d{1,3}) "
    rf"\((?P<words>{_HEX}(?: {_HEX}){{1,7}})\)",
    re.IGNORECASE,
)
_REGISTERS = (0, 2, 3, 4)


class Decoded(NamedTuple):
    """The verdict of one line. `fault`: link and kind, for what counts when it comes again."""

    status: Status
    action: Action
    means: str
    fault: tuple[object, ...] = ()


def decoded(table: str, code: int, text: str, *, again: bool, alone: bool) -> Decoded | None:
    """What a line says by its table (xid74, nvlink5); None where it has no words of a known form.

    again: the same fault was seen within a day; alone: no other Xid of the GPU is there.
    """
    return _xid74(text, again, alone) if table == "xid74" else _nvlink5(code, text)


def fault_of(table: str, text: str) -> tuple[object, ...]:
    """Which link has which fault, for counting; () where the line tells none."""
    found = decoded(table, 0, text, again=False, alone=False) if table == "xid74" else None
    return found.fault if found else ()


@cache
def _table(name: str) -> Any:
    path = datafiles.root() / "checks" / "data" / f"{name}.yaml"
    table = strict_yaml.load(path.read_text(encoding="utf-8"), f"checks/data/{path.name}")
    return {**table, "rows": [_numbers(row) for row in table["rows"]]}


def _numbers(row: Any) -> dict[str, Any]:
    """The row with its hex words as numbers, which YAML as it is read here has not."""
    keys = ("before", "since", "raised_before", "raised_since")
    words = {key: int(row[key], 16) for key in keys if key in row}
    lists = {
        key: [int(one, 16) for one in row[key]]
        for key in ("ignore", "follow", "reset", "raised")
        if isinstance(row.get(key), list)
    }
    return {**row, **words, **lists}


def _xid74(text: str, again: bool, alone: bool) -> Decoded | None:
    match = _XID74.search(text)
    if not match:
        return None
    words = [int(word, 16) for word in re.findall(_HEX, match["words"])]
    bits = [(at, bit) for at in _REGISTERS for bit in range(32) if words[at] >> bit & 1]
    link = int(match["link"])
    if not bits:
        means = f"link {link}: no bit of its registers is set, so that they tell nothing"
        return Decoded(Status.FAIL, Action.RESET_GPU, means, (link,))
    rows = {(row["register"], bit): row for row in _table("xid74")["rows"] for bit in row["bits"]}
    found = [_bit(rows.get(one), one, again, alone and len(bits) == 1) for one in bits]
    worst = min(found, key=_by_severity)
    told = ", ".join(f"register {at} bit {bit}" for at, bit in bits[:4])
    means = f"link {link}, {told}: {worst.means}"
    return Decoded(worst.status, worst.action, means, (link, worst.fault))


def _bit(row: Any, bit: tuple[int, int], again: bool, alone: bool) -> Decoded:
    if row is None:
        unknown = "a bit that is not known here; report it to the vendor"
        return Decoded(Status.FAIL, Action.RESET_GPU, unknown, bit)
    verdict = row
    if again and "again" in row:
        verdict = row["again"]
    elif alone and "alone" in row:
        verdict = row["alone"]
    fault = (row["register"], *row["bits"])
    return Decoded(Status(verdict["status"]), Action(verdict["action"]), verdict["means"], fault)


def _by_severity(one: Decoded) -> tuple[int, int]:
    return (SEVERITY.index(one.status), -list(Action).index(one.action))


def _nvlink5(code: int, text: str) -> Decoded | None:
    match = _NVLINK5.search(text)
    if not match:
        return None
    info, status = (int(word, 16) for word in re.findall(_HEX, match["words"])[:2])
    unit = _unit(code, match["unit"].upper(), info)
    if unit is None:
        return None
    place = f"{unit['unit']} of " + (
        "no link" if match["link"] == "-1" else f"link {match['link']}"
    )
    verdict = _verdict(unit, info, status)
    if verdict == "unknown":
        return None
    if verdict == "reset" and unit.get("down"):
        return _down(place, info >> 20 & 0x3F)
    fatal = match["word"].lower() == "fatal"
    means = unit.get("means", _MEANS[verdict])
    if verdict == "reset" or (verdict == "ignore" and fatal):
        return Decoded(Status.FAIL, Action.RESET_GPU, f"{place}: {_needs(verdict, means)}")
    return Decoded(Status.WARN, Action.WATCH, f"{place}: {means}")


_MEANS = {
    "reset": "the GPU needs a reset",
    "ignore": "handled by the hardware; nothing to do now",
    "follow": "do what the GPU's Xid 154 asks for; without one restart the job",
}


def _needs(verdict: str, means: str) -> str:
    if verdict == "reset":
        return means if means == _MEANS["reset"] else f"{_MEANS['reset']}; {means}"
    return "mostly handled, but fatal here: the GPU needs a reset"


def _unit(code: int, name: str, info: int) -> Any:
    """The unit by the line's own word, which may name it in two ways; else by the info's bits."""
    table = _table("nvlink5")
    names = [table["names"].get(one, one) for one in name.split("/")]
    rows = [row for row in table["rows"] if row["xid"] == code]
    named = [row for row in rows if row["unit"] in names]
    before = [row for row in rows if info & 0x3FF == row["before"]]
    since = [row for row in rows if info & 0x7F == row["since"]]
    return next(iter([*named, *before, *since]), None)


def _verdict(unit: Any, info: int, status: int) -> str:
    """The worst of the status word's bits; what is not in the table is unknown."""
    kinds = ("reset", "follow", "ignore")
    if "always" in unit:
        return str(unit["always"])
    if "raised" in unit and _is_raised(unit, info):
        unit = {**unit, "reset": [*unit.get("reset", ()), *unit["raised"]]}
    if unit.get("exact"):
        return next((kind for kind in kinds if status in unit.get(kind, ())), "unknown")
    bits = {1 << bit for bit in range(32) if status >> bit & 1}
    known = {one for kind in kinds for one in unit.get(kind, ())}
    if not bits or bits - known:
        return "reset" if bits & set(unit.get("reset", ())) else "unknown"
    return next(kind for kind in kinds if bits & set(unit.get(kind, ())))


def _is_raised(unit: Any, info: int) -> bool:
    if info & 0x3FF == unit["before"]:
        return bool(info & unit["raised_before"])
    return bool(info & 0x7F == unit["since"] and info & unit["raised_since"])


def _down(place: str, reason: int) -> Decoded:
    rows = _table("nvlink5")["reasons"]
    row = next((row for row in rows if reason in row["codes"]), None)
    means = row["means"] if row else f"reason {reason}, which is not known here"
    if row and row.get("ignore"):
        return Decoded(Status.WARN, Action.WATCH, f"{place} is down: {means}")
    return Decoded(Status.FAIL, Action.RESET_GPU, f"{place} is down: {means}")
