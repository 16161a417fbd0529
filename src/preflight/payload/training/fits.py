"""Whether a training fits into memory: a lower bound of what a rank takes, before the start.

What fits by it may still run out; what does not fit by it cannot be trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..host_memory import available_bytes
from .model import parameters
from .plan import Plan
from .presets import Preset

#: Of what is free, what a smaller batch may take: the bound is a lower one.
_USED = 0.8
#: Tokens of a sequence at least.
_SHORTEST = 8
#: Bytes of a parameter in fp32: itself and both moments of AdamW, and its gradient.
_KEPT, _GRADIENT = 12, 4


@dataclass(frozen=True)
class Needs:
    """Bytes of one rank."""

    kept: int  # weights and optimizer: always there
    gradients: int
    activations: int  # where backward begins, and no gradient is there yet

    @property
    def peak(self) -> int:
        return self.kept + max(self.gradients, self.activations)


def needs(plan: Plan, shape: Preset) -> Needs:
    """At least so much is allocated at once."""
    count = -(-parameters(shape) // _pieces(plan))
    size = 4 if shape.precision == "fp32" else 2
    again = round(plan.recompute * shape.layers)
    kept = (shape.layers - again) * _block(plan, shape, size)
    if again:  # their inputs, and one block as it is computed again
        each = _matrices(shape, size) if plan.operators else size * shape.width
        kept += again * each + _block(plan, shape, size)
    # At the loss: the logits, and their gradient.
    logits = 2 * shape.vocabulary * (size if plan.compiled else 4)
    return Needs(_KEPT * count, _GRADIENT * count, shape.batch * shape.length * (kept + logits))


def _block(plan: Plan, shape: Preset, size: int) -> int:
    """Bytes for a token that backward needs of one block: the inputs of its matrices and of what
    is between them; compiled only those of its matrices, for the rest is computed again."""
    if plan.compiled:
        return _matrices(shape, size)
    heads = shape.width * shape.kv_heads // shape.heads
    width = 28 if size == 4 else 22  # the residual stream and the norms are in fp32
    return width * shape.width + size * (3 * heads + 4 * shape.hidden)


def _matrices(shape: Preset, size: int) -> int:
    """Of one block only the inputs of its matrices, or about as much: what they give."""
    heads = shape.width * shape.kv_heads // shape.heads
    return size * (4 * shape.width + 2 * heads + 2 * shape.hidden)


def _pieces(plan: Plan) -> int:
    """Over how many ranks one model is spread."""
    if plan.sharding != "fsdp":
        return 1
    replicas = int(plan.mesh.partition("x")[0]) if plan.mesh else 1
    return max(1, plan.world // replicas)


def reason(plan: Plan, shape: Preset, gpus: list[dict[str, Any]]) -> str:
    """Why it does not fit, and what would; "" where it may."""
    if plan.device == "cuda":
        rooms = [gpu.get("free_bytes") or gpu["memory_bytes"] for gpu in gpus[: plan.ranks]]
        if not rooms:
            return ""
        worst = min(range(len(rooms)), key=rooms.__getitem__)
        return _told(plan, shape, rooms[worst], 1, f"GPU {worst} has")
    room = available_bytes()
    return "" if room is None else _told(plan, shape, room, plan.ranks, "this host has")


def _told(plan: Plan, shape: Preset, room: int, ranks: int, where: str) -> str:
    """Of `ranks` that share the room."""
    found = needs(plan, shape)
    if ranks * found.peak <= room:
        return ""
    who = f"{ranks} ranks take" if ranks > 1 else "a rank takes"
    parts = (f"{size(ranks * found.kept)} weights and optimizer, "
             f"{size(ranks * found.gradients)} gradients, "
             f"{size(ranks * found.activations)} activations")  # fmt: skip
    ways = list(_ways(plan, shape, room // ranks))
    ways += ["--ranks 1"] if ranks > 1 and found.peak <= room else []
    return (f"{who} at least {size(ranks * found.peak)} of memory ({parts}), and {where} "
            f"{size(room)} free: take {' or '.join(ways) or 'a smaller --preset'}")  # fmt: skip


def _ways(plan: Plan, shape: Preset, room: int) -> Iterator[str]:
    """What to ask for instead, each enough by itself, where a rank has so much room."""
    found = needs(plan, shape)
    spare = _USED * room - found.kept
    holds = spare >= found.gradients
    batch = int(spare * shape.batch / found.activations) if holds else 0
    length = int(spare * shape.batch * shape.length / found.activations) if holds else 0
    if batch:
        yield f"--batch {batch}"
    elif length >= _SHORTEST:  # one sequence alone is too long
        yield f"--batch 1 --length {length}" if shape.batch > 1 else f"--length {length}"
    if not plan.recompute and needs(replace(plan, recompute=1.0), shape).peak <= room:
        yield "--activation-checkpointing"
    if plan.sharding == "ddp" and needs(replace(plan, sharding="fsdp"), shape).peak <= room:
        yield "--sharding fsdp"


def size(count: float) -> str:
    """As the tables beside it tell sizes: in steps of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1000 or unit == "TiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if count >= 100 else f"{count:.3g} {unit}"
