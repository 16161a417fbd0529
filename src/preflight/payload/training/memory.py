"""Where the memory of one rank is, by kind, in bytes."""

from __future__ import annotations

import resource
from typing import Any

import torch
from torch import Tensor

from ..group.join import Place
from ..host_memory import available_bytes
from .fits import size
from .loop import State


def of(state: State, place: Place) -> dict[str, Any]:
    """Weights, gradients and optimizer as they lie on this rank; on a GPU what the allocator had at
    its peak, which the activations were the rest of."""
    weights = sum(_bytes(one) for one in state.model.parameters())
    held = [value for one in state.optimizer.state.values() for value in one.values()]
    told: dict[str, Any] = {
        "weights_bytes": weights,
        "gradients_bytes": weights,  # of one type and one size
        "optimizer_bytes": sum(_bytes(one) for one in held if isinstance(one, Tensor)),
        "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if not place.gpu:
        return told
    device = allocator(place)
    states = told["weights_bytes"] + told["gradients_bytes"] + told["optimizer_bytes"]
    return {**told, "activations_bytes": max(0, device["peak_bytes"] - states), **device}


def allocator(place: Place) -> dict[str, Any]:
    """What torch's allocator has of this rank's GPU, and what others have."""
    stats = torch.cuda.memory_stats(place.device)
    free, total = torch.cuda.mem_get_info(place.device)
    return {
        "peak_bytes": stats["allocated_bytes.all.peak"],
        "reserved_peak_bytes": stats["reserved_bytes.all.peak"],
        "inactive_split_peak_bytes": stats["inactive_split_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
        "out_of_memory": stats["num_ooms"],
        "device_used_bytes": total - free,
        "device_total_bytes": total,
    }


def exhausted(error: BaseException) -> str:
    """What an error says that memory ran out by; "" where it is another one. torch has its own
    type for GPUs only."""
    text = str(error) or type(error).__name__
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return text
    if not isinstance(error, MemoryError) and "can't allocate memory" not in text:
        return ""
    room = available_bytes()
    free = "" if room is None else f" (this host has {size(room)} free)"
    return text.splitlines()[0] + free


def _bytes(tensor: Tensor) -> int:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local.numel() * local.element_size()
