"""Interfaces and their addresses, from `ip addr` or `ip link` of iproute2."""

from __future__ import annotations

import re
from typing import Any

from preflight.errors import ParseError
from preflight.facts.nics import Netdev, Netdevs
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "ip-addr"
#: 2: eth0@if7: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq master bond0 state UP group default
_HEAD = re.compile(r"\d{1,6}: ([^\s:@]{1,32})(?:@[^\s:]{1,32})?: <([A-Z_,0-9-]{0,200})> (.{0,300})")
_PAIR = re.compile(r"\b(mtu|master|state) (\S{1,32})")
_INET = re.compile(r"inet (\d{1,3}(?:\.\d{1,3}){3}/\d{1,2})\b", re.ASCII)
#: Of the names that the kernel and its tools give: no device of its own stands behind them.
_KINDS = (("bond", "bond"), ("br-", "bridge"), ("docker", "bridge"), ("virbr", "bridge"),
          ("tun", "tunnel"))  # fmt: skip
_ENDS = ("veth", "cali", "lxc", "tap")
_NO_MASTER = Missing("not-applicable", "it belongs to no other")

_Part = dict[str, Any]


@probe(_PROBE, ["ip", "addr"], timeout_s=10)
def ip_addr(text: str) -> Netdevs:
    """A line that begins with a number for each interface, its addresses indented below."""
    parts: list[_Part] = []
    addresses = False
    for number, line in enumerate(text.split("\n"), 1):
        told = line.strip()
        if match := _HEAD.match(told):
            parts.append({"name": match[1], "flags": match[2].split(","), "line": number,
                          "inet": [], **dict(_PAIR.findall(match[3]))})  # fmt: skip
        elif parts and (match := _INET.match(told)):
            parts[-1]["inet"].append(match[1])
        addresses |= told.startswith("inet")
    if not parts:
        raise ParseError("expected lines such as `2: eth0: <UP,LOWER_UP> mtu 1500 ...`", 1)
    kept = [one for one in parts if "LOOPBACK" not in one["flags"] and not _is_end(one["name"])]
    return Netdevs(tuple(_netdev(one, kept, told=addresses) for one in kept), probe=_PROBE)


def _is_end(name: str) -> bool:
    """Whether it is the host's end of a container's interface."""
    return name.startswith(_ENDS)


def _netdev(part: _Part, others: list[_Part], *, told: bool) -> Netdev:
    mtu = part.get("mtu", "")
    kind = next((kind for begin, kind in _KINDS if part["name"].startswith(begin)), "other")
    return Netdev(
        name=part["name"],
        kind="physical" if kind == "other" and "state" in part and _is_port(part) else kind,
        state=str(part.get("state", "")).lower() or NOT_IN_INPUT,
        carrier="LOWER_UP" in part["flags"],
        mtu_bytes=int(mtu) if mtu.isdecimal() and len(mtu) < 7 else NOT_IN_INPUT,
        master=part.get("master") or _NO_MASTER,
        members=_members(part["name"], kind, others),
        ipv4=tuple(part["inet"]) if told else NOT_IN_INPUT,
        line=part["line"],
        probe=_PROBE,
    )


def _is_port(part: _Part) -> bool:
    """By the names of systemd and the kernel: eno1, ens1f0, enp3s0, eth0, ib0, ibp24s0."""
    return re.match(r"(?:en[opsx]\w|eth\d|ib\w)", part["name"]) is not None


def _members(name: str, kind: str, others: list[_Part]) -> Known[tuple[str, ...]]:
    if kind != "bond":
        return Missing("not-applicable", "it is no bond")
    return tuple(one["name"] for one in others if one.get("master") == name)
