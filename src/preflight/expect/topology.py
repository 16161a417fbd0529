"""What the models of a host's GPUs promise of its topology."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.topology import GpuPlace
from preflight.model import Known, Missing


def matrix_gpus(host: Host, _element: object) -> Known[Bound]:
    """How many GPUs the matrix of nvidia-smi should hold: those that this host or its allocation
    should show, else those that nvidia-smi lists."""
    inventory = host.gpu_inventory
    if isinstance(inventory.expected, int):
        return Bound(inventory.expected, f"by {inventory.basis}" if inventory.basis else "")
    listed = inventory.listed
    return listed if isinstance(listed, Missing) else Bound(listed, "listed by nvidia-smi")


def topology_nvlinks(host: Host, place: GpuPlace) -> Known[Bound]:
    """Links of a GPU to its peers by design (checks/data/gpus.yaml), with the rate of each. A
    bridge is no must; where links lead straight to other GPUs the board decides how many."""
    gpu = _gpu(host, place)
    if gpu is None:
        return Missing("not-in-input", "the model of this GPU: add `nvidia-smi -q`")
    design = gpu.design
    if isinstance(design, Missing):
        return design
    if isinstance(design.nvlinks, Missing):
        return Missing("not-applicable", f"{gpu.product} has no NVLink by design")
    if place.nvlinks == 0 and design.bridged:
        return Missing("not-applicable", "no bridge to another card, which is no fault")
    if design.form == "sxm" and not design.nvswitch:
        text = f"links straight to other GPUs: how many of the {design.nvlinks} the board decides"
        return Missing("not-applicable", text)
    rate = design.nvlink_gbps
    each = "" if isinstance(rate, Missing) else f", {rate:g} GB/s each way in every link"
    return Bound(design.nvlinks, f"{gpu.product} by design{each}")


def _gpu(host: Host, place: GpuPlace) -> Gpu | None:
    known = () if isinstance(host.gpus, Missing) else host.gpus
    return next((gpu for gpu in known if gpu.name == place.name), None)
