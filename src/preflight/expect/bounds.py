"""The table of bounds that checks may name, and the PCIe ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.watch import WatchedGpu
from preflight.model import NOT_IN_INPUT, Known, Missing


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


#: Replays per lane and minute that DCGM's health watch lets pass, by PCIe generation
#: (NVIDIA/DCGM, DcgmGPUHardwareLimits.h).
_REPLAYS = {1: 0.15, 2: 0.30, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}


def pcie_replays_per_min(host: Host, gpu: WatchedGpu) -> Known[Bound]:
    """DCGM's replays per lane and minute, times the lanes of the link. Where the watch does not
    tell the link, nvidia-smi's maximum does."""
    gen, width = gpu.pcie_gen, gpu.pcie_width
    if isinstance(gen, Missing) or isinstance(width, Missing):
        known = () if isinstance(host.gpus, Missing) else host.gpus
        link = next((one.pcie for one in known if one.index == gpu.index), None)
        gen, width = (link.gen_max, link.width_max) if link else (gen, width)
    if isinstance(gen, Missing) or isinstance(width, Missing):
        return gen if isinstance(gen, Missing) else NOT_IN_INPUT
    if gen not in _REPLAYS:
        return Missing("not-applicable", f"PCIe generation {gen} has no row in bounds.py; add one")
    return Bound(_REPLAYS[gen] * width, f"{_REPLAYS[gen]:g} a lane and minute x {width} lanes")


BOUNDS: dict[str, Callable[[Host, Any], Known[Bound]]] = {
    "pcie_width": pcie_width,
    "pcie_gen": pcie_gen,
    "pcie_replays_per_min": pcie_replays_per_min,
}
