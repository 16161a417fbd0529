"""Which GPU is which to CUDA: its order, and ours where groups need another one."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.facts.host import Host
from preflight.facts.topology import GpuPlace
from preflight.model import Export, Group, Missing
from preflight.placement.advice.said import Said


def ordered(gpus: Sequence[GpuPlace], groups: Sequence[Group]) -> tuple[GpuPlace, ...]:
    """The GPUs in the order of their ranks: frameworks cut consecutive ranks into groups."""
    by_name = {gpu.name: gpu for gpu in gpus}
    names = [name for group in groups for name in group.members]
    return tuple(by_name[name] for name in names) if names else tuple(gpus)


def visible(gpus: Sequence[GpuPlace], order: Sequence[GpuPlace]) -> str:
    """CUDA_VISIBLE_DEVICES for this order; "" where it is that of nvidia-smi."""
    if list(order) == list(gpus):
        return ""
    return ",".join(str(list(gpus).index(gpu)) for gpu in order)


def cuda_order(host: Host, gpus: Sequence[GpuPlace], order: Sequence[GpuPlace]) -> Said:
    """Variables that make CUDA's numbers those of the seats."""
    exports = []
    chosen = visible(gpus, order)
    if len(_products(host)) > 1 or chosen:
        why = "CUDA numbers the fastest model first; the seats are in nvidia-smi's order"
        exports.append(Export("CUDA_DEVICE_ORDER", "PCI_BUS_ID", why))
    if chosen:
        why = "the GPUs of one group get consecutive ranks, which frameworks group"
        exports.append(Export("CUDA_VISIBLE_DEVICES", chosen, why))
    return Said(tuple(exports))


def _products(host: Host) -> set[str]:
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    return {gpu.product for gpu in gpus if isinstance(gpu.product, str)}
