"""Where the model lies: the process group, the device, and the model spread over the ranks."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from .model import Decoder
from .presets import Preset

#: A rank that says nothing for so long is lost: in a run of a minute nothing takes longer.
SILENT_S = 60
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


@dataclass(frozen=True)
class Place:
    """This process among all: as torchrun's variables tell it."""

    rank: int
    ranks: int
    local_rank: int
    device: torch.device

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"


def join(device: str) -> Place:
    """Become a rank. Alone there is no process group."""
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    at = torch.device(device, local) if device == "cuda" else torch.device("cpu")
    if device == "cuda":
        torch.cuda.set_device(at)
    if ranks > 1:
        backend = "nccl" if device == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(seconds=SILENT_S))
    return Place(rank, ranks, local, at)


def built(shape: Preset, place: Place, seed: int) -> Decoder:
    """The same model on every rank, for the seed is the same."""
    torch.manual_seed(seed)
    model = Decoder(shape).to(place.device)
    model.initialise()
    return model


def spread(model: Decoder, place: Place, sharding: str, precision: str) -> nn.Module:
    """The model as it is trained: alone, replicated (ddp) or in pieces (fsdp)."""
    if place.ranks == 1 or sharding == "single":
        return model
    if sharding == "ddp":
        on = [place.local_rank] if place.gpu else None
        return nn.parallel.DistributedDataParallel(
            model, device_ids=on, gradient_as_bucket_view=True
        )
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    half = precision != "fp32"
    policy = MixedPrecisionPolicy(
        param_dtype=_TYPES[precision] if half else None,
        reduce_dtype=torch.float32 if half else None,
    )
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy)


def casting(place: Place, sharding: str, precision: str) -> Any:
    """The context in which the forward pass runs; FSDP2 casts by its own policy."""
    if precision == "fp32" or (sharding == "fsdp" and place.ranks > 1):
        return nullcontext()
    return torch.autocast(place.device.type, _TYPES[precision])


def together(model: nn.Module, last: bool) -> Any:
    """Gradients are averaged over the ranks at the last micro-batch of a step only."""
    if hasattr(model, "no_sync") and not last:
        return model.no_sync()
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(last)
    return nullcontext()
