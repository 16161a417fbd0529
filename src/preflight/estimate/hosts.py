"""What the hosts with GPUs that reports are of have: models, memory of a GPU and of the host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.estimate.storage import positive
from preflight.model import Known, Missing, Report

NO_GPU_MEMORY = Missing("not-in-input", "a report of a host with GPUs: `gpu-health --save g.json`")

#: Of a MIG slice the last is its own.
_NAMED_GB = re.compile(r"(?i)\b(?:[0-9]g\.)?([1-9][0-9]{0,3})gb\b")
#: A superchip's name has the memory of its processor.
_SHARED = re.compile(r"\bG[HB][0-9]{3}\b")


class Room(Struct, frozen=True):
    """The least of all: bytes of one GPU, and bytes of a host's memory that are free for it."""

    gpu_bytes: Known[float] = NO_GPU_MEMORY
    host_bytes: Known[float] = NO_GPU_MEMORY
    gpu_source: str = "the reports"


def room(reports: Sequence[Report]) -> Room:
    """Of reports that hold facts: of a single host, or with --facts."""
    gpus, hosts = list[float](), list[float]()
    for facts in _with_gpus(reports):
        gpus += filter(None, (positive(_memory(gpu).get("total_bytes")) for gpu in _gpus(facts)))
        hosts += filter(None, [positive(_memory(facts).get("available_bytes"))])
    return Room(min(gpus, default=NO_GPU_MEMORY), min(hosts, default=NO_GPU_MEMORY))


def room_of(product: str, found: Room, products: Sequence[str]) -> Room:
    """That of the reports where they are of this model; else what its name says. Sellers' GB are
    taken as GiB, the most that it can be."""
    if product in products and not isinstance(found.gpu_bytes, Missing):
        return found
    sizes = () if _SHARED.search(product) else _NAMED_GB.findall(product)
    if not sizes:
        other = bool(product and products and product not in products)
        return replace(found, gpu_bytes=NO_GPU_MEMORY) if other else found
    return replace(found, gpu_bytes=float(int(sizes[-1]) << 30), gpu_source="its name")


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
