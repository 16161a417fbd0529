"""How fast the device's memory is, and the way to it from the host's. Bytes that were read and
written are counted both, as STREAM does; a copy between host and device counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .place import Place, spread, timed

#: Larger than any cache; a part of what is free at most.
_MEMORY_BYTES = {"cuda": 2 << 30, "cpu": 128 << 20}
_COPY_BYTES = 256 << 20


def memory(place: Place, budget_s: float) -> Iterator[dict[str, Any]]:
    """Copy (2 bytes moved for each) and triad (3)."""
    size = _MEMORY_BYTES[place.device.type]
    if place.gpu:
        size = min(size, torch.cuda.mem_get_info(place.device)[0] // 8)
    a, b, c = (torch.ones(size // 4, device=place.device) for _ in range(3))
    for name, moved, work in (
        ("copy", 2 * size, lambda: a.copy_(b)),
        ("triad", 3 * size, lambda: torch.add(b, c, alpha=3.0, out=a)),
    ):
        yield {"kind": "memory", "name": name, "bytes": size,
               "bytes_per_s": spread(moved, timed(place, work, budget_s / 2))}  # fmt: skip


def copies(place: Place, budget_s: float) -> Iterator[dict[str, Any]]:
    """Between the host and a GPU: each direction, pinned and pageable; pinned both at once."""
    if not place.gpu:
        return
    there = torch.empty(_COPY_BYTES, dtype=torch.uint8, device=place.device)
    for kind in ("pinned", "pageable"):
        here = torch.ones(_COPY_BYTES, dtype=torch.uint8, pin_memory=kind == "pinned")
        pinned = kind == "pinned"
        for name, work in (
            (f"h2d {kind}", lambda: there.copy_(here, non_blocking=pinned)),  # noqa: B023
            (f"d2h {kind}", lambda: here.copy_(there, non_blocking=pinned)),  # noqa: B023
        ):
            yield _line(name, _COPY_BYTES, timed(place, work, budget_s / 5))
    yield _line("both pinned", 2 * _COPY_BYTES, timed(place, _both(place, there), budget_s / 5))


def _both(place: Place, there: torch.Tensor) -> Callable[[], None]:
    other = torch.empty_like(there)
    out, back = (torch.ones(_COPY_BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(2))
    streams = [torch.cuda.Stream(place.device) for _ in range(2)]

    def work() -> None:
        now = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(now)
        with torch.cuda.stream(streams[0]):
            there.copy_(out, non_blocking=True)
        with torch.cuda.stream(streams[1]):
            back.copy_(other, non_blocking=True)
        for stream in streams:
            now.wait_stream(stream)

    return work


def _line(name: str, size: int, seconds: list[float]) -> dict[str, Any]:
    return {"kind": "copy", "name": name, "bytes": size, "bytes_per_s": spread(size, seconds)}
