"""RDMA adapters and network interfaces of this host, as the kernel tells them in sysfs
(Documentation/ABI/stable/sysfs-class-infiniband, Documentation/ABI/testing/sysfs-class-net)."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .sides import Line

SYS = Path("/sys")
_RATE = re.compile(r"([\d.]+) Gb/sec")
#: An IPv4 address within one of IPv6, and one that no router passes on.
_IPV4, _LOCAL = "0000:0000:0000:0000:0000:ffff:", "fe80:"
#: What perftest connects without further words: an RNIC takes rdma_cm, an EFA a way of its own.
_LAYERS, _KINDS = ("InfiniBand", "Ethernet"), ("1:", "")
_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def adapters(chosen: str = "") -> list[Line]:
    """Ports that are up, as `chosen` says in the syntax of NCCL_IB_HCA, else the fastest ones: a
    slower adapter is for storage or logins. In the order of their names, as rails are numbered."""
    found = sorted(_ports(), key=lambda one: _by_number(one["nic"]))
    if chosen:
        return [one for one in found if _is_chosen(one, chosen)]
    most = max((one["rate_gbits"] for one in found), default=0.0)
    return [one for one in found if one["rate_gbits"] == most]


def _by_number(name: str) -> list[Any]:
    """mlx5_2 before mlx5_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _ports() -> Iterator[Line]:
    for port in SYS.glob("class/infiniband/*/ports/*"):
        nic = port.parents[1]
        rate = _RATE.match(_read(port / "rate"))
        if "ACTIVE" not in _read(port / "state") or not rate or _is_given(nic):
            continue
        layer = _read(port / "link_layer")
        if layer not in _LAYERS or _read(nic / "node_type")[:2] not in _KINDS:
            continue
        yield {
            "nic": nic.name, "port": int(port.name), "rate_gbits": float(rate[1]), "layer": layer,
            "gid": gid_index(port) if layer == "Ethernet" else None,
            "cpus": _cpus(_read(nic / "device" / "numa_node")),
            "place": _place(nic / "device"),
        }  # fmt: skip


def _is_given(nic: Path) -> bool:
    """A virtual function that somebody else may have."""
    return (nic / "device" / "physfn").exists()


def _place(device: Path) -> str:
    """On PCI, with all bridges above it: what has more of it in common is nearer."""
    with contextlib.suppress(OSError):
        return str(device.resolve(strict=True))
    return ""


def _cpus(node: str) -> list[int]:
    """Processors of the NUMA node that this process may use; none where there is no node."""
    found = numbers(_read(SYS / f"devices/system/node/node{node}/cpulist"))
    return sorted(found & os.sched_getaffinity(0))


def numbers(text: str) -> set[int]:
    """`0-3,8` as the kernel writes lists."""
    ends = [part.partition("-") for part in text.split(",") if part]
    with contextlib.suppress(ValueError):
        return {one for low, _, high in ends for one in range(int(low), int(high or low) + 1)}
    return set()


def gid_index(port: Path) -> int | None:
    """The lowest entry of RoCE v2 with an address of IPv4, else with one of IPv6 that is routed:
    what NCCL takes by itself since 2.21."""
    found: list[tuple[bool, int]] = []
    for path in port.glob("gid_attrs/types/*"):
        gid = _read(port / "gids" / path.name)
        if _read(path) == "RoCE v2" and gid != _NO_GID and not gid.startswith(_LOCAL):
            found.append((not gid.startswith(_IPV4), int(path.name)))
    return min(found)[1] if found else None


def _is_chosen(one: Line, chosen: str) -> bool:
    """`mlx5_0:1,mlx5_2`: beginnings of names; `=` whole names; `^` all but these."""
    without, exact = chosen.startswith("^"), "=" in chosen[:2]
    words = [word.partition(":") for word in chosen.lstrip("^=").split(",") if word]
    hit = any(
        (one["nic"] == name if exact else one["nic"].startswith(name))
        and (not port or int(port) == one["port"])
        for name, _, port in words
    )
    return hit != without


def nearest(place: str, places: Sequence[str]) -> int:
    """Which of these devices has most of its way through PCI in common with that at `place`."""
    shared = [len(os.path.commonpath([place, one])) if place and one else 0 for one in places]
    return shared.index(max(shared))


def interface(name: str) -> Line:
    """What bounds TCP there: rate, MTU, and of a bond the rates of its members. A virtual interface
    has none, whatever its driver says."""
    base = SYS / "class/net" / name
    members = _read(base / "bonding/slaves").split()
    physical = bool(members) or (base / "device").exists()
    rates = [_speed(SYS / "class/net" / one) for one in members or [name]] if physical else []
    return {
        "interface": name, "physical": physical, "mtu_bytes": _number(base / "mtu"),
        "rates_gbits": [one for one in rates if one > 0],
    }  # fmt: skip


def _speed(base: Path) -> float:
    """Gbit/s; 0 where the link is down or does not tell."""
    return max(0, _number(base / "speed")) / 1000


def _number(path: Path) -> int:
    with contextlib.suppress(ValueError):
        return int(_read(path))
    return 0


def _read(path: Path) -> str:
    """Of a file of sysfs, "" where it is not there or cannot be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="ascii").strip()
    return ""
