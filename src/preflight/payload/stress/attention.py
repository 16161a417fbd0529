"""Which attention really runs for a shape, why it is not flash, and how far it is from fp32."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

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


def shape_of(text: str, device: str) -> tuple[int, int, int, int, int]:
    """Batch, heads, heads of keys, length, size of a head. Raises PlanError."""
    words = (text or _SHAPES[device]).split("x")
    if len(words) != 5 or not all(one.isdigit() and int(one) for one in words):
        raise PlanError(f"expected BATCHxHEADSxKV_HEADSxLENGTHxSIZE such as {_SHAPES['cuda']}, "
                        f"got {text}")  # fmt: skip
    batch, heads, kv_heads, length, size = map(int, words)
    if heads % kv_heads:
        raise PlanError(f"heads ({heads}) must be a multiple of the heads of keys ({kv_heads})")
    return batch, heads, kv_heads, length, size


def attention(place: Place, text: str, seed: int, budget_s: float) -> dict[str, Any]:
    """One line: causal attention in bf16 (fp32 on a CPU), as a model of that shape calls it; or
    that the shape does not fit, which is no fault of the device."""
    shape = shape_of(text, place.device.type)
    about = {"kind": "attention", "shape": "x".join(map(str, shape)),
             "precision": "bf16" if place.gpu else "fp32"}  # fmt: skip
    try:
        return {**about, **_measured(place, shape, seed, budget_s)}
    except RuntimeError as error:
        if not exhausted(error):
            raise
        return {**about, "beyond": f"the device has not the memory for {about['shape']}"}


def _measured(
    place: Place, shape: tuple[int, int, int, int, int], seed: int, budget_s: float
) -> dict[str, Any]:
    batch, heads, kv_heads, length, size = shape
    kind = torch.bfloat16 if place.gpu else torch.float32
    generator = place.generator(seed)

    def some(number: int) -> Tensor:
        return torch.randn(batch, number, length, size, device=place.device, dtype=kind,
                           generator=generator)  # fmt: skip

    q, k, v = some(heads), some(kv_heads), some(kv_heads)
    cut = [one[:1, :, :_REFERENCE_LENGTH] for one in (q, k, v)]
    right = written_out(*(one.float() for one in cut))
    found = fused(*cut)
    seconds = timed(place, lambda: fused(q, k, v), budget_s)
    flops = 4.0 * batch * heads * length * length * size / 2
    return {
        "kernel": kernel(q, k, v),
        "why_not_flash": why_not_flash(q, k, v) if place.gpu else "",
        "apart": float((found.float() - right).norm() / right.norm()),
        "flops_per_s": spread(flops, seconds), "digest": digest(found),
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
