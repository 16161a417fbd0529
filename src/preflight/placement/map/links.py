"""How a link on PCI is written on the map, and what is wrong with it."""

from __future__ import annotations

import re
from typing import TypeVar

from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.pci_tree import PciDevice, PciPath
from preflight.model import Known, Missing

N = TypeVar("N", int, float)

#: GT/s a lane of each generation (PCI Express Base Specification 6.0, 1.2).
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
#: At work: in the others a low generation saves power.
_BUSY = ("P0", "P1", "P2")
_AT_REST = " at rest"
_BRACKETS = re.compile(r".*\[(?P<name>[^\[\]]+)\]")
#: How makers of PCI devices write that they are companies.
_COMPANY = re.compile(
    r"^(?:NVIDIA|Mellanox Technologies|Intel|Broadcom(?: / LSI| Inc\. and subsidiaries)?|"
    r"Red Hat,? Inc\.?|Samsung Electronics Co\.? Ltd|Amazon\.com,? Inc\.?|Microsemi / PMC|"
    r"PMC-Sierra(?: Inc\.?)?|Advanced Micro Devices, Inc\. \[AMD(?:/ATI)?\])(?: Corporation)?,? "
)


def address_of(text: str) -> str:
    """An address as all tools write it: nvidia-smi has eight digits of the domain, the kernel
    four, lspci none."""
    domain, _, rest = text.lower().partition(":")
    if ":" not in rest:
        domain, rest = "0", text.lower()
    return f"{domain.lstrip('0'):0>4}:{rest}"


def short(product: Known[str]) -> str:
    """`ConnectX-7` of `Mellanox Technologies MT2910 Family [ConnectX-7]`."""
    if isinstance(product, Missing):
        return ""
    rest = _COMPANY.sub("", product.strip())
    found = _BRACKETS.match(rest)
    return found["name"] if found else rest


def link_text(speed_gtps: Known[float], width: Known[int]) -> str:
    """`gen5 x16`, or the part of it that is known."""
    generation = None if isinstance(speed_gtps, Missing) else _GENERATIONS.get(speed_gtps)
    told = [f"gen{generation}"] if generation else []
    told += [] if isinstance(width, Missing) or not width else [f"x{width}"]
    return " ".join(told)


def below(width: Known[int], width_can: Known[int], now: Known[float], can: Known[float]) -> str:
    """`x8 of x16`, `gen4 of gen5`: what a link lacks of what both of its ends can do."""
    told = []
    if isinstance(width, int) and isinstance(width_can, int) and 0 < width < width_can:
        told.append(f"x{width} of x{width_can}")
    if isinstance(now, float) and isinstance(can, float) and now < can:
        told.append(f"{link_text(now, 0)} of {link_text(can, 0)}")
    return ", ".join(told)


class Links:
    """The links of a host's devices, by whoever tells them: lspci or sysfs, else nvidia-smi. In a
    virtual machine nothing is wrong with a link: it is the hypervisor's choice."""

    def __init__(self, host: Host) -> None:
        paths = None if isinstance(host.pci_paths, Missing) else host.pci_paths
        gpus = () if isinstance(host.gpus, Missing) else host.gpus
        lists = (paths.devices, paths.may_sleep) if paths else ()
        told = [each for found in lists if not isinstance(found, Missing) for each in found]
        self._paths: dict[str, PciPath] = {address_of(each.bus_id): each for each in told}
        self._gpus: dict[str, Gpu] = {each.name: each for each in gpus}
        self._by_bus: dict[str, Gpu] = {address_of(each.bus_id): each for each in gpus}
        self.virtual = host.virtualization == "vm" or any(each.virtual for each in told)

    def product(self, bus_id: str, name: str = "") -> str:
        """`H100 80GB HBM3`, by nvidia-smi; empty where it is not known."""
        gpu = self._gpus.get(name) or self._by_bus.get(address_of(bus_id))
        return "" if gpu is None or isinstance(gpu.product, Missing) else short(gpu.product)

    def of(self, device: PciDevice) -> tuple[str, str]:
        """The link above a device, and its fault."""
        if not device.answers:
            return "", "does not answer"
        path = self._paths.get(address_of(device.name))
        link = link_text(device.speed_gtps, device.width)
        gpu = self._by_bus.get(address_of(device.name))
        if path is None or not link:
            return self.of_gpu(gpu.name) if gpu and not link else (link, "")
        can, judged = path.link, device.speed_gtps
        if path.kind == "gpu":
            judged = can.judged_gtps
            if isinstance(judged, Missing) and judged.kind == "not-applicable":
                link += _AT_REST
        fault = below(device.width, can.width_can, judged, can.speed_can_gtps)
        return link, "" if self.virtual else fault

    def of_gpu(self, name: str) -> tuple[str, str]:
        """The same by nvidia-smi's word alone."""
        gpu = self._gpus.get(name)
        if gpu is None or isinstance(gpu.pcie.width, Missing):
            return "", ""
        pcie = gpu.pcie
        now, most = _speed(pcie.gen), _speed(pcie.gen_max)
        rests = gpu.performance_state not in _BUSY
        slow = isinstance(now, float) and isinstance(most, float) and now < most
        fault = below(pcie.width, pcie.width_max, most if rests else now, most)
        link = link_text(now, pcie.width)
        return f"{link}{_AT_REST if rests and slow else ''}", "" if self.virtual else fault

    def of_switch(self, port: PciDevice, above: PciDevice | None) -> tuple[str, str]:
        """The link between a switch and what it hangs on."""
        link = link_text(port.speed_gtps, port.width)
        if above is None or self.virtual:
            return link, ""
        width = _least(port.width_max, above.width_max)
        speed = _least(port.speed_max_gtps, above.speed_max_gtps)
        return link, below(port.width, width, port.speed_gtps, speed)


def _speed(generation: Known[int]) -> Known[float]:
    if isinstance(generation, Missing):
        return generation
    return next((speed for speed, each in _GENERATIONS.items() if each == generation), 0.0)


def _least(one: Known[N], other: Known[N]) -> Known[N]:
    if isinstance(one, Missing) or isinstance(other, Missing):
        return one if isinstance(one, Missing) else other
    return min(one, other)
