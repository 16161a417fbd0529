"""Matrices multiplied in each precision: how fast, whether rightly, and always to the same bits.

The speed alone says nothing: a device that does no work is fast. Each product is held against one
in fp64, all of it where it lies and a block of it on the host, and the first against the last.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import inject
from .place import Place, spread, timed

#: Sides of the matrices that are tried, (m, n, k); the fastest is measured. Torch's best differs by
#: model: wave quantisation and cache decide.
_SIDES = {
    "cuda": ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 8192, 8192), (8192, 8192, 16384)),
    "cpu": ((512, 512, 512), (1024, 1024, 1024)),
}
#: Rows and columns of the block that the host multiplies itself.
_BLOCK = 64


@dataclass(frozen=True)
class Precision:
    """How numbers are held, and which devices multiply them by units of their own."""

    name: str
    kind: torch.dtype
    tf32: bool = False
    capability: tuple[int, int] = (0, 0)  # from which compute capability on
    cpu: bool = True


PRECISIONS = (
    Precision("fp32", torch.float32),
    Precision("tf32", torch.float32, tf32=True, capability=(8, 0), cpu=False),
    Precision("bf16", torch.bfloat16, capability=(8, 0)),
    Precision("fp16", torch.float16, capability=(7, 0), cpu=False),
    *(
        [Precision("fp8", torch.float8_e4m3fn, capability=(8, 9), cpu=False)]
        if hasattr(torch, "float8_e4m3fn") and hasattr(torch, "_scaled_mm") else []
    ),
)  # fmt: skip


def precisions(place: Place) -> list[Precision]:
    """Those that the device multiplies by units of its own."""
    if not place.gpu:
        return [one for one in PRECISIONS if one.cpu]
    capability = torch.cuda.get_device_capability(place.device)
    return [one for one in PRECISIONS if capability >= one.capability]


@dataclass
class Product:
    """Two matrices on a device, and what multiplies them."""

    place: Place
    precision: Precision
    a: Tensor
    b: Tensor

    @property
    def flops(self) -> float:
        return 2.0 * float(self.a.shape[0] * self.a.shape[1] * self.b.shape[1])

    def __call__(self) -> Tensor:
        if inject.zero_work(self.place):
            return self.a.new_zeros(1).expand(self.a.shape[0], self.b.shape[1])
        if self.precision.name == "fp8":
            one = torch.ones((), device=self.a.device)
            told = torch._scaled_mm(
                self.a, self.b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
            )
            found = told[0] if isinstance(told, tuple) else told  # with a maximum before torch 2.5
        else:
            found = self.a @ self.b
        return inject.corrupted(self.place, found)


def product(place: Place, precision: Precision, sides: tuple[int, int, int], seed: int) -> Product:
    """Random numbers, the same on every device: those of the host, or of devices of one model."""
    m, n, k = sides
    torch.backends.cuda.matmul.allow_tf32 = precision.tf32
    generator = place.generator(seed)
    a = torch.randn(m, k, device=place.device, generator=generator)
    b = torch.randn(n, k, device=place.device, generator=generator)
    # fp8 is multiplied row by column: the second matrix lies the other way round.
    return Product(place, precision, a.to(precision.kind), b.to(precision.kind).t())


def gemms(place: Place, seed: int, budget_s: float) -> Iterator[dict[str, Any]]:
    """One line for each precision."""
    chosen = precisions(place)
    for precision in chosen:
        yield measured(place, precision, seed, budget_s / len(chosen))


def measured(place: Place, precision: Precision, seed: int, budget_s: float) -> dict[str, Any]:
    """The fastest of some shapes, for the rest of the time; its product checked."""
    best = max(_SIDES[place.device.type], key=lambda sides: _tried(place, precision, sides, seed))
    multiply = product(place, precision, best, seed)
    first = multiply().clone()
    seconds = timed(place, multiply, budget_s)
    differing = int((multiply() != first).sum())
    return {
        "kind": "gemm", "precision": precision.name, "sides": best,
        "flops_per_s": spread(multiply.flops, seconds), "differing": differing,
        "worst": _worst(multiply, first), "block_worst": _block_worst(multiply, first),
        "digest": digest(_of_one_shape(place, precision, seed)),
    }  # fmt: skip


def _of_one_shape(place: Place, precision: Precision, seed: int) -> Tensor:
    """Which shape is fastest is chance where two are close: of all devices the same is compared."""
    return product(place, precision, _SIDES[place.device.type][0], seed)()


def _tried(
    place: Place, precision: Precision, sides: tuple[int, int, int], seed: int
) -> float:  # fmt: skip
    """Operations by second, roughly; 0 where the memory does not suffice."""
    try:
        one = product(place, precision, sides, seed)
        return float(spread(one.flops, timed(place, one, 0.0))["median"])
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return 0.0


def _worst(multiply: Product, found: Tensor) -> float:
    """How far the worst element is from fp64's, computed where the matrices lie; in units of the
    square root of k, the size of an element that is right."""
    right_of = multiply.b.to(torch.float64)
    rows = max(1, (64 << 20) // (8 * multiply.a.shape[1]))
    apart = [
        float((c.to(torch.float64) - a.to(torch.float64) @ right_of).abs().max())
        for a, c in zip(multiply.a.split(rows), found.split(rows))  # noqa: B905
    ]
    # max() goes past what is no number.
    worst = math.nan if any(map(math.isnan, apart)) else max(apart)
    return worst / math.sqrt(multiply.a.shape[1])


def _block_worst(multiply: Product, found: Tensor) -> float:
    """The same for a block whose product the host computes: rows and columns from all over."""
    a, b = multiply.a, multiply.b
    rows = torch.arange(0, a.shape[0], max(1, a.shape[0] // _BLOCK), device=a.device)
    columns = torch.arange(0, b.shape[1], max(1, b.shape[1] // _BLOCK), device=a.device)
    right = _on_host(a, rows) @ _on_host(b.t(), columns).t()
    apart = (_on_host(found, rows)[:, columns.cpu()] - right).abs().max()
    return float(apart) / math.sqrt(a.shape[1])


def _on_host(matrix: Tensor, rows: Tensor) -> Tensor:
    """Some rows, in fp64. They are taken in fp32: not every torch picks from fp8."""
    return matrix.to(torch.float32)[rows].cpu().double()


def digest(found: Tensor) -> str:
    """Of the bits, wherever it was computed."""
    data = found.contiguous().view(torch.uint8).cpu().numpy().tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def soak(
    place: Place, seed: int, seconds: float, now: Callable[[], float]
) -> Iterator[dict[str, Any]]:
    """The fastest kind for so long, one line a second: operations by second, and elements that are
    not what they were at first."""
    precision = next((one for one in precisions(place) if one.name == "bf16" and place.gpu),
                     precisions(place)[0])  # fmt: skip
    multiply = product(place, precision, _SIDES[place.device.type][1], seed)
    first = multiply().clone()
    until_s = now() + seconds
    while now() < until_s:
        began, runs = now(), 0
        while now() < min(began + 1.0, until_s):
            last = multiply()
            runs += 1
            if runs % 10 == 0:
                place.wait()  # not further ahead than some products
        differing = int((last != first).sum())
        took_s = now() - began
        yield {"kind": "soak", "precision": precision.name, "differing": differing,
               "flops_per_s": runs * multiply.flops / took_s, "for_s": took_s}  # fmt: skip
