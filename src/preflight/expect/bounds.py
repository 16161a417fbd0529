"""The table of bounds that checks may name, and the PCIe ones."""

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


BOUNDS: dict[str, Callable[[Host, Any], Known[Bound]]] = {
    "pcie_width": pcie_width,
    "pcie_gen": pcie_gen,
}
