"""Which attention really runs for a shape, why it is not flash, and how far it is from fp32."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ..host_memory import available_bytes
from ..training.memory import exhausted
from ..training.model import fused, written_out
from .gemm import digest
from .place import Place, spread, timed
from .plan import PlanError

_SHAPES = {"cuda": "2x32x8x4096x128", "cpu": "1x4x2x256x64"}
#: torch.nn.attention.SDPBackend
_KERNELS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}
#: The reference keeps every score: so many tokens of one sequence at most are held against it.
_REFERENCE_LENGTH = 1024
#: Of which the time is taken to tell that of the whole.
_PART_LENGTH = {"cuda": 1024, "cpu": 256}
#: How often it runs at least (place.py), and how long all of that may take; a small part of it is
#: less busy than the whole, and several devices share the host's memory.
_RUNS, _MOST_S, _LONGER, _HOST_PART = 8, 600.0, 4.0, 2

Shape = tuple[int, int, int, int, int]


def shape_of(text: str, device: str) -> Shape:
    """Batch, heads, heads of keys, length, size of a head. Raises PlanError."""
    words = (text or _SHAPES[device]).split("x")
    if len(words) != 5 or not all(one.isdigit() and int(one) for one in words):
        raise PlanError(f"expected BATCHxHEADSxKV_HEADSxLENGTHxSIZE such as {_SHAPES['cuda']}, "
                        f"got {text}")  # fmt: skip
    batch, heads, kv_heads, length, size = map(int, words)
    if heads % kv_heads:
        raise PlanError(f"heads ({heads}) must be a multiple of the heads of keys ({kv_heads})")
    return batch, heads, kv_heads, length, size


def attention(
    place: Place, text: str, seed: int, budget_s: float, silent_s: float
) -> Iterator[dict[str, Any]]:
    """One line: causal attention in bf16 (fp32 on a CPU), as a model of that shape calls it; or
    that the shape does not fit, which is no fault of the device. Before it, how long the device may
    be silent in it."""
    shape = shape_of(text, place.device.type)
    about = {"kind": "attention", "shape": "x".join(map(str, shape)),
             "precision": "bf16" if place.gpu else "fp32"}  # fmt: skip
    too_much = f"the device has not the memory for {about['shape']}"
    if _bytes(place, shape) > _free(place):
        yield {**about, "beyond": too_much}
        return
    try:
        took_s = _RUNS * _one_s(place, shape, seed)
        if took_s > _MOST_S:
            yield {**about, "beyond": f"{about['shape']} takes {took_s / _RUNS:,.0f} s each time"}
            return
        yield {"kind": "doing", "name": "attention", "limit_s": silent_s + _LONGER * took_s}
        yield {**about, **_measured(place, shape, seed, budget_s)}
    except RuntimeError as error:
        if not exhausted(error):
            raise
        yield {**about, "beyond": too_much}


def _bytes(place: Place, shape: Shape) -> int:
    """What goes in and what comes out; what a kernel holds besides shows when it runs."""
    batch, heads, kv_heads, length, size = shape
    return 2 * batch * (heads + kv_heads) * length * size * (2 if place.gpu else 4)


def _free(place: Place) -> float:
    if place.gpu:
        return int(torch.cuda.mem_get_info(place.device)[0])
    free = available_bytes()
    return math.inf if free is None else free / _HOST_PART


def _flops(shape: Shape) -> float:
    """Causal: half of the scores count."""
    batch, heads, _, length, size = shape
    return 4.0 * batch * heads * length * length * size / 2


def _one_s(place: Place, shape: Shape, seed: int) -> float:
    """What it takes once, by what a part of it takes: one sequence, and of that the beginning."""
    part = (1, *shape[1:3], min(shape[3], _PART_LENGTH[place.device.type]), shape[4])
    q, k, v = _some(place, part, seed)
    rate = float(spread(_flops(part), timed(place, lambda: fused(q, k, v), 0.0))["high"])
    return _flops(shape) / max(rate, 1.0)


def _some(place: Place, shape: Shape, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    batch, heads, kv_heads, length, size = shape
    kind = torch.bfloat16 if place.gpu else torch.float32
    generator = place.generator(seed)

    def some(number: int) -> Tensor:
        return torch.randn(batch, number, length, size, device=place.device, dtype=kind,
                           generator=generator)  # fmt: skip

    return some(heads), some(kv_heads), some(kv_heads)


def _measured(place: Place, shape: Shape, seed: int, budget_s: float) -> dict[str, Any]:
    q, k, v = _some(place, shape, seed)
    cut = [one[:1, :, :_REFERENCE_LENGTH] for one in (q, k, v)]
    right = written_out(*(one.float() for one in cut))
    found = fused(*cut)
    seconds = timed(place, lambda: fused(q, k, v), budget_s)
    return {
        "kernel": kernel(q, k, v),
        "why_not_flash": why_not_flash(q, k, v) if place.gpu else "",
        "apart": float((found.float() - right).norm() / right.norm()),
        "flops_per_s": spread(_flops(shape), seconds), "digest": digest(found),
    }  # fmt: skip


def kernel(q: Tensor, k: Tensor, v: Tensor) -> str:
    """The one that torch chooses; "" where it does not tell."""
    try:
        shared = q.shape[1] != k.shape[1]
        number = torch._fused_sdp_choice(q, k, v, None, 0.0, True, enable_gqa=shared)
    except (AttributeError, TypeError, RuntimeError):
        return ""
    return _KERNELS.get(int(number), str(number))


def why_not_flash(q: Tensor, k: Tensor, v: Tensor) -> str:
    """What torch says against flash attention for this shape; "" where nothing is."""
    try:
        params = torch.backends.cuda.SDPAParams(q, k, v, None, 0.0, True, q.shape[1] != k.shape[1])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if torch.backends.cuda.can_use_flash_attention(params, debug=True):
                return ""
    except (AttributeError, TypeError, RuntimeError):
        return ""
    return "; ".join(dict.fromkeys(str(one.message).partition(" (Triggered")[0] for one in told))
