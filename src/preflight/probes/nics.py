"""RDMA devices and their ports, from sysfs."""

from __future__ import annotations

import re
from typing import Any

from preflight.errors import ParseError
from preflight.facts.nics import Nic, NicPort, Nics
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.infiniband.ports import number_of as _int
from preflight.probes.infiniband.ports import physical_of, state_of
from preflight.probes.infiniband.tables import (
    COUNTERS,
    NO_GID,
    is_table,
    locate_counter,
    tables,
    with_tables,
)
from preflight.probes.spec import probe

_PROBE = "nics"
# Documentation/ABI/stable/sysfs-class-infiniband of the kernel. `physfn` marks a virtual function.
# `dev_port` counts an adapter's ports from 0, RDMA from 1. The speed of a link that is down cannot
# be read. One process reads the tables of addresses and the counters, which are hundreds of files;
# an entry without an address has no type to be read, and is left out.
_ASK = f"""\
told=; say() {{ told="$told$1
"; }}
value() {{ v=; {{ read -r v <"$1"; }} 2>/dev/null; [ -z "$v" ] || say "$2 $v"; }}
[ -d /sys/class ] || {{ echo 'no /sys/class' >&2; exit 2; }}
for n in /sys/class/infiniband/*; do
  [ -e "$n/ports" ] || continue
  say "nic ${{n##*/}}"
  cd -P "$n/device" && say "address ${{PWD##*/}}"
  if [ -e "$n/device/physfn" ]; then say virtual; fi
  for f in hca_type board_id fw_ver node_type sys_image_guid device/numa_node; do
    value "$n/$f" "${{f##*/}}"
  done
  for p in "$n"/ports/*; do
    say "port ${{p##*/}}"
    for f in state phys_state rate link_layer lid sm_lid; do value "$p/$f" "$f"; done
  done
  for d in "$n"/device/net/*; do
    [ -e "$d/mtu" ] || continue
    say "netdev ${{d##*/}}"
    for f in dev_port mtu speed; do value "$d/$f" "$f"; done
  done
done
if [ -n "$told" ]; then
  printf %s "$told"
  cd /sys/class/infiniband && {{
    grep -s -H -v '{NO_GID}' */ports/*/gids/*
    grep -s -H '' */ports/*/gid_attrs/types/* */ports/*/gid_attrs/ndevs/* \\
      {" ".join(COUNTERS)}
  }}
fi
echo end"""

