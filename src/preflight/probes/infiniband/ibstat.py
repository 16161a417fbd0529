"""RDMA devices and their ports, as ibstat and ibstatus of infiniband-diags print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError
from preflight.facts.nics import Nic, NicPort, Nics
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.infiniband.ports import (
    CUT,
    answer,
    number_of,
    physical_of,
    state_of,
)
from preflight.probes.spec import probe

_CA = re.compile(r"CA '([\w.-]{1,64})'", re.ASCII)
_PORT = re.compile(r"Port (\d{1,3}):", re.ASCII)
_FIELD = re.compile(r"([A-Za-z][\w ]{1,30}?)[ \t]*:[ \t]*(\S.{0,120})?", re.ASCII)
#: ibstat writes it where a device cannot be read, and ends there.
_PANIC = re.compile(r"ibpanic: \[\d+\] \w+: stat of IB device '([\w.-]{1,64})' failed: (.{1,120})")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9])?)(?: \((?:FDR10|\w+)\))?")
_STATUS = re.compile(r"Infiniband device '([\w.-]{1,64})' port (\d{1,3}) status:", re.ASCII)
_STATUS_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?) Gb/sec(?: \(([0-9]{1,3})X\b)?")

_Part = dict[str, Any]


def locate_ibstat(text: str, start: int, field: str) -> int:
    """The line of a field of the device or port that begins at `start`."""
    return _locate(text, start, _IBSTAT.get(field, field), _CA)


def locate_ibstatus(text: str, start: int, field: str) -> int:
    """The same of ibstatus."""
    return _locate(text, start, _IBSTATUS.get(field, field), _STATUS)


#: Field -> how the line that shows it begins.
_IBSTAT = {
    "hca": "CA type", "firmware": "Firmware version", "state": "State",
    "phys_state": "Physical state", "rate_gbits": "Rate", "sm_lid": "SM lid",
    "link_layer": "Link layer",
}  # fmt: skip
_IBSTATUS = {
    "state": "state", "phys_state": "phys state", "rate_gbits": "rate", "lanes": "rate",
    "sm_lid": "sm lid", "link_layer": "link_layer",
}  # fmt: skip


def _locate(text: str, start: int, begins: str, other: re.Pattern[str]) -> int:
    for number, line in enumerate(text.split("\n")[start:], start + 1):
        if line.strip().startswith(f"{begins}:"):
            return number
        if other.match(line.strip()):
            break
    return start


@probe("ibstat", ["ibstat"], timeout_s=20, with_stderr=True, locate=locate_ibstat)
def ibstat(text: str) -> Nics:
    """`CA 'mlx5_0'`, its fields, `Port 1:` and the port's. A device at which ibstat breaks off is
    one that cannot be read; those before it count."""
    devices: list[Nic] = []
    ports: list[NicPort] = []
    for own, *of_ports in _devices(text):
        if "panic" in own:
            devices.append(_unreadable(own))
            ports.append(_unreadable_port(own))
            continue
        nic = _nic(own)
        devices.append(nic)
        ports += [_port(nic, part) for part in of_ports]
        ports += _cut_off(nic, own, len(of_ports))
    if not devices:
        raise ParseError("expected lines such as `CA 'mlx5_0'`", 1)
    return answer(devices, ports, "ibstat")


def _devices(text: str) -> Iterator[list[_Part]]:
    """The fields of each device, then those of its ports."""
    found: list[_Part] = []
    for number, line in enumerate(text.split("\n"), 1):
        told = line.strip()
        if match := (_PANIC.match(told) or _CA.fullmatch(told)):
            yield from [found] if found else []
            why = {"panic": match[2]} if match.re is _PANIC else {}
            found = [{"name": match[1], "line": number, **why}]
        elif found and (match := _PORT.fullmatch(told)):
            found.append({"port": match[1], "line": number})
        elif found and (match := _FIELD.fullmatch(told)):
            found[-1].setdefault(match[1], (match[2] or "").strip())
    yield from [found] if found else []


def _unreadable(own: _Part) -> Nic:
    gone = Missing("unreadable", f"ibstat cannot read it: {own['panic']}")
    return Nic(own["name"], hca=gone, firmware=gone, line=own["line"], probe="ibstat")


def _unreadable_port(own: _Part) -> NicPort:
    gone = Missing("unreadable", f"ibstat cannot read {own['name']}: {own['panic']}")
    return NicPort(f"{own['name']}/1", own["name"], hca=gone, state=gone, phys_state=gone,
                   rate_gbits=gone, link_layer=gone, line=own["line"], probe="ibstat")  # fmt: skip


def _nic(own: _Part) -> Nic:
    return Nic(
        own["name"],
        hca=own.get("CA type") or NOT_IN_INPUT,
        firmware=own.get("Firmware version") or NOT_IN_INPUT,
        system_guid=own.get("System image GUID") or NOT_IN_INPUT,
        line=own["line"],
        probe="ibstat",
    )


def _port(nic: Nic, part: _Part) -> NicPort:
    return NicPort(
        f"{nic.name}/{part['port']}",
        nic.name,
        hca=nic.hca,
        state=state_of(part.get("State") or CUT),
        phys_state=physical_of(part.get("Physical state")),
        rate_gbits=_rate(part.get("Rate")),
        link_layer=part.get("Link layer") or NOT_IN_INPUT,
        lid=number_of(part.get("Base lid")),
        sm_lid=number_of(part.get("SM lid")),
        line=part["line"],
        probe="ibstat",
    )


def _cut_off(nic: Nic, own: _Part, told: int) -> Iterator[NicPort]:
    """The ports that the adapter has and the text has not."""
    count = number_of(own.get("Number of ports"))
    for number in range(told + 1, count + 1 if isinstance(count, int) and count < 9 else 0):
        gone = Missing("unreadable", "the text is cut short before this port")
        yield NicPort(f"{nic.name}/{number}", nic.name, hca=nic.hca, state=gone,
                      line=own["line"], probe="ibstat")  # fmt: skip


def _rate(told: str | None) -> Known[float]:
    """`400`, and `40 (FDR10)`."""
    if not told:
        return NOT_IN_INPUT
    match = _RATE.fullmatch(told)
    return float(match[1]) if match else Missing("unreadable", f"{told[:60]!r} is no rate")


@probe("ibstatus", ["ibstatus"], timeout_s=20, locate=locate_ibstatus)
def ibstatus(text: str) -> Nics:
    """`Infiniband device 'mlx5_0' port 1 status:` and what sysfs tells of the port."""
    parts: list[_Part] = []
    for number, line in enumerate(text.split("\n"), 1):
        told = line.strip()
        if match := _STATUS.fullmatch(told):
            parts.append({"nic": match[1], "port": match[2], "line": number})
        elif parts and (match := _FIELD.fullmatch(told)):
            parts[-1].setdefault(match[1], (match[2] or "").strip())
    if not parts:
        raise ParseError("expected lines such as `Infiniband device 'mlx5_0' port 1 status:`", 1)
    first = {part["nic"]: part["line"] for part in reversed(parts)}
    devices = [Nic(name, line=first[name], probe="ibstatus") for name in
               dict.fromkeys(part["nic"] for part in parts)]  # fmt: skip
    return answer(devices, map(_status, parts), "ibstatus")


def _status(part: _Part) -> NicPort:
    rate = _STATUS_RATE.match(part.get("rate", ""))
    return NicPort(
        f"{part['nic']}/{part['port']}",
        part["nic"],
        state=state_of(part.get("state") or CUT),
        phys_state=physical_of(part.get("phys state")),
        rate_gbits=float(rate[1]) if rate else NOT_IN_INPUT,
        lanes=int(rate[2]) if rate and rate[2] else NOT_IN_INPUT,
        link_layer=part.get("link_layer") or NOT_IN_INPUT,
        lid=number_of(part.get("base lid")),
        sm_lid=number_of(part.get("sm lid")),
        line=part["line"],
        probe="ibstatus",
    )
