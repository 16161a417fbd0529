"""The table of bounds that checks may name: PCIe, NVLink, power."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from preflight.expect.bound import Bound
from preflight.expect.collectives import (
    collective_busbw,
    collective_nvls,
    collective_one_adapter,
    collective_rough,
)
from preflight.expect.heat import hot_c, too_hot_c
from preflight.expect.io import (
    io_demand_mbps,
    io_longest_us,
    io_read_mbps,
    io_reads_per_s,
    io_save_mbps,
    io_write_mbps,
)
from preflight.expect.latency import collective_latency
from preflight.expect.objects import object_demand_mbps
from preflight.expect.rdma import rdma_gbits
from preflight.expect.steady import stalled_time, steady_drop
from preflight.expect.stress import (
    stress_attention,
    stress_best,
    stress_copy,
    stress_memory,
    stress_peak,
    stress_product,
)
from preflight.expect.system import (
    cores_for_gpus,
    disk_floor_bytes,
    memlock_bytes,
    share_floor_bytes,
    shared_memory_bytes,
    shared_memory_floor_bytes,
)
from preflight.expect.topology import matrix_gpus, topology_nvlinks
from preflight.expect.training import (
    training_behind,
    training_data,
    training_data_most,
    training_gradient,
    training_jitter,
    training_learned,
    training_loader,
    training_rest,
    training_resume_loss,
    training_stall,
)
from preflight.expect.wire import wire_tcp_gbits
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.pci_tree import LinkState, PciPath
from preflight.facts.watch import WatchedGpu
from preflight.model import NOT_IN_INPUT, Known, Missing


def gpu_count(host: Host, _element: object) -> Known[Bound]:
    """How many GPUs should be listed: those on PCI, or those granted; and which are missing."""
    inventory = host.gpu_inventory
    if isinstance(inventory.expected, Missing):
        return inventory.expected
    away = inventory.unlisted if inventory.basis == "PCI" else ()
    named = f"on PCI, and nvidia-smi does not list {', '.join(away)}" if away else ""
    return Bound(inventory.expected, named)


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


def pci_link_width(_host: Host, path: PciPath) -> Known[Bound]:
    """Lanes that the device and the port above it can both do: the smaller of their LnkCap."""
    width = path.link.width_can
    return width if isinstance(width, Missing) else Bound(width, path.link.ends)


def pci_link_speed(_host: Host, path: PciPath) -> Known[Bound]:
    """GT/s that the device and the port above it can both do: the smaller of their LnkCap."""
    speed = path.link.speed_can_gtps
    return speed if isinstance(speed, Missing) else Bound(speed, path.link.ends)


def pci_link_rate(_host: Host, path: PciPath) -> Known[Bound]:
    """GB/s that the device's own link can do, by the LnkCap of both ends (expect/pcie.py)."""
    return _rate(path.link, "own link of")


def pci_path_built(_host: Host, path: PciPath) -> Known[Bound]:
    """GB/s that the slowest link above the device is built for, by the LnkCap of both its ends; not
    more than the device's own link can use."""
    if isinstance(path.above, Missing):
        return path.above
    above, own = _rate(path.above, "link above"), _rate(path.link, "own link of")
    if isinstance(above, Missing) or isinstance(own, Missing):
        return above if isinstance(above, Missing) else own
    return min(above, own, key=lambda bound: bound.value)


def pci_path_own(_host: Host, path: PciPath) -> Known[Bound]:
    """GB/s that the device's own link can do, for the links above it to carry; names the slowest of
    these."""
    own = _rate(path.link, "own link of")
    if isinstance(own, Missing) or isinstance(path.above, Missing):
        return own
    above = path.above
    return Bound(own.value, f"{own.formula}; slowest above it: {above.lower}, {above.ends}")


def nic_read_request(host: Host, path: PciPath) -> Known[Bound]:
    """Bytes: the largest read request of the host's adapters of the same model and link. Those of
    different models are set by different drivers."""
    nics = NOT_IN_INPUT if isinstance(host.pci_paths, Missing) else host.pci_paths.nics
    if isinstance(nics, Missing):
        return nics
    kind = (path.product, path.link.rate_can_gbps)
    sizes = [
        (one.read_request_bytes, one.name)
        for one in nics
        if (one.product, one.link.rate_can_gbps) == kind
        and not isinstance(one.read_request_bytes, Missing)
    ]
    if not sizes:
        return NOT_IN_INPUT
    most, name = max(sizes)
    return Bound(most, f"what {name} of the same model has")


def _rate(link: LinkState, what: str) -> Known[Bound]:
    rate, speed, width = link.rate_can_gbps, link.speed_can_gtps, link.width_can
    if isinstance(rate, Missing) or isinstance(speed, Missing):
        return rate if isinstance(rate, Missing) else NOT_IN_INPUT
    return Bound(rate, f"{speed:g} GT/s x {width} lanes, {what} {link.lower}: {link.ends}")


#: Seconds that nvidia-smi may take: 5 (AMD-AGI/Primus, node_smoke: a slower one is an early sign of
#: a driver that wedges) and half a second for each GPU: a full report asks each for all it has.
_ANSWER_S, _ANSWER_PER_GPU_S = 5.0, 0.5


