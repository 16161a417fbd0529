"""The table of bounds that checks may name: PCIe, NVLink, power."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.model import Known, Missing


class Bound(Struct, frozen=True):
    """What the hardware allows; `formula` holds the numbers it was made of."""

    value: float
    formula: str


def pcie_width(_host: Host, gpu: Gpu) -> Known[Bound]:
    """Lanes that card and slot can both do: nvidia-smi's maximum link width, which is the "maximum
    link width possible with this GPU and system configuration" (nvidia-smi(1), GPU Link Info)."""
    if isinstance(gpu.pcie.width_max, Missing):
        return gpu.pcie.width_max
    return Bound(gpu.pcie.width_max, "what card and slot can both do")


def pcie_gen(_host: Host, gpu: Gpu) -> Known[Bound]:
    """PCIe generation that card and slot can both do (nvidia-smi(1), GPU Link Info); newer drivers
    give both sides."""
    pcie = gpu.pcie
    if isinstance(pcie.gen_max, Missing):
        return pcie.gen_max
    sides = f"card {pcie.gen_device_max}, slot {pcie.gen_host_max}"
    known = isinstance(pcie.gen_device_max, int) and isinstance(pcie.gen_host_max, int)
    return Bound(pcie.gen_max, sides if known else "what card and slot can both do")


def nvlinks(host: Host, gpu: Gpu) -> Known[Bound]:
    """Links that are up by design (checks/data/gpus.yaml). A bridge is no must, and one GPU that is
    alone in a virtual machine was given no peer to link to."""
    design = gpu.design
    if isinstance(design, Missing):
        return design
    if isinstance(design.nvlinks, Missing):
        return Missing("not-applicable", f"{gpu.product} has no NVLink by design")
    up = gpu.nvlink if isinstance(gpu.nvlink, Missing) else gpu.nvlink.up
    if up == 0 and design.bridged:
        return Missing("not-applicable", "no bridge to another card, which is no fault")
    alone = not isinstance(host.gpus, Missing) and len(host.gpus) == 1
    if up == 0 and alone and host.virtualization == "vm":
        return Missing("not-applicable", "the only GPU of a virtual machine has no peer to link to")
    return Bound(design.nvlinks, f"{gpu.product} by design")


def nvlink_gbps(_host: Host, gpu: Gpu) -> Known[Bound]:
    """GB/s of one link and direction by design (checks/data/gpus.yaml)."""
    design = gpu.design
    rate = design if isinstance(design, Missing) else design.nvlink_gbps
    return rate if isinstance(rate, Missing) else Bound(rate, f"{gpu.product} by design")


def power_limit_w(_host: Host, gpu: Gpu) -> Known[Bound]:
    """The card's own default limit; where the input does not tell it, that of its model
    (checks/data/gpus.yaml)."""
    default = gpu.power.default_limit_w
    if not isinstance(default, Missing):
        return Bound(default, "the card's default")
    if default.kind != "not-in-input" or isinstance(gpu.design, Missing):
        return default
    power = gpu.design.power_w
    return default if isinstance(power, Missing) else Bound(power, f"{gpu.product} by design")


BOUNDS: dict[str, Callable[[Host, Any], Known[Bound]]] = {
    "pcie_width": pcie_width,
    "pcie_gen": pcie_gen,
    "nvlinks": nvlinks,
    "nvlink_gbps": nvlink_gbps,
    "power_limit_w": power_limit_w,
}
