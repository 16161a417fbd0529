"""Ports and their interfaces: `rdma link` of iproute2, show_gids and ibdev2netdev of MLNX_OFED."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from preflight.errors import ParseError
from preflight.facts.nics import Gid, Nic, NicPort, Nics
from preflight.model import NOT_IN_INPUT
from preflight.probes.infiniband.ports import (
    MOST_GIDS,
    answer,
    gid_of,
    number_of,
    physical_of,
    state_of,
)
from preflight.probes.spec import probe

#: link mlx5_0/1 state ACTIVE ...; older ones number the line: 0/1: mlx5_0/1: state ACTIVE ...
_LINK = re.compile(r"(?:link |\d{1,4}/\d{1,3}: )([\w.-]{1,64})/(\d{1,3}):? (.{1,400})", re.ASCII)
_PAIR = re.compile(r"\b(subnet_prefix|lid|sm_lid|state|physical_state|netdev) (\S{1,64})", re.ASCII)
#: mlx5_0  1  3  0000:0000:0000:0000:0000:ffff:0a00:0001  10.0.0.1  v2  ens1f0np0
_GID = re.compile(
    r"([\w.-]{1,64})\s+(\d{1,3})\s+(\d{1,4})\s+([\w:.-]{6,60})\s+(?:([\w.-]{6,30})\s+)?"
    r"(v[12])(?:\s+(\S{1,32}))?",
    re.ASCII,
)
_VERSIONS = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
#: mlx5_0 port 1 ==> ens1f0np0 (Up), and what stands before it with -v.
_NETDEV = re.compile(r"(?:(\S{12}) )?([\w.-]{1,64}) .{0,200}?port (\d{1,3}).{0,60}?==> (\S{1,32}) "
                     r"\((?:Up|Down)\)", re.ASCII)  # fmt: skip
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@probe("rdma-link", ["rdma", "link"], timeout_s=10)
def rdma_link(text: str) -> Nics:
    """`link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2`, or the same as JSON."""
    start = text.find("[")
    parts = list(_json(text[start:])) if text.lstrip().startswith("[") else list(_lines(text))
    if not parts:
        raise ParseError("expected lines such as `link mlx5_0/1 state ACTIVE ...`", 1)
    return _answer((_link(*part) for part in parts), "rdma-link")


def _lines(text: str) -> Iterator[tuple[str, str, dict[str, str], int]]:
    for number, line in enumerate(text.split("\n"), 1):
        if match := _LINK.fullmatch(line.strip()):
            yield match[1], match[2], dict(_PAIR.findall(match[3])), number


def _json(text: str) -> Iterator[tuple[str, str, dict[str, str], int]]:
    try:
        rows, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        raise ParseError("the JSON of `rdma link -j` is cut short or damaged", 1) from None
    for row in rows:
        if isinstance(row, dict) and isinstance(row.get("ifname"), str) and "port" in row:
            told = {key: str(value) for key, value in row.items()}
            yield row["ifname"], str(row["port"]), told, 1


def _link(nic: str, port: str, told: dict[str, str], line: int) -> NicPort:
    of_ib = "sm_lid" in told or "subnet_prefix" in told
    layer = "InfiniBand" if of_ib else "Ethernet" if "netdev" in told else NOT_IN_INPUT
    return NicPort(
        f"{nic}/{port}",
        nic,
        state=state_of(told.get("state")),
        phys_state=physical_of(told.get("physical_state")),
        link_layer=layer,
        netdev=told.get("netdev") or NOT_IN_INPUT,
        lid=number_of(told.get("lid")),
        sm_lid=number_of(told.get("sm_lid")),
        line=line,
        probe="rdma-link",
    )


@probe("show-gids", ["show_gids"], timeout_s=10)
def show_gids(text: str) -> Nics:
    """A table of the addresses of all ports."""
    rows: dict[tuple[str, str], list[tuple[int, re.Match[str]]]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := _GID.fullmatch(line.strip()):
            rows.setdefault((match[1], match[2]), []).append((number, match))
    if not rows:
        raise ParseError("expected rows such as `mlx5_0 1 3 GID 10.0.0.1 v2 eth2`", 1)
    return _answer((_with_gids(*port, found) for port, found in rows.items()), "show-gids")


def _with_gids(nic: str, port: str, rows: list[tuple[int, re.Match[str]]]) -> NicPort:
    found: list[Gid | None] = [
        gid_of(int(row[3]), row[4], _VERSIONS[row[6]], row[7] or NOT_IN_INPUT)
        for _, row in rows[:MOST_GIDS]
    ]
    netdev = next((row[7] for _, row in rows if row[7]), None)
    return NicPort(
        f"{nic}/{port}",
        nic,
        netdev=netdev or NOT_IN_INPUT,
        gids=tuple(gid for gid in found if gid),
        line=rows[0][0],
        probe="show-gids",
    )


@probe("ibdev2netdev", ["ibdev2netdev", "-v"], timeout_s=10)
def ibdev2netdev(text: str) -> Nics:
    """`mlx5_0 port 1 ==> eth2 (Up)`, with -v the PCI address before it."""
    found: list[tuple[NicPort, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _NETDEV.match(line.strip()):
            port = NicPort(f"{match[2]}/{match[3]}", match[2], netdev=match[4], line=number,
                           probe="ibdev2netdev")  # fmt: skip
            found.append((port, match[1]))
    if not found:
        raise ParseError("expected lines such as `mlx5_0 port 1 ==> eth2 (Up)`", 1)
    addresses = {port.nic: told for port, told in found if told and _ADDRESS.fullmatch(told)}
    return _answer((port for port, _ in found), "ibdev2netdev", addresses)


def _answer(ports: Iterable[NicPort], name: str, addresses: dict[str, str] | None = None) -> Nics:
    """The ports, and their devices."""
    told = list(ports)
    first = {port.nic: port.line for port in reversed(told)}
    nics = dict.fromkeys(port.nic for port in told)
    where = addresses or {}
    devices = (Nic(nic, address=where.get(nic, NOT_IN_INPUT), line=first[nic], probe=name)
               for nic in nics)  # fmt: skip
    return answer(devices, told, name)
