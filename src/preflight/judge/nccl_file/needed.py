"""Whether NCCL needs a topology file here: where nothing tells which adapter is near which GPU, it
takes any."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.model import Missing

#: Paths that do not cross the processor.
_NEAR = ("NV", "PIX", "PXB")
#: So many GPUs on a baseboard make a machine whose adapters belong to them by pairs.
_FEW = 4
#: EFA is called rdmap0s6, or efa_0 (rdma-core's naming, Amazon's driver).
_EFA = ("efa", "rdmap")


def not_needed(host: Host) -> Missing | str:
    """Why no file is needed, or why that cannot be told; empty where one is."""
    if isinstance(host.virtualization, Missing):
        return host.virtualization
    if host.virtualization != "vm":
        return Missing("not-applicable", "no virtual machine: NCCL reads the tree itself")
    if isinstance(host.gpus, Missing):
        return host.gpus
    if sum(_is_sxm(gpu.design) for gpu in host.gpus) < _FEW:
        return Missing("not-applicable", f"fewer than {_FEW} GPUs of a baseboard")
    if isinstance(host.nics, Missing):
        return host.nics
    if all(nic.name.startswith(_EFA) for nic in host.nics):
        return Missing("not-applicable", "EFA alone: its plugin for NCCL names a file where needed")
    return _pair(host)


def _is_sxm(design: object) -> bool:
    return getattr(design, "form", "") == "sxm"


def _pair(host: Host) -> Missing | str:
    """A GPU with an adapter near by, in words."""
    places = host.topology.gpus
    known = () if isinstance(places, Missing) else places
    for place in known:
        if place.nic_path in _NEAR:
            return f"{place.name} has an adapter at {place.nic_path}"
    if any(isinstance(place.nic_path, str) for place in known):
        return ""
    return _below_one_bridge(host)


def _below_one_bridge(host: Host) -> Missing | str:
    """The same by the PCI tree alone."""
    if isinstance(host.pci_paths, Missing):
        return host.pci_paths
    gpus, nics = host.pci_paths.gpus, host.pci_paths.nics
    if isinstance(gpus, Missing):
        return gpus
    if isinstance(nics, Missing):
        return nics
    for gpu in gpus:
        for nic in nics:
            if set(gpu.bridges) & set(nic.bridges):
                return f"{gpu.name} and {nic.name} share a bridge"
    return ""
