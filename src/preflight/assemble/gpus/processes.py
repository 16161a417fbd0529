"""Memory that a GPU holds beyond what the processes shown on it account for."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.facts.gpu import Gpu
from preflight.model import Known, Missing

_IN_CONTAINER = Missing("not-applicable", "in a container the processes of others cannot be seen")
_AT_WORK = Missing("not-applicable", "it is at work for a process that is not shown here")
_VIRTUAL = Missing("not-applicable", "virtual machines hold memory of this GPU, not processes")


def with_unexplained(gpus: Known[tuple[Gpu, ...]], container: Known[str]) -> Known[tuple[Gpu, ...]]:
    """The GPUs, each with its `memory.unexplained_mib`."""
    if isinstance(gpus, Missing):
        return gpus
    return tuple(
        replace(gpu, memory=replace(gpu.memory, unexplained_mib=_unexplained(gpu, container)))
        for gpu in gpus
    )


def _unexplained(gpu: Gpu, container: Known[str]) -> Known[int]:
    if isinstance(container, str) and container != "none":
        return _IN_CONTAINER
    if gpu.virtualization in ("VGPU", "Host VGPU", "Host VSGA"):
        return _VIRTUAL
    if isinstance(gpu.processes, Missing):
        return gpu.processes
    if not gpu.processes and isinstance(busy := gpu.utilization_percent, int) and busy > 0:
        return _AT_WORK
    used = gpu.memory.used_bytes
    if isinstance(used, Missing):
        return used
    shown = 0
    for process in gpu.processes:
        if isinstance(process.memory_bytes, Missing):
            text = f"nvidia-smi does not tell what process {process.pid} holds"
            return Missing("not-applicable", text)
        shown += process.memory_bytes
    return max(used - shown, 0) >> 20
