"""What the state of a model takes on each GPU and host, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.estimate.memory import activations_bytes, offload_bytes, states
from preflight.estimate.whole import Estimate
from preflight.model import Missing
from preflight.units import format_bytes

Row = dict[str, Any]


def memory_table(told: Estimate) -> Row:
    """One entry of a report's `measurements`."""
    return {"table": "estimate: memory of the state", "rows": list(_memory(told)),
            "notes": list(_memory_notes(told)), "numbers": _memory_numbers(told)}  # fmt: skip


def _memory(told: Estimate) -> Iterator[Row]:
    for one in states(told.run):
        mark = ", the run's" if one.sharding == told.run.sharding else ""
        yield {"where": f"each GPU, {one.sharding}{mark}",
               "bytes": _span(one.low_bytes, one.high_bytes), "how": one.formula}  # fmt: skip
    yield {"where": "host, state offloaded", "bytes": _size(offload_bytes(told.run.params)),
           "how": "18 B a parameter x 1.5, by DeepSpeed's own estimate, on one host"}  # fmt: skip
    activations = activations_bytes(told.run)
    if not isinstance(activations, Missing):
        yield {"where": "each GPU, activations", "bytes": _span(*activations),
               "how": "2 B (computed twice) to 34 (all kept) x layers x width x t"}  # fmt: skip


def _span(low: float, high: float) -> str:
    return _size(low) if low == high else f"{_size(low)} to {_size(high)}"


def _memory_numbers(told: Estimate) -> dict[str, float]:
    found = {"host_offload_bytes": offload_bytes(told.run.params)}
    for one in states(told.run):
        found[f"{one.sharding}_low_bytes"] = one.low_bytes
        found[f"{one.sharding}_high_bytes"] = one.high_bytes
    return found


def _fits(told: Estimate) -> Iterator[str]:
    """Whether it fits into what the hosts of the reports have."""
    [mine] = [one for one in states(told.run) if one.sharding == told.run.sharding]
    activations, has = activations_bytes(told.run), told.room.gpu_bytes
    least, most = (0.0, 0.0) if isinstance(activations, Missing) else activations
    if not isinstance(has, Missing):
        if mine.high_bytes + most <= has:
            how = "that fits"
        elif mine.low_bytes + least > has:
            how = "that does not fit"
        else:
            how = "that fits with gradients in 2 B and activations computed twice, or nearly so"
        yield f"one GPU has {_size(has)} by {told.room.gpu_source}: {how}"
    if not isinstance(host := told.room.host_bytes, Missing):
        can = "can" if offload_bytes(told.run.params) <= host else "cannot"
        yield f"a host of the reports has {_size(host)} free: it {can} take what is offloaded"


def _memory_notes(told: Estimate) -> Iterator[str]:
    yield from _fits(told)
    activations = activations_bytes(told.run)
    if isinstance(activations, Missing):
        yield f"activations are {activations.text}"
    yield "buffers of communication, the logits and what the allocator keeps come on top"


def _size(count: float) -> str:
    return format_bytes(count, decimal=True)
