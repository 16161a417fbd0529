"""What several answers tell of the same adapters, as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from preflight.facts.nics import Netdev, Netdevs, Nic, NicPort, Nics
from preflight.model import NOT_IN_INPUT, Known, Missing

T = TypeVar("T", Nic, NicPort, Netdev)


def merged_nics(found: Mapping[str, Any], suppliers: Sequence[str], best: Known[Nics]) -> Any:
    """The adapters of all answers: of each field the best that is known, by the order of those who
    supply it."""
    told = [found[name] for name in suppliers if isinstance(found.get(name), Nics)]
    if len(told) < 2:
        return best
    devices = _by_name([nic for one in told for nic in one.devices])
    ports = _by_name([port for one in told for port in one.ports])
    return Nics(tuple(devices), tuple(ports), probe=told[0].probe)


def merged_netdevs(found: Mapping[str, Any], suppliers: Sequence[str], best: Any) -> Any:
    """The same of interfaces."""
    told = [found[name] for name in suppliers if isinstance(found.get(name), Netdevs)]
    if len(told) < 2:
        return best
    return Netdevs(tuple(_by_name([each for one in told for each in one.devices])),
                   probe=told[0].probe)  # fmt: skip


def _by_name(records: Sequence[T]) -> list[T]:
    merged: dict[str, T] = {}
    for one in records:
        merged[one.name] = _filled(merged[one.name], one) if one.name in merged else one
    return list(merged.values())


def _filled(first: T, other: T) -> T:
    """The first, with what only the other knows."""
    lacking = {
        name: value
        for name in first.__struct_fields__
        if isinstance(getattr(first, name), Missing)
        and not isinstance(value := getattr(other, name), Missing)
    }
    return replace(first, **lacking) if lacking else first


def netdevs_of(told: Known[Netdevs], nics: Known[Nics]) -> Known[tuple[Netdev, ...]]:
    """The interfaces, with whose port each is and what is usual for those that can do as much."""
    if isinstance(told, Missing):
        return told
    ports = () if isinstance(nics, Missing) else nics.ports
    of_ports = {port.netdev for port in ports}
    found = tuple(
        replace(one, rdma=one.name in of_ports, usual_rate_gbits=_usual(one, told.devices))
        for one in told.devices
    )
    return found or Missing("not-applicable", "no network interface but the loopback")


def _usual(one: Netdev, others: Sequence[Netdev]) -> Known[float]:
    """The rate that most have that can do as much; of two as frequent ones the greater."""
    alike = [other for other in others if (other.kind, other.rate_max_gbits) ==
             (one.kind, one.rate_max_gbits)]  # fmt: skip
    rates = Counter(other.rate_gbits for other in alike if isinstance(other.rate_gbits, float))
    if not rates or isinstance(one.rate_max_gbits, Missing):
        return Missing("not-applicable", "what it can do is not told, or none like it is up")
    return max(rates, key=lambda rate: (rates[rate], rate))


def with_interfaces(nics: Nics, netdevs: Known[tuple[Netdev, ...]]) -> Nics:
    """The ports with what only their interface tells."""
    by_name = {} if isinstance(netdevs, Missing) else {one.name: one for one in netdevs}
    return replace(nics, ports=tuple(_joined(port, by_name) for port in nics.ports))


def _joined(port: NicPort, netdevs: Mapping[str, Netdev]) -> NicPort:
    own = netdevs.get(port.netdev) if isinstance(port.netdev, str) else None
    if own is None:
        return port
    told = {"rate_max_gbits": own.rate_max_gbits, "mtu_bytes": own.mtu_bytes,
            "netdev_rate_gbits": own.rate_gbits}  # fmt: skip
    if port.link_layer == "Ethernet":  # the rate of IPoIB is none of the port's
        told["rate_gbits"] = own.rate_gbits
    lacking = {name: value for name, value in told.items() if not isinstance(value, Missing)
               and getattr(port, name) == NOT_IN_INPUT}  # fmt: skip
    return replace(port, **lacking)
