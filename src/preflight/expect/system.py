"""What the host must leave to a training process, by the GPUs and the memory that are here."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.facts.host import Host
from preflight.facts.storage import Mount
from preflight.facts.system import AskedProcess, Disk
from preflight.model import Known, Missing

_GIB = 1 << 30
#: Of each GPU one process drives it and one more at least reads its data.
_CORES_PER_GPU = 2
#: What NVIDIA advises to give a container of its framework images (--shm-size=1g), which run one
#: process for each GPU.
_SHM_PER_GPU = _GIB
#: The kernel gives tmpfs half of the memory; a little of that goes to the kernel itself.
_SHM_SHARE = 0.45
_MEMLOCK = 16 * _GIB
#: What a container gets unasked: 64 MiB (docker run --shm-size), also in Kubernetes.
_SHM_UNASKED = 64 << 20
#: leptonai/gpud, component disk: less is unhealthy.
_DISK_FREE = 500_000_000
_DISK_SHARE = 0.05


def gpus_here(host: Host) -> Known[int]:
    """GPUs that a process of this shell could use: those listed; in a container, where PCI shows
    those of the whole machine, the device nodes."""
    inventory = host.gpu_inventory
    if isinstance(inventory.listed, int):
        return inventory.listed
    contained = isinstance(host.container, str) and host.container != "none"
    if contained and not isinstance(host.identity, Missing):
        return host.identity.nvidia_device_nodes
    return inventory.expected if isinstance(inventory.expected, int) else inventory.on_pci


def cores_for_gpus(host: Host, _element: object) -> Known[Bound]:
    """Two processors for each GPU."""
    gpus = gpus_here(host)
    if isinstance(gpus, Missing):
        return gpus
    if not gpus:
        return Missing("not-applicable", "no NVIDIA GPU is visible here")
    return Bound(_CORES_PER_GPU * gpus, f"{_CORES_PER_GPU} for each of {gpus} GPUs")


def memlock_bytes(host: Host, element: object) -> Known[Bound]:
    """16 GiB for buffers that RDMA devices register (aws-samples/awsome-distributed-ai, its check
    of memlock). A host without such a device needs none; text that does not tell
    of devices is judged as if there were some."""
    count = host.nic_count
    if count == 0:
        return Missing("not-applicable", "no RDMA device here: nothing registers memory with one")
    if isinstance(count, Missing) and count.kind != "not-in-input":
        return count
    shell = () if element or isinstance(host.limits, Missing) else host.limits
    if any(each.of == "shell" and each.lifted is True for each in shell):
        text = (
            "CAP_IPC_LOCK (root) lifts it for this shell: look as the user who trains, "
            "preflight sysctl --fix-script >fix.sh, then sudo sh fix.sh"
        )
        return Missing("not-applicable", text)
    if isinstance(element, AskedProcess) and element.memlock_lifted is True:
        return Missing("not-applicable", "CAP_IPC_LOCK (root) lifts it for this process")
    return Bound(_MEMLOCK, "16 GiB, for buffers that RDMA devices register")


def shared_memory_bytes(host: Host, _element: object) -> Known[Bound]:
    """1 GiB for each GPU, and not more than the kernel gives by itself: about half of the
    memory."""
    gpus = gpus_here(host)
    count = 1 if isinstance(gpus, Missing) else max(gpus, 1)
    wanted, formula = count * _SHM_PER_GPU, f"1 GiB for each of {count} GPUs"
    formula = formula if count > 1 else "1 GiB, as NVIDIA gives a container"
    memory = host.memory
    if isinstance(memory, Missing) or isinstance(memory.total_bytes, Missing):
        return Bound(wanted, formula)
    share = int(_SHM_SHARE * memory.total_bytes)
    return (
        Bound(share, "what the kernel gives of this memory")
        if share < wanted
        else Bound(wanted, formula)
    )


def shared_memory_floor_bytes(host: Host, _element: object) -> Known[Bound]:
    """More than the 64 MiB that a container gets unasked, where there is a GPU; without
    one nobody trains here."""
    gpus = gpus_here(host)
    if isinstance(gpus, Missing):
        return gpus
    if not gpus:
        return Bound(0, "no NVIDIA GPU is visible here")
    return Bound(_SHM_UNASKED + 1, "more than the 64 MiB that a container gets unasked")


def disk_floor_bytes(_host: Host, disk: Disk) -> Known[Bound]:
    """500 MB; of a small file system 5 % of its size."""
    return _floor(disk.size_bytes)


def share_floor_bytes(_host: Host, mount: Mount) -> Known[Bound]:
    """The same of what the network serves."""
    return _floor(mount.size_bytes)


def _floor(size_bytes: Known[int]) -> Known[Bound]:
    if isinstance(size_bytes, Missing):
        return size_bytes
    share = int(_DISK_SHARE * size_bytes)
    return Bound(share, "5 % of its size") if share < _DISK_FREE else Bound(_DISK_FREE, "500 MB")
