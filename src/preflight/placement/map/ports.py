"""What is known of network adapters by their place on PCI: names, rates, state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.facts.pci_tree import PciDevice
from preflight.model import Missing
from preflight.placement.map.links import address_of

_VIRTUAL = "Virtual Function"
_LIVE = ("ACTIVE", "ACTIVE_DEFER")


class Ports:
    """The adapters of a host, looked up once."""

    def __init__(self, host: Host) -> None:
        nics = () if isinstance(host.nics, Missing) else host.nics
        netdevs = () if isinstance(host.netdevs, Missing) else host.netdevs
        ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
        self._rdma, self._plain = dict[str, list[str]](), dict[str, list[str]]()
        self._virtual = set[str]()
        for nic in nics:
            if isinstance(nic.address, str):
                self._rdma.setdefault(address_of(nic.address), []).append(nic.name)
                self._virtual.update([address_of(nic.address)] if nic.virtual else [])
        for netdev in netdevs:
            if isinstance(netdev.address, str):
                at = address_of(netdev.address)
                self._plain.setdefault(at, []).append(netdev.name)
                self._virtual.update([at] if netdev.kind == "virtual-function" else [])
        self._ports: dict[str, list[NicPort]] = {}
        for port in ports:
            self._ports.setdefault(port.nic, []).append(port)
        self._rates = {each.name: each.rate_gbits for each in netdevs}

    def names(self, address: str) -> list[str]:
        """mlx5_0; without RDMA the interface: eth0; empty where neither is known."""
        at = address_of(address)
        return self._rdma.get(at) or self._plain.get(at, [])

    def is_virtual(self, device: PciDevice) -> bool:
        """Whether it is a function that the adapter gives away."""
        told = device.virtual or _VIRTUAL in str(device.product)
        return told or address_of(device.name) in self._virtual

    def told(self, names: Iterable[str]) -> str:
        """`400 Gb/s InfiniBand`; `2 x 100 Gb/s Ethernet`; `down`; empty where it is not known."""
        found = Counter(text for name in names for text in self._each(name))
        return ", ".join(
            text if count == 1 else f"{count} x {text}" for text, count in found.items()
        )

    def fault(self, names: Iterable[str]) -> str:
        """`200 of 400 Gb/s`: a live port below the rate that it is made for."""
        ports = [port for name in names for port in self._ports.get(name, [])]
        return ", ".join(dict.fromkeys(filter(None, map(_slow, ports))))

    def _each(self, name: str) -> list[str]:
        if name in self._ports:
            return [text for port in self._ports[name] if (text := _port(port))]
        rate = self._rates.get(name)
        return [f"{rate:g} Gb/s"] if isinstance(rate, (int, float)) and rate > 0 else []


def _slow(port: NicPort) -> str:
    now, can = port.rate_gbits, port.rate_max_gbits
    if port.state not in _LIVE or isinstance(now, Missing) or isinstance(can, Missing):
        return ""
    return f"{now:g} of {can:g} Gb/s" if 0 < now < can else ""


def _port(port: NicPort) -> str:
    if isinstance(port.state, str) and port.state not in _LIVE:
        return "port down" if port.state == "DOWN" else f"port {port.state}"
    if not isinstance(port.rate_gbits, (int, float)):
        return ""
    layer = "" if isinstance(port.link_layer, Missing) else f" {port.link_layer}"
    return f"{port.rate_gbits:g} Gb/s{layer}"
