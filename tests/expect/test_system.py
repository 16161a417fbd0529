"""What a host must leave to training, by its GPUs and its memory."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.expect.bound import Bound
from preflight.expect.system import (
    cores_for_gpus,
    disk_floor_bytes,
    gpus_here,
    memlock_bytes,
    shared_memory_bytes,
    shared_memory_floor_bytes,
)
from preflight.facts.gpu import GpuInventory
from preflight.facts.host import Host, HostMemory, Identity
from preflight.facts.system import AskedProcess, Disk, JobService, Limit
from preflight.model import NOT_IN_INPUT, Known, Missing

GIB = 1 << 30


def _host(
    gpus: Known[int] = 8, memory: int = 2048 * GIB, *, container: str = "none", **more: Any
) -> Host:
    nodes = gpus if container != "none" else 0
    return Host(
        "h", identity=Identity("h", nvidia_device_nodes=nodes), container=container,
        gpu_inventory=GpuInventory(on_pci=8 if container != "none" else gpus),
        memory=HostMemory(total_bytes=memory), **more,
    )  # fmt: skip


def value(bound: Known[Bound]) -> float | None:
    return None if isinstance(bound, Missing) else bound.value


@pytest.mark.parametrize(
    ("host", "count"),
    [
        (_host(8), 8),
        (_host(2, container="docker"), 2),  # PCI shows all eight of them
        (Host("h", gpu_inventory=GpuInventory(on_pci=8, expected=4)), 4),
        (Host("h", gpu_inventory=GpuInventory(on_pci=8, expected=8, listed=7)), 7),
        (Host("h"), NOT_IN_INPUT),
    ],
)
def test_the_gpus_that_can_be_used_here(host: Host, count: Known[int]) -> None:
    assert gpus_here(host) == count


def test_processors_by_gpus() -> None:
    assert value(cores_for_gpus(_host(8), None)) == 16
    none = cores_for_gpus(_host(0), None)
    assert isinstance(none, Missing)
    assert none.kind == "not-applicable"
    assert cores_for_gpus(Host("h"), None) is NOT_IN_INPUT


@pytest.mark.parametrize(
    ("host", "wanted", "floor"),
    [
        (_host(8), 8 * GIB, (64 << 20) + 1),
        (_host(0), GIB, 0),
        (_host(8, 8 * GIB), int(0.45 * 8 * GIB), (64 << 20) + 1),  # what the kernel itself gives
        (_host(1, container="docker"), GIB, (64 << 20) + 1),
        (_host(0, container="docker"), GIB, 0),  # a container without a GPU trains nothing
        (Host("h"), GIB, None),
    ],
)
def test_shared_memory(host: Host, wanted: int, floor: int | None) -> None:
    assert value(shared_memory_bytes(host, None)) == wanted
    assert value(shared_memory_floor_bytes(host, None)) == floor


def _shell(*, lifted: Known[bool]) -> tuple[Limit, ...]:
    return (Limit("memlock (shell)", "memlock", "shell", 65536, 65536, lifted=lifted),)


def test_locked_memory_is_for_rdma() -> None:
    service = JobService("slurmd.service")
    limited = _host(nic_count=8, limits=_shell(lifted=False))
    root = _host(nic_count=8, limits=_shell(lifted=True))
    assert value(memlock_bytes(limited, None)) == 16 * GIB
    assert value(memlock_bytes(root, None)) is None
    assert value(memlock_bytes(root, service)) == 16 * GIB  # its jobs are not root's
    assert value(memlock_bytes(_host(nic_count=0), service)) is None
    assert value(memlock_bytes(_host(), None)) == 16 * GIB  # a text that tells of no devices
    of_root, of_user = (AskedProcess("pid 7", memlock_lifted=lifted) for lifted in (True, False))
    assert value(memlock_bytes(limited, of_root)) is None  # it is not held to it
    assert value(memlock_bytes(root, of_user)) == 16 * GIB
    hidden = Missing("denied", "?")
    assert memlock_bytes(_host(nic_count=hidden), None) is hidden


@pytest.mark.parametrize(
    ("size", "floor"),
    [(1 << 40, 500_000_000), (64 << 20, (64 << 20) // 20), (NOT_IN_INPUT, None)],
)
def test_the_least_that_must_be_free(size: Known[int], floor: int | None) -> None:
    assert value(disk_floor_bytes(Host("h"), Disk("/", size_bytes=size))) == floor
