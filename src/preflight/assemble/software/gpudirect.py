"""How network adapters come to the memory of GPUs, and the service that a rack's GPUs need."""

from __future__ import annotations

import re

from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.facts.services import DriverModule
from preflight.model import NOT_IN_INPUT, Known, Missing

#: NVIDIA's adapters, by the kernel's name or by their type (MT4129): the rules of rdma-core rename
#: them, ibp65s0. Others (EFA, irdma, bnxt_re) bring or need something of their own.
_OURS, _OUR_TYPES = "mlx5", "MT"
#: Ports that carry training: any InfiniBand of 100 Gbit/s, Ethernet from 200 (slower ones are for
#: storage and logins more often than not).
_FAST_GBITS = {"InfiniBand": 100.0, "Ethernet": 200.0}
#: The kernel that gave RDMA memory regions of dma-buf (Documentation/infiniband, Linux 5.12).
_DMA_BUF = (5, 12)
_NO_PORT = Missing("not-applicable", "no fast port of a ConnectX adapter is up")
_NO_GPU = Missing("not-applicable", "no NVIDIA GPU here")
_NO_RACK = Missing("not-applicable", "no GPU here shares memory over NVLink with other hosts")


def gpudirect(host: Host) -> Known[str]:
    """peermem | dma-buf | none: what lends GPU memory to the adapters. dma-buf needs the open
    kernel modules (NVIDIA, GPU Operator: GPUDirect RDMA; NCCL tests it when it starts)."""
    if not isinstance(host.gpus, Missing) and not host.gpus:
        return _NO_GPU
    for needed in (host.gpus, host.nic_ports, host.driver_module):
        if isinstance(needed, Missing):
            return needed
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    if not any(map(_fast, ports)):
        return _NO_PORT
    module = host.driver_module
    return _lent(module, host) if isinstance(module, DriverModule) else NOT_IN_INPUT


def _ours(port: NicPort) -> bool:
    known = isinstance(port.hca, str) and port.hca.startswith(_OUR_TYPES)
    return known or port.nic.startswith(_OURS)


def _fast(port: NicPort) -> bool:
    if isinstance(port.rate_gbits, Missing) or not _ours(port):
        return False
    least = _FAST_GBITS.get(str(port.link_layer))
    return port.state == "ACTIVE" and least is not None and port.rate_gbits >= least


def _lent(module: DriverModule, host: Host) -> Known[str]:
    if isinstance(module.peermem, Missing) or module.peermem:
        return module.peermem if isinstance(module.peermem, Missing) else "peermem"
    if module.flavour == "proprietary":
        return "none"
    kernel = host.identity if isinstance(host.identity, Missing) else host.identity.kernel
    if isinstance(module.flavour, Missing) or isinstance(kernel, Missing):
        return module.flavour if isinstance(module.flavour, Missing) else kernel
    found = re.match(r"(\d+)\.(\d+)", kernel)
    new = found is not None and (int(found[1]), int(found[2])) >= _DMA_BUF
    return "dma-buf" if new else "none"


def imex(host: Host) -> Known[str]:
    """The state of the service by which the GPUs of a rack import each other's memory: needed by
    Grace Blackwell in one NVLink domain with other hosts (GB200 NVL72), by nothing else."""
    if isinstance(host.gpus, Missing):
        return host.gpus
    if not any(map(_in_rack, host.gpus)):
        return _NO_RACK
    if isinstance(host.services, Missing):
        return host.services
    units = host.services.units
    if isinstance(units, Missing):
        return units
    unit = next((one for one in units if one.name == "nvidia-imex"), None)
    return "not installed" if unit is None or unit.load == "not-found" else unit.active


def _in_rack(gpu: Gpu) -> bool:
    grace = isinstance(gpu.product, str) and re.search(r"\bGB[23]00\b", gpu.product) is not None
    domain = gpu.fabric.cluster_uuid
    return grace and isinstance(domain, str) and bool(re.search("[1-9a-f]", domain))
