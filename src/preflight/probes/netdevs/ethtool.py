"""Interfaces as ethtool shows them: link, rings, channels, pause; of several, one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.nics import Netdev, Netdevs
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "ethtool"
#: Interfaces that are asked: a process for each answer.
_MOST = 16
# Of adapters that do RDMA; each answer names its interface.
_ASK = f"""\
command -v ethtool >/dev/null || {{ echo 'ethtool is not installed' >&2; exit 127; }}
left={_MOST}
for d in /sys/class/infiniband/*/device/net/*; do
  [ -e "$d/mtu" ] && [ "$left" -gt 0 ] || continue
  left=$((left - 1)); n=${{d##*/}}
  ethtool "$n" 2>/dev/null; ethtool -g "$n" 2>/dev/null
  ethtool -l "$n" 2>/dev/null; ethtool -a "$n" 2>/dev/null
done
echo end"""

#: How each of the answers begins -> what it is of.
_HEADS = {
    "Settings for": "settings", "Ring parameters for": "rings",
    "Channel parameters for": "channels", "Pause parameters for": "pause",
}  # fmt: skip
_HEAD = re.compile(rf"({'|'.join(_HEADS)}) ([^\s:]{{1,32}}):", re.ASCII)
#: `ethtool -i`, which does not name it.
_DRIVER = re.compile(r"driver: (\S{1,32})", re.ASCII)
_STATISTICS = re.compile(r"NIC statistics:")
_FIELD = re.compile(r"([A-Za-z][\w -]{0,60}?):[ \t]*(\S.{0,200})?", re.ASCII)
_SPEED = re.compile(r"(\d{1,7})Mb/s", re.ASCII)
_MODE = re.compile(r"\b(\d{2,7})base", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_DUPLEX: dict[str, Known[bool]] = {"Full": True, "Half": False}
_NO_SPEED = "the interface tells no speed: its link is down"
#: Link detected: no (No cable)
_WHY_DOWN = re.compile(r"no \((.{1,60})\)", re.ASCII)

_Part = dict[str, Any]  # the answer's kind, name and line; its fields by name, those set and most
#: Field -> how the line that shows it begins.
_SHOWN = {
    "rate_gbits": "Speed", "carrier": "Link detected", "rx_ring": "RX", "channels": "Combined",
    "rate_max_gbits": "Supported link modes", "full_duplex": "Duplex",
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The line of a field of the interface whose first answer begins at `start`."""
    begins = f"{_SHOWN.get(field, field)}:"
    for number, line in enumerate(text.split("\n")[start:], start + 1):
        if line.strip().startswith(begins):
            return number
        if _HEAD.match(line):
            break
    return start


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=20, locate=locate)
def ethtool(text: str) -> Netdevs:
    """`Settings for eth0:`, `Ring parameters for eth0:` and their like, as many as there are."""
    lines = text.split("\n")
    found: dict[str, Netdev] = {}
    for part in _parts(lines):
        name = part["name"]
        first = found.get(name) or Netdev(name, line=part["line"], probe=_PROBE)
        found[name] = replace(first, **_READ[part["kind"]](part))
    if not found and "end" not in map(str.strip, lines[-2:]):
        raise ParseError("expected lines such as `Settings for eth0:`", 1)
    return Netdevs(tuple(found.values()), probe=_PROBE)


def _parts(lines: list[str]) -> Iterator[_Part]:
    """Each answer with its fields; of one that has a maximum and a value these are apart."""
    part: _Part | None = None
    for number, line in enumerate(lines, 1):
        told = line.strip()
        head = _HEAD.fullmatch(told)
        if head or _DRIVER.fullmatch(told) or _STATISTICS.fullmatch(told):
            yield from [part] if part else []
            part = _begun(head, told, number, part)
        elif part is None:
            continue
        elif told == "Current hardware settings:":
            part["most"], part["told"], part["last"] = part["told"], {}, ""
        elif match := _FIELD.fullmatch(told):
            part["told"].setdefault(match[1], (match[2] or "").strip())
            part["last"] = match[1]
        elif told and part.get("last") == "Supported link modes":
            part["told"][part["last"]] += f" {told}"
    yield from [part] if part else []


def _begun(
    head: re.Match[str] | None, told: str, number: int, before: _Part | None
) -> _Part:  # fmt: skip
    """An answer that does not name its interface is of the one before it."""
    part: _Part = {"line": number, "told": {}, "most": {}}
    if head:
        return {**part, "kind": _HEADS[head[1]], "name": head[2]}
    kind = "statistics" if told.startswith("NIC") else "driver"
    name = before["name"] if before and before["kind"] != "driver" else f"line {number}"
    return {**part, "kind": kind, "name": name, "told": {"driver": told.partition(": ")[2]}}


def _settings(part: _Part) -> dict[str, Any]:
    told = part["told"]
    speed = _SPEED.match(told.get("Speed", ""))
    modes = [int(mode) for mode in _MODE.findall(told.get("Supported link modes", ""))]
    detected = told.get("Link detected", "")
    up, why = detected[:3].strip(), _WHY_DOWN.fullmatch(detected)
    down = Missing("not-applicable", f"{_NO_SPEED} ({why[1]})" if why else _NO_SPEED)
    return {
        "kind": "physical" if speed or modes else "other",
        "rate_gbits": int(speed[1]) / 1000 if speed else down,
        "rate_max_gbits": max(modes) / 1000 if modes else NOT_IN_INPUT,
        "carrier": up == "yes" if up else NOT_IN_INPUT,
        "full_duplex": _DUPLEX.get(told.get("Duplex", ""), NOT_IN_INPUT),
    }


def _rings(part: _Part) -> dict[str, Any]:
    return {"rx_ring": _number(part["told"], "RX"), "rx_ring_max": _number(part["most"], "RX")}


def _channels(part: _Part) -> dict[str, Any]:
    told, most = part["told"], part["most"]
    return {"channels": _number(told, "Combined"), "channels_max": _number(most, "Combined")}


def _pause(part: _Part) -> dict[str, Any]:
    words: dict[str, Known[bool]] = {"on": True, "off": False}
    told = part["told"]
    return {
        "pause_rx": words.get(told.get("RX", ""), NOT_IN_INPUT),
        "pause_tx": words.get(told.get("TX", ""), NOT_IN_INPUT),
    }


def _driver(part: _Part) -> dict[str, Any]:
    told = part["told"]
    return {
        "driver": told.get("driver") or NOT_IN_INPUT,
        "firmware": told.get("firmware-version", "").partition(" ")[0] or NOT_IN_INPUT,
        "address": told.get("bus-info") or NOT_IN_INPUT,
    }


def _statistics(part: _Part) -> dict[str, Any]:
    told = part["told"]
    missed = [_number(told, name) for name in ("rx_out_of_buffer", "rx_missed_errors")]
    known = [one for one in missed if not isinstance(one, Missing)]
    crc = [_number(told, name) for name in ("rx_crc_errors_phy", "rx_crc_errors")]
    return {
        "rx_missed": known[0] if known else NOT_IN_INPUT,
        "rx_crc_errors": next((one for one in crc if isinstance(one, int)), NOT_IN_INPUT),
    }


def _number(told: dict[str, str], name: str) -> Known[int]:
    text = told.get(name, "")
    return int(text) if _NUMBER.fullmatch(text) else NOT_IN_INPUT


_READ = {
    "settings": _settings, "rings": _rings, "channels": _channels, "pause": _pause,
    "driver": _driver, "statistics": _statistics,
}  # fmt: skip
