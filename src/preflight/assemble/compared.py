"""Facts that hosts are compared by and that no probe alone can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from msgspec.structs import replace

from preflight.assemble.network.ports import with_purpose
from preflight.assemble.network.texts import netdevs_of, with_interfaces
from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.facts.host import Identity
from preflight.facts.nics import Netdevs, Nics
from preflight.facts.pci_tree import PciTree
from preflight.facts.setup import Package, Told
from preflight.facts.stack_pieces import PythonEnv
from preflight.model import NOT_IN_INPUT, Known, Missing, Raw

#: What a host is expected to tell where the others tell it -> the part that it is told by. GPUs
#: are apart: a driver that answers with a fault has told it.
_TOLD = {
    "identity": "identity",
    "system": "os",
    "cpu": "cpu",
    "memory": "memory",
    "pci": "pci",
    "kernel_log": "kernel_log",
    "pci_tree": "pci_tree",
    "driver_module": "driver_module",
    "nvlink": "nvlink_status",
    "nvlink_errors": "nvlink_errors",
    "matrix": "matrix",
    "services": "services",
    "bmc": "chassis",
    "bmc_log": "sel",
    "edac": "edac",
    "dimms": "dimms",
    "watch": "watch",
    "board": "board",
    "sysctls": "sysctls",
    "nics": "nics",
    "topology": "pci_sysfs",
    "software": "software",
    "packages": "packages",
    "limits": "limits",
    "cgroup": "cgroup",
    "shared_memory": "shared_memory",
    "memory_state": "memory_state",
    "cpu_state": "cpu_state",
    "processes": "processes",
    "disks": "disks",
    "mounts": "mounts",
    "block_devices": "block_devices",
    "clock": "clock",
}
_NO_NIC = Missing("not-applicable", "no RDMA device in /sys/class/infiniband")


def with_clock(identity: Known[Identity], raw: Raw | None) -> Known[Identity]:
    """The identity with the distance of the host's clock from that of the machine that asked: both
    dates are of the moment at which the host began to answer."""
    if isinstance(identity, Missing) or raw is None or not raw.started_at:
        return identity
    if isinstance(identity.date_s, Missing):
        return replace(identity, clock_offset_s=identity.date_s)
    try:
        asked = datetime.strptime(raw.started_at, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return identity
    asked_s = int(asked.replace(tzinfo=timezone.utc).timestamp())
    return replace(identity, clock_offset_s=identity.date_s - asked_s)


def nic_facts(told: Known[Nics], netdevs: Known[Netdevs], tree: Known[PciTree]) -> dict[str, Any]:
    """RDMA devices, ports and interfaces; a host without any has none to be judged, and the number
    of devices is 0."""
    interfaces = netdevs_of(netdevs, told)
    if isinstance(told, Missing):
        return {"nics": told, "nic_ports": told, "nic_count": told, "netdevs": interfaces}
    nics = with_purpose(with_interfaces(told, interfaces), tree)
    return {
        "netdevs": interfaces,
        "nics": nics.devices or _NO_NIC,
        "nic_ports": nics.ports or _NO_NIC,
        "nic_count": sum(not nic.virtual for nic in nics.devices),
    }


def named(python: Known[PythonEnv], raw: Raw | None) -> Known[PythonEnv]:
    """The answer of an interpreter, with whether the user has named it."""
    by_user = raw is not None and bool(raw.argv) and raw.argv[0] != "python3"
    return python if isinstance(python, Missing) or not by_user else replace(python, named=True)


def packages_of(python: Known[PythonEnv]) -> Known[tuple[Package, ...]]:
    """The packages that the interpreter would import."""
    return python if isinstance(python, Missing) else python.packages


def gpu_product(gpus: Known[tuple[Gpu, ...]]) -> Known[str]:
    """The model of the host's GPUs, of several the most frequent, by the alphabet where they are as
    many; "none" where it has no GPU."""
    if isinstance(gpus, Missing):
        return "none" if gpus.kind == "not-applicable" else gpus
    named = [gpu.product for gpu in gpus if isinstance(gpu.product, str)]
    if not named:
        return next((gpu.product for gpu in gpus if isinstance(gpu.product, Missing)), NOT_IN_INPUT)
    return min(Counter(named).items(), key=lambda item: (-item[1], item[0]))[0]


def told(
    parts: Mapping[str, Any], smi: Known[NvidiaSmi], gpus: Known[tuple[Gpu, ...]]
) -> tuple[Told, ...]:
    """Of each part of the vocabulary whether the host told it, or why that is not known."""
    return tuple(Told(name, answer) for name, answer in _answers(parts, smi, gpus))


def _answers(
    parts: Mapping[str, Any], smi: Known[NvidiaSmi], gpus: Known[tuple[Gpu, ...]]
) -> Iterator[tuple[str, Known[bool]]]:
    for name, part in _TOLD.items():
        found = parts[part]
        yield name, found if isinstance(found, Missing) else True
    if isinstance(smi, NvidiaSmi) and smi.driver.state == "answers" and smi.cut:
        yield "gpus", Missing("unreadable", "nvidia-smi: the answer is cut short in a GPU")
    elif isinstance(smi, NvidiaSmi) and smi.driver.state != "answers":
        yield "gpus", True
    else:
        yield "gpus", gpus if isinstance(gpus, Missing) else True
