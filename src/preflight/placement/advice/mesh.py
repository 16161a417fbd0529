"""The rank groups as the frameworks write them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from preflight.model import Group, Snippet
from preflight.placement.advice.groups import common_size, sizes

_MESH = """\
# {what}
import os

from torch.distributed.device_mesh import init_device_mesh

world = int(os.environ["WORLD_SIZE"])
# Sharded inside a group, replicated across. FSDP2: fully_shard(module, mesh=mesh); FSDP:
# device_mesh=mesh, sharding_strategy=ShardingStrategy.HYBRID_SHARD.
mesh = init_device_mesh("cuda", (world // {size}, {size}), mesh_dim_names=("replicate", "shard"))
{tensor}{wider}"""
_TENSOR = """\
# Tensor parallel inside a group, data parallel across:
# init_device_mesh("cuda", (world // {size}, {size}), mesh_dim_names=("dp", "tp"))
"""
#: What a group says where each copy in it goes the longest way.
_NO_TENSOR = "no tensor parallel"
_WIDER = """\
# Where {size} GPUs cannot hold the shards: {gpus}, the whole host, in place of {size}.
"""
_MEGATRON = """\
# {choices} inside a group. It must divide the attention heads, and the groups of
# grouped-query attention.
--tensor-model-parallel-size {size}
"""


def meshes(groups: Sequence[Group]) -> tuple[Snippet, ...]:
    """For torch, DeepSpeed and Megatron; nothing where the groups have no size in common."""
    size = common_size(groups)
    if size < 2:
        return ()
    gpus = sum(len(group.members) for group in groups)
    wider = _WIDER.format(size=size, gpus=gpus) if gpus > size else ""
    zero = {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": size}}
    joined = not any(_NO_TENSOR in group.why for group in groups)
    tensor = _TENSOR.format(size=size) if joined else ""
    mesh = _MESH.format(what=_what(size, gpus), size=size, wider=wider, tensor=tensor)
    shards = (Snippet("mesh", mesh), Snippet("deepspeed", json.dumps(zero, indent=2) + "\n"))
    if not joined:
        return shards
    choices = f"{sizes(size)} {'stay' if size > 3 else 'stays'}"
    return (
        *shards,
        Snippet("megatron", _MEGATRON.format(choices=choices, size=size)),
    )


def _what(size: int, gpus: int) -> str:
    if size == gpus:
        return f"The {gpus} ranks of a host are one group."
    return f"Each {size} consecutive ranks are a group, {gpus // size} to a host."