def nvidia_smi_answer(host: Host, _element: object) -> Known[Bound]:
    """5 s, and half a second for each GPU, for a full report of all. Without persistence mode
    each call starts the driver anew, which takes seconds for every GPU and is no sign."""
    if isinstance(host.gpus, Missing):
        return host.gpus
    if any(gpu.persistence == "Disabled" and not _held(gpu) for gpu in host.gpus):
        return Missing("not-applicable", "without persistence mode every call starts the driver")
    count = len(host.gpus)
    seconds = _ANSWER_S + _ANSWER_PER_GPU_S * count
    return Bound(seconds, f"{_ANSWER_S:g} s + {count} x {_ANSWER_PER_GPU_S:g} s for each GPU")


def _held(gpu: Gpu) -> bool:
    """Whether a process keeps the driver from unloading the GPU."""
    return not isinstance(gpu.processes, Missing) and bool(gpu.processes)


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
    if up != 0 and design.form == "sxm" and not design.nvswitch:
        text = f"links straight to other GPUs: how many of the {design.nvlinks} the board decides"
        return Missing("not-applicable", text)
    if up == 0 and (of_vm := _only_gpu_of_a_vm(host, gpu)):
        return of_vm
    return Bound(design.nvlinks, f"{gpu.product} by design")


def _only_gpu_of_a_vm(host: Host, gpu: Gpu) -> Missing | None:
    """One GPU of a board, given to a virtual machine by itself, has no peer to link to."""
    alone = not isinstance(host.gpus, Missing) and len(host.gpus) == 1
    if alone and host.virtualization == "vm":
        return Missing("not-applicable", "the only GPU of a virtual machine has no peer to link to")
    if alone and gpu.index == 0 and isinstance(host.virtualization, Missing):
        text = "all links are down, or it is the only GPU of a virtual machine: add `nvidia-smi -q`"
        return Missing("unreadable", text)
    return None


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


#: Replays per lane and minute that DCGM's health watch lets pass, by PCIe generation
#: (NVIDIA/DCGM, DcgmGPUHardwareLimits.h).
_MOST_LANES = 16
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
        return _of_any_link(gpu, gen if isinstance(gen, Missing) else NOT_IN_INPUT)
    if gen not in _REPLAYS:
        return Missing("not-applicable", f"PCIe generation {gen} has no row in bounds.py; add one")
    return Bound(_REPLAYS[gen] * width, f"{_REPLAYS[gen]:g} a lane and minute x {width} lanes")


def _of_any_link(gpu: WatchedGpu, unknown: Missing) -> Known[Bound]:
    """Where the link is not known: what no link explains is too much, and none at all is well for
    every link; in between it cannot be told."""
    grown, most = gpu.growth.pcie_replays_per_min, max(_REPLAYS.values()) * _MOST_LANES
    if isinstance(grown, Missing) or 0 < grown <= most:
        return unknown
    return Bound(most, f"{max(_REPLAYS.values()):g} a lane and minute x 16 lanes, the fastest link")


BOUNDS: dict[str, Callable[[Host, Any], Known[Bound]]] = {
    "gpu_count": gpu_count,
    "object_demand_mbps": object_demand_mbps,
    "pcie_width": pcie_width,
    "pcie_gen": pcie_gen,
    "pci_link_width": pci_link_width,
    "pci_link_speed": pci_link_speed,
    "pci_link_rate": pci_link_rate,
    "pci_path_built": pci_path_built,
    "pci_path_own": pci_path_own,
    "nic_read_request": nic_read_request,
    "nvidia_smi_answer": nvidia_smi_answer,
    "nvlinks": nvlinks,
    "nvlink_gbps": nvlink_gbps,
    "matrix_gpus": matrix_gpus,
    "topology_nvlinks": topology_nvlinks,
    "power_limit_w": power_limit_w,
    "pcie_replays_per_min": pcie_replays_per_min,
    "hot_c": hot_c,
    "too_hot_c": too_hot_c,
    "collective_busbw": collective_busbw,
    "collective_latency": collective_latency,
    "collective_nvls": collective_nvls,
    "collective_one_adapter": collective_one_adapter,
    "collective_rough": collective_rough,
    "rdma_gbits": rdma_gbits,
    "io_read_mbps": io_read_mbps,
    "io_demand_mbps": io_demand_mbps,
    "io_longest_us": io_longest_us,
    "io_write_mbps": io_write_mbps,
    "io_reads_per_s": io_reads_per_s,
    "io_save_mbps": io_save_mbps,
    "cores_for_gpus": cores_for_gpus,
    "memlock": memlock_bytes,
    "shared_memory": shared_memory_bytes,
    "shared_memory_floor": shared_memory_floor_bytes,
    "disk_floor": disk_floor_bytes,
    "share_floor": share_floor_bytes,
    "stalled_time": stalled_time,
    "steady_drop": steady_drop,
    "stress_attention": stress_attention,
    "stress_best": stress_best,
    "stress_copy": stress_copy,
    "stress_memory": stress_memory,
    "stress_peak": stress_peak,
    "stress_product": stress_product,
    "training_gradient": training_gradient,
    "training_resume_loss": training_resume_loss,
    "training_learned": training_learned,
    "training_behind": training_behind,
    "training_data": training_data,
    "training_data_most": training_data_most,
    "training_jitter": training_jitter,
    "training_loader": training_loader,
    "training_rest": training_rest,
    "training_stall": training_stall,
    "wire_tcp_gbits": wire_tcp_gbits,
}
