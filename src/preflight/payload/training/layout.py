"""Where the model lies: the process group, the device, and the model spread over the ranks."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..group.join import Place
from . import comm_hooks
from .model import Decoder
from .presets import Preset

_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
#: What DDP calls it, and since torch 2.13, which warns of the older name.
_NAMES = ("forward_sync_buffers", "broadcast_buffers")
_SENDS_BUFFERS = next(
    one for one in _NAMES
    if one in inspect.signature(nn.parallel.DistributedDataParallel.__init__).parameters
)  # fmt: skip


def built(shape: Preset, place: Place, seed: int, *, recompute: float = 0.0) -> Decoder:
    """The same model on every rank, for the seed is the same."""
    torch.manual_seed(seed)
    model = Decoder(shape, recompute=recompute).to(place.device)
    model.initialise()
    return model


@dataclass(frozen=True)
class Spread:
    """How a model lies over the ranks."""

    sharding: str = "single"  # single | ddp | fsdp
    mesh: str = ""  # replicas x pieces of fsdp; "": pieces on all ranks
    comm_hook: str = "none"  # of ddp: comm_hooks.py

    @property
    def replicas(self) -> int:
        """Times that each piece of fsdp is there."""
        return int(self.mesh.partition("x")[0]) if self.mesh else 1


def spread(model: Decoder, place: Place, how: Spread, precision: str) -> nn.Module:
    """The model as it is trained: alone, replicated (ddp) or in pieces (fsdp)."""
    if place.ranks == 1 or how.sharding == "single":
        return model
    return _replicated(model, place, how) if how.sharding == "ddp" else _cut(
        model, place, how, precision
    )  # fmt: skip


def decoder(model: nn.Module) -> Decoder:
    """The model itself, however it is spread."""
    return next(one for one in model.modules() if isinstance(one, Decoder))


def _replicated(model: Decoder, place: Place, how: Spread) -> nn.Module:
    on = [place.local_rank] if place.gpu else None
    # Its buffers are constants: to send them at each forward is a wait that looks like work.
    settings: dict[str, Any] = {"gradient_as_bucket_view": True, _SENDS_BUFFERS: False}
    if how.comm_hook == "powersgd" and not place.gpu:
        # torch's hook sends more where an answer comes in: with gloo the ranks must not have two
        # buckets under way, for they would be answered in another order on each.
        settings["bucket_cap_mb"] = 1 << 14
    ddp = nn.parallel.DistributedDataParallel(model, device_ids=on, **settings)
    sent: Any = comm_hooks.register(ddp, how.comm_hook)
    ddp.sent_bytes = sent
    return ddp


def _cut(model: Decoder, place: Place, how: Spread, precision: str) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    half = precision != "fp32"
    policy = MixedPrecisionPolicy(
        param_dtype=_TYPES[precision] if half else None,
        reduce_dtype=torch.float32 if half else None,
    )
    pieces = place.ranks // how.replicas
    shape, names = ((how.replicas, pieces), ("replicate", "shard")) if how.mesh else (
        (place.ranks,), ("shard",)
    )  # fmt: skip
    mesh = init_device_mesh(place.device.type, shape, mesh_dim_names=names)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


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
