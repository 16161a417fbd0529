"""What an estimate concludes: how long the run takes, and whether its state fits on a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec.structs import replace

from preflight.estimate.memory import activations_bytes, states
from preflight.estimate.run import SHARDINGS, Run
from preflight.estimate.whole import Estimate, sent_s
from preflight.model import Finding, Missing, Status
from preflight.units import format_bytes, format_duration

#: Of an optimizer, the one that keeps less.
_SMALLER = {"adamw": "adamw-8bit"}


def findings(told: Estimate) -> tuple[Finding, ...]:
    """The time first; memory where a GPU's is known; sending where it rules a stated MFU out."""
    return (_time(told), *_memory(told), *_sending(told))


def _time(told: Estimate) -> Finding:
    """The time of the run, or what it needs to be told."""
    if isinstance(told.wall_s, Missing):
        return Finding("estimate.time", Status.ERROR, "INCOMPLETE: the time of the run is not "
                       "known", fix=(told.wall_s.text,))  # fmt: skip
    wall = told.wall_s
    span = ""
    if wall.low != wall.high:
        high = format_duration(wall.high) if math.isfinite(wall.high) else "no end"
        span = f" ({format_duration(wall.low)} to {high})"
    text = f"{format_duration(wall.likely)}{span} on {told.run.gpus:,} GPUs"
    if not span:
        text += "; no range: each number in it is stated, or known only once"
    if unknown := told.beside_steps(known=False):
        text += f"; not known, and not in it: {', '.join(unknown)}"
    return Finding("estimate.time", Status.PASS, text)


def _memory(told: Estimate) -> Iterator[Finding]:
    """The least that a GPU must hold against what it has. What lies between least and most is for
    the table: it hangs on how the run is written."""
    has = told.room.gpu_bytes
    if isinstance(has, Missing):
        return
    least = least_bytes(told.run)
    of = "the state" if isinstance(activations_bytes(told.run), Missing) else "state, activations"
    text = f"{of} by {told.run.sharding}: at least {_size(least)} a GPU, of {_size(has)} "
    text += f"by {told.room.gpu_source}"
    if least <= has:
        yield Finding("estimate.memory", Status.PASS, text)
        return
    fix = tuple(_remedies(told.run, has)) or ("a model or batch that is smaller, or larger GPUs",)
    yield Finding("estimate.memory", Status.FAIL, f"does not fit: {text}", fix=fix)


def _sending(told: Estimate) -> Iterator[Finding]:
    """A step is no shorter than what it sends, were all of that hidden: an MFU that needs it to be
    is none of this run."""
    run, whole, sent = told.run, told.compute_s, sent_s(told.run, told.speeds)
    if run.mfu_percent is None or isinstance(whole, Missing) or isinstance(sent, Missing):
        return
    if sent.low <= whole.high:
        return
    reached = run.mfu_percent * whole.high / sent.low
    text = (
        f"--mfu {run.mfu_percent:g} cannot be reached: what {run.sharding} sends takes "
        f"{sent.low / whole.high:.1f} times as long as the steps would"
    )
    fix = ("more tokens between two exchanges: --tokens-per-gpu"
           + ("" if run.sharding == "fsdp" else ", --accumulation"),
           f"--mfu {reached:.2g} is the most at this bus bandwidth")  # fmt: skip
    yield Finding("estimate.communication", Status.WARN, text, fix=fix)


def least_bytes(run: Run) -> float:
    """Of one GPU: gradients in half precision, and layers computed twice where their shape is
    stated."""
    [mine] = [one for one in states(run) if one.sharding == run.sharding]
    activations = activations_bytes(run)
    return mine.low_bytes + (0.0 if isinstance(activations, Missing) else activations[0])


def _remedies(run: Run, has_bytes: float) -> Iterator[str]:
    """Each change that makes it fit by itself: sharding, GPUs, optimizer, tokens of a pass."""
    for way in SHARDINGS[SHARDINGS.index(run.sharding) + 1 :]:
        if (needs := least_bytes(replace(run, sharding=way))) <= has_bytes:
            yield f"--sharding {way}: at least {_size(needs)} a GPU"
            break
    activations = activations_bytes(run)
    passing = 0.0 if isinstance(activations, Missing) else activations[0]
    state = least_bytes(replace(run, sharding="fsdp")) - passing
    if passing < has_bytes < state + passing:
        gpus = math.ceil(state * run.gpus / (has_bytes - passing))
        yield f"--sharding fsdp on {gpus:,} GPUs at least"
    smaller = _SMALLER.get(run.optimizer)
    if smaller and (needs := least_bytes(replace(run, optimizer=smaller))) <= has_bytes:
        yield f"--optimizer {smaller}: at least {_size(needs)} a GPU"
    alone = least_bytes(run) - passing
    if passing and run.tokens_per_gpu and alone < has_bytes:
        fewer = math.floor(run.tokens_per_gpu * (has_bytes - alone) / passing)
        yield f"--tokens-per-gpu {fewer} at most"


def _size(count: float) -> str:
    return format_bytes(count, decimal=True)
