"""What the hosts with GPUs that reports are of have: models, memory of a GPU and of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from preflight.estimate.storage import positive
from preflight.model import Known, Missing, Report

NO_GPU_MEMORY = Missing("not-in-input", "a report of a host with GPUs: `gpu-health --save g.json`")


class Room(Struct, frozen=True):
    """The least of all: bytes of one GPU, and bytes of a host's memory that are free for it."""

    gpu_bytes: Known[float] = NO_GPU_MEMORY
    host_bytes: Known[float] = NO_GPU_MEMORY


def room(reports: Sequence[Report]) -> Room:
    """Of reports that hold facts: of a single host, or with --facts."""
    gpus, hosts = list[float](), list[float]()
    for facts in _with_gpus(reports):
        gpus += filter(None, (positive(_memory(gpu).get("total_bytes")) for gpu in _gpus(facts)))
        hosts += filter(None, [positive(_memory(facts).get("available_bytes"))])
    return Room(min(gpus, default=NO_GPU_MEMORY), min(hosts, default=NO_GPU_MEMORY))


def models_of(report: Report) -> Iterator[str]:
    """Of the GPUs of its hosts, as nvidia-smi calls them."""
    for facts in _with_gpus([report]):
        yield from (gpu["product"] for gpu in _gpus(facts) if isinstance(gpu.get("product"), str))


def _with_gpus(reports: Sequence[Report]) -> Iterator[dict[str, Any]]:
    for report in reports:
        yield from (host.facts for host in report.hosts if host.facts and _gpus(host.facts))


def _gpus(facts: dict[str, Any]) -> list[dict[str, Any]]:
    told = facts.get("gpus")
    each = told if isinstance(told, (list, tuple)) else ()
    return [one for one in each if isinstance(one, dict)]


def _memory(facts: dict[str, Any]) -> dict[str, Any]:
    told = facts.get("memory")
    return told if isinstance(told, dict) else {}
