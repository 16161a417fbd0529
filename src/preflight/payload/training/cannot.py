"""Why a plan cannot be trained here: one sentence, before anything is started."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import torch

from . import fits, room
from .clipping import policy
from .comm_hooks import HOOKS
from .inject import (
    BEFORE_JUMP,
    FAULTS,
    OF_RANK,
    OF_REPLICAS,
    OF_RESUME,
    OF_SEVERAL,
    OF_STEP,
    ON_GPUS,
)
from .plan import Plan
from .presets import Preset

_Gpus = list[dict[str, Any]]
#: Since when checkpoints are as written here, and since when FSDP2 is public.
_LEAST, _FULL = (2, 3), (2, 6)


def reason(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    """The first that holds; "" where it can be trained. Of a sweep each setting is asked for by
    itself whether it fits, and none writes a checkpoint."""
    why = never(plan, shape, gpus)
    if why or plan.sweep:
        return why
    return fits.reason(plan, shape, gpus) or room.reason(plan, shape, gpus)


def never(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    """The first that holds however much memory and disk there is."""
    return next(filter(None, (ask(plan, shape, gpus) for ask in _ASKS)), "")


def _version(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    version = tuple(int(one) for one in torch.__version__.split(".")[:2])
    if version < _LEAST:
        return (f"torch 2.3 or later is needed, and this is {torch.__version__}: "
                "--python names another Python")  # fmt: skip
    if version >= _FULL or plan.sharding != "fsdp":
        return ""
    return (f"FSDP2 needs torch 2.6 or later, and this is {torch.__version__}: "
            "choose --sharding ddp")  # fmt: skip


def _devices(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    if plan.device != "cuda":
        return ""
    if torch.version.cuda is None:
        return f"this torch ({torch.__version__}) is built without CUDA"
    if len(gpus) < plan.ranks:
        return f"{plan.ranks} GPUs are asked for, and torch finds {len(gpus)}"
    for number, gpu in enumerate(gpus[: plan.ranks]):
        if not gpu["built"]:
            named = f"GPU {number}, {gpu['name']} (compute capability {gpu['capability']})"
            return f"this torch ({torch.__version__}) is not built for {named}"
    return ""


def _mesh(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    if not plan.mesh:
        return ""
    if plan.sharding != "fsdp":
        return f"a mesh ({plan.mesh}) is for fsdp, and the sharding is {plan.sharding}"
    sizes = plan.mesh.split("x")
    if len(sizes) != 2 or not all(one.isdigit() and int(one) for one in sizes):
        return f"expected a mesh REPLICASxPIECES such as 2x4, got {plan.mesh}"
    if int(sizes[0]) * int(sizes[1]) != plan.world:
        return (
            f"a mesh of {plan.mesh} does not have as many places as there are ranks: {plan.world}"
        )
    return ""


def _hook(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    if plan.comm_hook == "none":
        return ""
    if plan.sharding == "ddp" and (plan.comm_hook, plan.device) == ("bf16", "cpu"):
        return "torch has a communication hook of bf16 for NCCL only: take fp16, or none"
    if plan.sharding == "ddp":
        return ""
    return (
        f"a communication hook ({plan.comm_hook}) is for ddp, and the sharding is {plan.sharding}"
    )


def _shape(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    if shape.width % shape.heads:
        return f"heads ({shape.heads}) must divide the width ({shape.width})"
    if shape.heads % shape.kv_heads:
        return (f"--kv-heads {shape.kv_heads} does not divide the {shape.heads} heads: "
                f"take {' or '.join(map(str, dividers(shape.heads)))}")  # fmt: skip
    return ""


def dividers(count: int) -> list[int]:
    """Whole numbers that divide it."""
    return [one for one in range(1, count + 1) if not count % one]


def _faults(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    unknown = sorted(set(plan.inject) - set(FAULTS))
    if unknown:
        return f"no fault {unknown[0]}: there are {', '.join(FAULTS)}"
    idle = sorted(set(plan.inject) & set(ON_GPUS)) if plan.device == "cpu" else []
    if idle:
        return f"{idle[0]} shows only on GPUs: {ON_GPUS[idle[0]]}"
    # A fault that never comes would be told as one that nothing has seen.
    for kind, names, count in (("rank", OF_RANK, plan.world), ("step", OF_STEP, shape.steps)):
        for name in sorted(names & set(plan.inject)):
            if int(plan.inject[name] or 0) >= count:
                at = plan.inject[name]
                return f"{name}:{at}: there is no {kind} {at}, the last is {count - 1}"
    return ""


def _unseen(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    """An injected fault that no check could see in this run would be told as one that passes."""
    asked = plan.inject
    twins = plan.sharding == "ddp" or plan.mesh.partition("x")[0] not in ("", "1")
    bad = int(asked.get("bad-batch") or shape.steps // 3)
    for names, idle, why in (
        (OF_RESUME, not plan.resume, "nothing is resumed"),
        ({"full-disk"}, len(plan.hosts) > 1 and not plan.folder, "nothing is saved"),
        (OF_SEVERAL, plan.world == 1, "one rank has no other to be held against"),
        (OF_REPLICAS, not twins, "no other rank holds the same parameters"),
        ({"bad-batch"}, bad < BEFORE_JUMP,
         f"a loss is held against those of the {BEFORE_JUMP} steps before it"),
    ):  # fmt: skip
        found = sorted(names & set(asked)) if idle else []
        if found:
            return f"--inject {found[0]} would not be seen: {why}"
    return ""


def _places(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    names = sorted(name for _, name in socket.if_nameindex())
    if plan.interface and plan.interface not in names:
        return f"there is no interface {plan.interface}; there are: {', '.join(names)}"
    if plan.folder and not os.access(plan.folder, os.W_OK | os.X_OK):
        there = "cannot be written" if os.path.isdir(plan.folder) else "is no folder that is there"  # noqa: PTH112
        return f"--folder {plan.folder} {there}"
    return ""


def _choices(plan: Plan, shape: Preset, gpus: _Gpus) -> str:
    for name, value, known in (
        ("sharding", plan.sharding, ("single", "ddp", "fsdp")),
        ("comm_hook", plan.comm_hook, HOOKS),
        ("precision", shape.precision, ("fp32", "bf16", "fp16")),
    ):
        if value not in known:
            return f"{name}: expected {', '.join(known)}, got {value}"
    if plan.sharding == "single" and plan.world > 1:
        return f"sharding single is one rank, and {plan.world} are asked for: choose ddp or fsdp"
    try:
        policy(plan.clip)
    except ValueError as error:
        return f"clip: {error}"
    return ""


_ASKS: tuple[Callable[[Plan, Preset, _Gpus], str], ...] = (
    _version, _choices, _places, _faults, _unseen, _shape, _devices, _mesh, _hook,
)  # fmt: skip