_BEGIN = ("nic", "port", "netdev")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?) Gb/sec(?: \(([0-9]{1,3})X\b)?")
#: enum rdma_node_type of rdma/ib_verbs.h: usNIC and EFA are of no transport of the standards.
_TRANSPORTS = {"CA": "InfiniBand", "RNIC": "iWARP", "usNIC": "usNIC", "usNIC UDP": "usNIC",
               "unspecified": "unspecified"}  # fmt: skip
_Part = dict[str, Any]  # a record's lines, and its first one's number as `line`
_NO_NODE = Missing("not-applicable", "the kernel names no NUMA node for it")
_NO_NETDEV = Missing("not-applicable", "no network interface on this port")
_NO_SPEED = Missing("not-applicable", "the interface tells no speed: its link is down")


#: Field -> the key of the line that shows it, where that is another.
_SHOWN = {
    "firmware": "fw_ver", "hca": "hca_type", "rate_gbits": "rate", "lanes": "rate",
    "mtu_bytes": "mtu", "netdev_rate_gbits": "speed",
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The line that shows a field of the device or port whose record begins at `start`."""
    lines = text.split("\n")
    if start and is_table(lines[start - 1]):
        return locate_counter(lines, start, field)
    key = f"{_SHOWN.get(field, field)} "
    for number, line in enumerate(lines[start:], start + 1):
        if line.startswith(key):
            return number
        if line.startswith("nic "):
            break
    return start


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def nics(text: str) -> Nics:
    """Lines of `key value`; `nic`, `port` and `netdev` each begin a record of the device above."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of RDMA devices is cut short: no closing `end`", len(lines))
    many = tables(lines)
    devices: list[Nic] = []
    ports: list[NicPort] = []
    for parts in _devices(["" if is_table(line) else line for line in lines[:-1]]):
        nic = _nic(parts[0])
        devices.append(nic)
        netdevs = [part for part in parts if "netdev" in part]
        found = [_port(nic, part, netdevs) for part in parts if "port" in part]
        ports += [with_tables(port, many) for port in found]
    return Nics(tuple(devices), tuple(ports), probe=_PROBE)


def _devices(lines: list[str]) -> list[list[_Part]]:
    """The records of each device, its own first."""
    found: list[list[_Part]] = []
    for number, line in enumerate(lines, 1):
        key, _, value = line.partition(" ")
        if key == "nic":
            found.append([])
        if not line:
            continue
        if not found:
            raise ParseError(f"expected `nic NAME`, got {line[:60]!r}", number)
        if key in _BEGIN:
            found[-1].append({"line": number})
        found[-1][-1].setdefault(key, " ".join(value.split()))
    return found


def _nic(part: _Part) -> Nic:
    node = _int(part.get("numa_node"))
    return Nic(
        name=part["nic"] or "?",
        hca=part.get("hca_type") or NOT_IN_INPUT,
        board_id=part.get("board_id") or NOT_IN_INPUT,
        firmware=part.get("fw_ver") or NOT_IN_INPUT,
        system_guid=part.get("sys_image_guid") or NOT_IN_INPUT,
        transport=_transport(part.get("node_type", "")),
        address=part.get("address") or NOT_IN_INPUT,
        numa_node=_NO_NODE if isinstance(node, int) and node < 0 else node,
        virtual="virtual" in part,
        line=part["line"],
        probe=_PROBE,
    )


def _transport(told: str) -> Known[str]:
    """`1: CA` -> InfiniBand."""
    return _TRANSPORTS.get(told.partition(": ")[2], NOT_IN_INPUT)


def _port(nic: Nic, part: _Part, netdevs: list[_Part]) -> NicPort:
    rate, lanes = _rate(part.get("rate"))
    return NicPort(
        name=f"{nic.name}/{part['port']}",
        nic=nic.name,
        hca=nic.hca,
        state=state_of(part.get("state")),
        phys_state=physical_of(part.get("phys_state")),
        rate_gbits=rate,
        lanes=lanes,
        link_layer=part.get("link_layer") or NOT_IN_INPUT,
        **_netdev(part["port"], netdevs),
        lid=_int(part.get("lid")),
        sm_lid=_int(part.get("sm_lid")),
        transport=nic.transport,
        virtual=nic.virtual,
        line=part["line"],
        probe=_PROBE,
    )


def _netdev(port: str, netdevs: list[_Part]) -> dict[str, Any]:
    """The interface of the port with this number, and what it tells."""
    number = _int(port)
    mine = [one for one in netdevs if _counted_from_1(one) == number]
    if not mine:
        return dict.fromkeys(("netdev", "mtu_bytes", "netdev_rate_gbits"), _NO_NETDEV)
    speed = _int(mine[0].get("speed"))  # Mbit/s; -1 where it is not known
    known = isinstance(speed, int) and speed > 0
    return {
        "netdev": mine[0]["netdev"],
        "mtu_bytes": _int(mine[0].get("mtu")),
        "netdev_rate_gbits": speed / 1000 if known else _NO_SPEED,  # type: ignore[operator]
    }


def _counted_from_1(netdev: _Part) -> int:
    at = _int(netdev.get("dev_port", "0"))
    return at + 1 if isinstance(at, int) else 1


def _rate(told: str | None) -> tuple[Known[float], Known[int]]:
    """`400 Gb/sec (4X NDR)` -> 400.0, 4."""
    if not told:
        return NOT_IN_INPUT, NOT_IN_INPUT
    match = _RATE.match(told)
    if not match:
        unread = Missing("unreadable", f"{told[:60]!r} is no rate of a port")
        return unread, unread
    return float(match[1]), int(match[2]) if match[2] else NOT_IN_INPUT
