"""What several tools tell of a port, in the kernel's words."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from preflight.facts.nics import Gid, Nic, NicPort, Nics
from preflight.model import NOT_IN_INPUT, Known, Missing

#: As many entries of a table of addresses as are kept: a host of many containers has hundreds.
MOST_GIDS = 64
#: In place of a state where a text ends before it: every tool prints one for each port.
CUT = "cut short"
#: ibstat and ibv_devinfo -> the kernel (drivers/infiniband/core/sysfs.c, state_show).
_STATES = {
    "down": "DOWN", "init": "INIT", "initialize": "INIT", "initializing": "INIT",
    "armed": "ARMED", "active": "ACTIVE", "active_defer": "ACTIVE_DEFER", "nop": "NOP",
}  # fmt: skip
#: A state and the number that stands for it, on either side; ibv_devinfo writes PORT_ before it.
_STATE = re.compile(r"(?:[0-9]{1,2}: ?)?(?:PORT_)?(\S.{0,40}?)(?: \([0-9]{1,2}\))?", re.ASCII)
_PHYSICAL = {"link_up": "LinkUp", "linkup": "LinkUp", "polling": "Polling", "disabled": "Disabled",
             "sleep": "Sleep"}  # fmt: skip
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,8}|-?[0-9]{1,9}", re.ASCII)
_NO_IPV4 = Missing("not-applicable", "its address is one of IPv6")
#: What stands for an address in a capture that was redacted.
_STAND_IN = re.compile(r"(?:ipv[46]|guid)-(?:[0-9a-f]{4}-)?[0-9]{1,6}$")
_GID = re.compile(r"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}")


def state_of(told: str | None) -> Known[str]:
    """`4: ACTIVE`, `Active`, `PORT_ACTIVE (4)` -> ACTIVE."""
    if not told:
        return NOT_IN_INPUT
    if told == CUT:
        return Missing("unreadable", "the text is cut short before the state of the port")
    match = _STATE.fullmatch(told)
    word = match[1].lower() if match else ""
    return _STATES.get(word) or Missing("unreadable", f"{told[:60]!r} is no state of a port")


def physical_of(told: str | None) -> Known[str]:
    """`5: LinkUp`, `LinkUp`, `LINK_UP` -> LinkUp; other words stay."""
    match = _STATE.fullmatch(told) if told else None
    if match is None:
        return NOT_IN_INPUT
    return _PHYSICAL.get(match[1].lower(), match[1])


def number_of(told: str | None) -> Known[int]:
    """A whole number, in hex behind 0x."""
    if told is None:
        return NOT_IN_INPUT
    if not _NUMBER.fullmatch(told):
        return Missing("unreadable", f"{told[:60]!r} is no number")
    return int(told, 0 if told.startswith("0x") else 10)


def gid_of(index: int, told: str, kind: Known[str], netdev: Known[str]) -> Gid | None:
    """An entry of the table; None where it is empty or none."""
    told = told.strip().lower()
    if _STAND_IN.search(told):
        return Gid(index, told, kind, netdev, _redacted(told))
    try:
        address = ipaddress.IPv6Address(told)
    except ValueError:
        return None
    if not int(address):
        return None
    full = told if _GID.fullmatch(told) else address.exploded
    v4 = address.ipv4_mapped
    return Gid(index, full, kind, netdev, str(v4) if v4 else _NO_IPV4)


def _redacted(told: str) -> Known[str]:
    """What is left of an address: fe80:0000:0000:0000:guid-1, 0000: ... :ffff:ipv4-1."""
    if told.startswith("fe80:"):
        return _NO_IPV4
    of_ipv4 = ":ffff:ipv4-" in told
    return told.rpartition(":")[2] if of_ipv4 else Missing("not-in-input", "it is redacted")


def answer(nics: Iterable[Nic], ports: Iterable[NicPort], probe: str) -> Nics:
    """What a tool told, in its order."""
    return Nics(tuple(nics), tuple(ports), probe=probe)
