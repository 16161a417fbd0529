"""RDMA devices and their ports, as ibv_devinfo of rdma-core prints them, with -v or without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError
from preflight.facts.nics import Gid, Nic, NicPort, Nics
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.infiniband.ports import (
    CUT,
    MOST_GIDS,
    answer,
    gid_of,
    number_of,
    physical_of,
    state_of,
)
from preflight.probes.spec import probe

_FIELD = re.compile(r"([a-z][a-z_]{1,30}):[ \t]*(\S.{0,120})?", re.ASCII)
#: GID[  3]: ::ffff:10.0.0.1, RoCE v2; older ones tell no type.
_GID = re.compile(r"GID\[ {0,4}(\d{1,4})\]:\s+([\w:.-]{2,60})(?:, (\S.{0,20}))?", re.ASCII)
_BRACKETED = re.compile(r"(\S.{0,30}?) \([0-9]{1,3}\)")
_LANES = re.compile(r"([0-9]{1,2})X \([0-9]{1,3}\)")
_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9])?) Gbps \([0-9]{1,4}\)")
#: What it writes, on standard error, where it breaks off at a device; it does not say which.
_REFUSED = re.compile(r"(?m)^[ \t]*Failed to (?:open device|query device[^\n]{0,40})")
#: What it writes of a host without any.
_NONE = re.compile(r"(?m)^[ \t]*No IB devices found[ \t]*\r?$")
_MELLANOX = "0x02c9"

_Part = dict[str, Any]
#: Field -> the key of the line that shows it, where that is another.
_SHOWN = {
    "hca": "vendor_part_id", "firmware": "fw_ver", "rate_gbits": "active_speed",
    "lanes": "active_width", "lid": "port_lid", "active_mtu_bytes": "active_mtu",
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The line of a field of the device or port that begins at `start`."""
    key = _SHOWN.get(field, field)
    for number, line in enumerate(text.split("\n")[start:], start + 1):
        told = line.strip()
        if told.startswith(f"{key}:"):
            return number
        if told.startswith("hca_id:"):
            break
    return start


@probe("ibv_devinfo", ["ibv_devinfo", "-v"], timeout_s=20, with_stderr=True, locate=locate)
def ibv_devinfo(text: str) -> Nics:
    """`hca_id:`, the device's fields, `port:` and the port's."""
    devices: list[Nic] = []
    ports: list[NicPort] = []
    for own, *of_ports in _devices(text):
        nic = _nic(own)
        devices.append(nic)
        ports += [_port(nic, part) for part in of_ports]
        ports += _cut_off(nic, own, len(of_ports))
    if not devices and _NONE.search(text):
        return answer([], [], "ibv_devinfo")
    if not devices:
        raise ParseError("expected lines such as `hca_id: mlx5_0`", 1)
    refused = _REFUSED.search(text)
    if refused:
        line = text.count("\n", 0, refused.start()) + 1
        gone = Missing("unreadable", f"ibv_devinfo names no device after this: {refused[0]}")
        ports.append(NicPort("?/1", "?", state=gone, line=line, probe="ibv_devinfo"))
    return answer(devices, ports, "ibv_devinfo")


def _devices(text: str) -> Iterator[list[_Part]]:
    """The fields of each device, then those of its ports."""
    found: list[_Part] = []
    for number, line in enumerate(text.split("\n"), 1):
        told = line.strip()
        if found and (gid := _GID.fullmatch(told)):
            found[-1].setdefault("gids", []).append(gid.groups())
            continue
        match = _FIELD.fullmatch(told)
        if match is None:
            continue
        key, value = match[1], (match[2] or "").strip()
        if key == "hca_id":
            yield from [found] if found else []
            found = [{"line": number}]
        elif key == "port" and found:
            found.append({"line": number})
        if found:
            found[-1].setdefault(key, value)
    yield from [found] if found else []


def _nic(own: _Part) -> Nic:
    transport = _BRACKETED.fullmatch(own.get("transport", ""))
    return Nic(
        own["hca_id"] or "?",
        hca=_hca(own),
        board_id=own.get("board_id") or NOT_IN_INPUT,
        firmware=own.get("fw_ver") or NOT_IN_INPUT,
        system_guid=own.get("sys_image_guid") or NOT_IN_INPUT,
        transport=transport[1] if transport else NOT_IN_INPUT,
        line=own["line"],
        probe="ibv_devinfo",
    )


def _hca(own: _Part) -> Known[str]:
    """As the kernel calls it: MT4119; of other makers their number."""
    part = own.get("vendor_part_id")
    if not part:
        return NOT_IN_INPUT
    return f"MT{part}" if own.get("vendor_id") == _MELLANOX else str(part)


def _port(nic: Nic, part: _Part) -> NicPort:
    lanes = _LANES.fullmatch(part.get("active_width", ""))
    speed = _SPEED.fullmatch(part.get("active_speed", ""))
    return NicPort(
        f"{nic.name}/{part['port']}",
        nic.name,
        hca=nic.hca,
        state=state_of(part.get("state") or CUT),
        phys_state=physical_of(part.get("phys_state")),
        # The speed is that of a lane (ibv_query_port(3)).
        rate_gbits=float(speed[1]) * int(lanes[1]) if speed and lanes else NOT_IN_INPUT,
        lanes=int(lanes[1]) if lanes else NOT_IN_INPUT,
        link_layer=part.get("link_layer") or NOT_IN_INPUT,
        active_mtu_bytes=number_of(part["active_mtu"].split()[0])
        if part.get("active_mtu")
        else NOT_IN_INPUT,
        lid=number_of(part.get("port_lid")),
        sm_lid=number_of(part.get("sm_lid")),
        gids=_gids(part),
        transport=nic.transport,
        line=part["line"],
        probe="ibv_devinfo",
    )


def _gids(part: _Part) -> Known[tuple[Gid, ...]]:
    if "gids" not in part:
        return NOT_IN_INPUT
    found = (
        gid_of(int(at), told, kind or NOT_IN_INPUT, NOT_IN_INPUT)
        for at, told, kind in part["gids"][:MOST_GIDS]
    )
    return tuple(gid for gid in found if gid)


def _cut_off(nic: Nic, own: _Part, told: int) -> Iterator[NicPort]:
    """The ports that the adapter has and the text has not."""
    count = number_of(own.get("phys_port_cnt"))
    for number in range(told + 1, count + 1 if isinstance(count, int) and count < 9 else 0):
        gone = Missing("unreadable", "the text is cut short before this port")
        yield NicPort(f"{nic.name}/{number}", nic.name, hca=nic.hca, state=gone,
                      transport=nic.transport, line=own["line"], probe="ibv_devinfo")  # fmt: skip
