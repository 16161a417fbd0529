"""What the input knows of the machine that wrote the log: its live ports, its GPUs, its links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from preflight.expect.nics import is_fit
from preflight.facts.host import Host
from preflight.facts.nccl import NcclConnection, NcclHost, NcclLog
from preflight.facts.nics import NicPort
from preflight.facts.topology import GpuPlace
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.units import number

#: Networks of plain TCP, and what libfabric calls its own.
_SOCKETS = ("Socket", "FastSocket")
_TCP = re.compile(r"\b(?:tcp|sockets|udp)\b")
#: Slower ports are of the host's own, not of training.
_LEAST_GBITS = 24.0


class Idle(Struct, frozen=True):
    """Ports that could carry RDMA; `told` as "8 x 400 Gb/s InfiniBand"."""

    ports: tuple[NicPort, ...]
    told: str
    infiniband: bool


def is_of(host: Host, log: NcclLog, name: str) -> bool:
    """Whether the facts beside the log are of this host of the log. A host that does not tell its
    name is one like all others of the job."""
    if isinstance(host.identity, Missing):
        return True
    known = host.identity.hostname.partition(".")[0]
    hosts = () if isinstance(log.hosts, Missing) else log.hosts
    return name.partition(".")[0] == known or not any(
        one.name.partition(".")[0] == known for one in hosts
    )


def over_tcp(network: str, provider: Known[str] = NOT_IN_INPUT) -> bool:
    """Whether a network, or any of several, goes through the kernel."""
    by_provider = isinstance(provider, str) and bool(_TCP.search(provider))
    return by_provider or any(part in _SOCKETS for part in network.split(", "))


def between_hosts(log: NcclLog, one: NcclHost, ways: Sequence[NcclConnection]) -> bool:
    """Whether the log shows that this host works with others. `ways`: those over a network that are
    not seen to end on the host itself."""
    hosts = () if isinstance(log.hosts, Missing) else log.hosts
    told = () if isinstance(log.communicators, Missing) else log.communicators
    return len(hosts) > 1 or bool(ways) or any(each.seen < each.ranks for each in told)


def live_ports(host: Host) -> Idle | Missing:
    """The ports that training could use: those of the role where that is known, else the fast ones,
    of InfiniBand where there is any."""
    if isinstance(host.nic_ports, Missing):
        return host.nic_ports
    nics = () if isinstance(host.topology.nics, Missing) else host.topology.nics
    unfit = {nic.name for nic in nics if isinstance(nic.role, str) and not is_fit(host, nic)}
    ports = [
        port for port in host.nic_ports
        if port.state == "ACTIVE" and not port.virtual and port.nic not in unfit
        and (port.role != "left-out" or is_fit(host, port))
    ]  # fmt: skip
    infiniband = [port for port in ports if port.link_layer == "InfiniBand"]
    ports = infiniband or ports
    least = max(_LEAST_GBITS, max(map(_gbits, ports), default=0.0) / 2)
    fast = tuple(port for port in ports if _gbits(port) > least or not _gbits(port))
    return Idle(fast, _told(fast), bool(infiniband))


def _gbits(port: NicPort) -> float:
    return 0.0 if isinstance(port.rate_gbits, Missing) else float(port.rate_gbits)


def _told(ports: tuple[NicPort, ...]) -> str:
    kinds = Counter(
        f"{_rate(port.rate_gbits)}{port.link_layer if isinstance(port.link_layer, str) else 'RDMA'}"
        for port in ports
    )
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())


def _rate(rate: object) -> str:
    return f"{number(float(rate))} Gb/s " if isinstance(rate, (int, float)) else ""


def interfaces(host: Host, names: tuple[str, ...]) -> str:
    """Interfaces with their rates where these are known: eth0 of 100 Gb/s."""
    rates = {} if isinstance(host.netdevs, Missing) else {
        one.name: one.rate_gbits for one in host.netdevs
    }  # fmt: skip
    told = [
        f"{name} of {_rate(rates[name]).strip()}"
        if isinstance(rates.get(name), (int, float)) else name
        for name in names
    ]  # fmt: skip
    return ", ".join(told[:4]) + (f" and {len(told) - 4} more" if len(told) > 4 else "")


def gpu_of(host: Host, log: NcclLog, told: str) -> str:
    """The GPU that an end of a connection names, by its address or its number; empty if unknown."""
    gpus = host.topology.gpus
    if isinstance(gpus, Missing) or not told:
        return ""
    found = next((gpu.name for gpu in gpus if _address(gpu) == _as_address(told)), "")
    if found:
        return found
    return f"gpu{told}" if told.isdigit() and any(one.name == f"gpu{told}" for one in gpus) else ""


def _address(gpu: GpuPlace) -> str:
    """0000:1a:00.0 -> 1a00.0 without the domain where it is 0, as NCCL writes it: 1a000."""
    if isinstance(gpu.bus_id, Missing):
        return "?"
    digits = gpu.bus_id.lower().replace(":", "").replace(".", "")
    return digits.lstrip("0") or "0"


def _as_address(told: str) -> str:
    return told.lower().lstrip("0") if len(told) > 2 else "-"


def joined_by_nvlink(host: Host, log: NcclLog, one: NcclConnection) -> bool | None:
    """Whether NVLink joins both GPUs; None where the input does not tell."""
    links = host.topology.links
    a = gpu_of(host, log, one.source_device)
    b = gpu_of(host, log, one.target_device)
    if isinstance(links, Missing) or not (a and b):
        return None
    path = next((link.path for link in links if {link.a, link.b} == {a, b}), None)
    return path == "NV" if isinstance(path, str) else None


def told_variables(log: NcclLog, host: str, names: tuple[str, ...]) -> str:
    """Those variables that the log says were set: NCCL_IB_DISABLE=1."""
    set_ = {
        f"{one.name}={one.value}" for one in log.variables
        if one.name in names and one.host in ("", host)
    }  # fmt: skip
    return ", ".join(sorted(set_))
