"""The stress of one device against what that device can do, found here by trying."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import torch

from bench.table import Row
from preflight.payload.ranks import Launch
from preflight.payload.stress.harness import harness
from preflight.payload.stress.plan import Plan

WALL_S = 90.0
PRODUCT_SHARE, COPY_SHARE = 0.95, 0.85
#: GB/s of a device's memory, by a part of its name: the data sheets of NVIDIA.
MEMORY_GBPS = {"H200": 4800.0, "H100 PCIe": 2000.0, "H100": 3350.0, "B200": 8000.0}
#: Sides of the products that are tried; the best of them is what the device can do.
_SIDES = {"cuda": (4096, 6144, 8192, 10240, 12288, 16384), "cpu": (256, 512)}
_TIMED_S, _WARM = 1.0, 3
_BAD = ("cannot", "failed", "died", "wedged", "lost")

Lines = list[dict[str, Any]]


class Best(NamedTuple):
    """The fastest product."""

    side: int
    flops_per_s: float


def rows(device: str, name: str) -> list[Row]:
    """All tests of one device, and what it can do. `name`: as nvidia-smi calls it."""
    began = time.monotonic()
    lines: Lines = []
    harness(Plan(device=device, devices=1), lines.append)
    wall = time.monotonic() - began
    bad = [one for one in lines if one.get("kind") in _BAD]
    if bad:
        raise RuntimeError("; ".join(str(one.get("text") or one) for one in bad))
    return shown(lines, wall, best(device), name)


def shown(lines: Lines, wall: float, found: Best, name: str) -> list[Row]:
    """What the lines tell, against what the device can do."""
    return [
        Row("stress of one device", f"{wall:.0f} s", f"<= {WALL_S:.0f} s", wall <= WALL_S),
        *_products(lines, found),
        *_memory(lines, name),
        *_attention(lines),
        *_wrong(lines),
    ]


def _products(lines: Lines, found: Best) -> Iterator[Row]:
    for one in _of(lines, "gemm"):
        rate, what = one["flops_per_s"]["median"], f"stress, product in {one['precision']}"
        if one["precision"] == "bf16":
            share = rate / found.flops_per_s
            most = f"{found.flops_per_s / 1e12:.1f} TFLOP/s of side {found.side}"
            yield Row(f"{what}, of the best found here ({most})", f"{100 * share:.1f} %",
                      f">= {100 * PRODUCT_SHARE:.0f} %", share >= PRODUCT_SHARE)  # fmt: skip
        else:
            yield Row(what, f"{rate / 1e12:.1f} TFLOP/s", "shown", True)


def _memory(lines: Lines, name: str) -> Iterator[Row]:
    peak = next((one for part, one in MEMORY_GBPS.items() if part in name), 0.0)
    for one in _of(lines, "memory"):
        rate, what = one["bytes_per_s"]["median"] / 1e9, f"stress, memory: {one['name']}"
        if peak and one["name"] == "copy":
            share = rate / peak
            yield Row(f"{what}, of {peak:.0f} GB/s", f"{100 * share:.1f} %",
                      f">= {100 * COPY_SHARE:.0f} %", share >= COPY_SHARE)  # fmt: skip
        else:
            yield Row(what, f"{rate:.0f} GB/s", "shown", True)
    for one in _of(lines, "copy"):
        rate = one["bytes_per_s"]["median"] / 1e9
        yield Row(f"stress, copies: {one['name']}", f"{rate:.1f} GB/s", "shown", True)


def _attention(lines: Lines) -> Iterator[Row]:
    for one in _of(lines, "attention"):
        told = f"{one['kernel']}, {one['apart']:.1e} apart from fp32"
        yield Row(f"stress, attention {one['shape']}", told, "shown", True)


def _wrong(lines: Lines) -> Iterator[Row]:
    """What has to be nothing."""
    differing = sum(one["differing"] for one in _of(lines, "gemm"))
    words = sum(one["errors"] for one in _of(lines, "pattern"))
    tested = sum(one["bytes"] for one in _of(lines, "pattern"))
    answers = {digest for one in _of(lines, "answers") for digest in one["digests"]}
    worst = max(one["block_worst"] for one in _of(lines, "gemm"))
    yield Row("stress, elements that differ", f"{differing}", "0", differing == 0)
    yield Row("stress, worst of a block that the host multiplied", f"{worst:.2g}", "< 1", worst < 1)
    yield Row(f"stress, wrong words in {tested / 1e9:.1f} GB", f"{words}", "0", words == 0)
    yield Row("stress, a training twice", f"{len(answers)} different", "1 different",
              len(answers) == 1)  # fmt: skip


def _of(lines: Lines, kind: str) -> Lines:
    return [one for one in lines if one.get("kind") == kind]


def best(device: str) -> Best:
    """The fastest bf16 product of torch.matmul among some sides: each a second, the median."""

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        for side in _SIDES[device]:
            tell({"kind": "side", "side": side, "flops_per_s": _rate(device, side)})

    told = [one for one in Launch(1, work, silent_s=120.0).lines() if one["kind"] == "side"]
    if not told:
        raise RuntimeError("no product was timed")
    fastest = max(told, key=lambda one: float(one["flops_per_s"]))
    return Best(fastest["side"], fastest["flops_per_s"])


def _rate(device: str, side: int) -> float:
    left, right = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)
    seconds: list[float] = []
    until_s = time.monotonic() + _TIMED_S
    while time.monotonic() < until_s or len(seconds) <= _WARM:
        began = time.perf_counter()
        torch.matmul(left, right, out=out)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return 2.0 * side**3 / median(seconds[_WARM:])
