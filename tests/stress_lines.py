"""A sound stress run, line by line as the payload tells it; tests edit it.

The GPUs are built, not recorded: eight H100 with the rates that such hosts are known for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.lab.watch_lines import watch_lines

GPUS = 8
_Line = dict[str, Any]
#: TFLOP/s, and how far the worst element is from fp64's.
_GEMMS = {
    "fp32": (51e12, 6e-6), "tf32": (420e12, 4e-3), "bf16": (720e12, 0.022), "fp16": (700e12, 3e-3),
    "fp8": (1380e12, 0.023),
}  # fmt: skip
_COPIES = {
    "h2d pinned": 55e9, "d2h pinned": 53e9, "h2d pageable": 9e9, "d2h pageable": 8e9,
    "both pinned": 88e9,
}  # fmt: skip
_PATTERNS = ("address", "walking ones", "walking zeros", "random", "random inverted")
#: Of tests/samples/nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt, where tests join the two.
UUIDS = (
    "24849558-6d4b-8f8a-eced-d00910aa7d62", "3e8e89db-b86b-6206-3582-cafd4affae12",
    "dc68a89a-0597-6690-8c54-995fdf5a59e4",
)  # fmt: skip


def lines(
    *, gpus: int = GPUS, soak_s: float = 60.0, fades: float = 0.0, hot: int = -1
) -> Iterator[_Line]:
    """The run; NVML's lines beside it come last, as they are told. `fades`: by so much in the soak;
    `hot`: the number of a GPU."""
    yield _begin("cuda", gpus, soak_s)
    for device in range(gpus):
        yield from ({**one, "device": device} for one in _device(device, soak_s, fades))
    for one in range(gpus):
        for other in range(gpus):
            if one != other:
                rate = 380e9 + one * 1e9
                yield {"kind": "pair", "from": one, "to": other, "reaches": True, "same": True,
                       "bytes_per_s": _spread(rate), "device": -1}  # fmt: skip
    watched = watch_lines(gpus=gpus, seconds=50, one={hot: {"gpu_c": 84}})
    yield from map(json.loads, watched.splitlines())
    yield {"kind": "end", "elapsed_s": 84.2}


def on_processors() -> Iterator[_Line]:
    """The same on two parts of a CPU's cores."""
    yield _begin("cpu", 2, 0.0)
    for device in range(2):
        told = [{"kind": "device", "name": "processors", "threads": 1, "cores": 2}]
        told += [_gemm("fp32", 9e10, 3e-6), _gemm("bf16", 5e11, 0.011)]
        told += [_rate("memory", "copy", 9e9), _rate("memory", "triad", 8e9)]
        told += [_attention("1x4x2x256x64", "fp32", 2e-7), *_proofs(1 << 25), {"kind": "done"}]
        yield from ({**one, "device": device} for one in told)
    yield {"kind": "end", "elapsed_s": 12.0}


def text(told: Iterator[_Line] | None = None, *, without: str = "", **change: _Line) -> str:
    """The lines as the payload writes them. `without`: no lines of that kind; `change`: values of
    the lines of a kind, or of a kind and device (`gemm3`)."""
    found = []
    for one in told or lines():
        kind = str(one.get("kind", ""))
        if kind and kind == without:
            continue
        found.append(
            {**one, **change.get(kind, {}), **change.get(f"{kind}{one.get('device')}", {})}
        )
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in found)


def _begin(device: str, count: int, soak_s: float) -> _Line:
    gpu = {"name": "NVIDIA H100 80GB HBM3", "capability": "9.0", "memory_bytes": 85014380544,
           "built": True}  # fmt: skip
    plan = {"device": device, "devices": count, "seconds": 0.0, "soak_s": soak_s, "seed": 1,
            "attention": "", "silent_s": 60.0, "memory_percent": 90, "inject": {},
            "even_if_busy": False, "job": ""}  # fmt: skip
    return {"preflight": "stress/1", "kind": "begin", "plan": plan, "torch": "2.9.0",
            "asked": 0, "visible": None,
            "cuda": "12.8", "python": "3.11.7", "cores": 128,
            "gpus": [gpu] * count if device == "cuda" else []}  # fmt: skip


def _device(number: int, soak_s: float, fades: float) -> Iterator[_Line]:
    uuid = UUIDS[number] if number < len(UUIDS) else f"0000feed-0000-4000-8000-{number:012}"
    yield {"kind": "device", "name": "NVIDIA H100 80GB HBM3", "uuid": f"GPU-{uuid}",
           "memory_bytes": 85014380544, "capability": "9.0"}  # fmt: skip
    for precision, (flops, worst) in _GEMMS.items():
        yield _gemm(precision, flops * (1 - number / 500), worst)
    yield _rate("memory", "copy", 3.02e12)
    yield _rate("memory", "triad", 2.98e12)
    yield _attention("2x32x8x4096x128", "bf16", 3e-3)
    yield from _proofs(70 << 30)
    for second in range(int(soak_s)):
        yield {"kind": "soak", "precision": "bf16", "differing": 0, "for_s": 1.0,
               "flops_per_s": 715e12 * (1 - fades * second / soak_s)}  # fmt: skip
    for name, rate in _COPIES.items():
        yield _rate("copy", name, rate)
    yield {"kind": "done"}


def _gemm(precision: str, flops: float, worst: float) -> _Line:
    return {"kind": "gemm", "precision": precision, "sides": [8192, 8192, 8192],
            "flops_per_s": _spread(flops), "differing": 0, "worst": worst,
            "block_worst": worst / 2, "digest": f"{precision}f00d0123"}  # fmt: skip


def _rate(kind: str, name: str, rate: float) -> _Line:
    return {"kind": kind, "name": name, "bytes": 1 << 28, "bytes_per_s": _spread(rate)}


def _attention(shape: str, precision: str, apart: float) -> _Line:
    return {"kind": "attention", "shape": shape, "precision": precision, "kernel": "flash",
            "why_not_flash": "", "apart": apart, "flops_per_s": _spread(450e12),
            "digest": "188abe9615f07fd3"}  # fmt: skip


def _proofs(tested: int) -> Iterator[_Line]:
    yield {"kind": "answers", "digests": ["f171866cf4b76708", "f171866cf4b76708"]}
    for name in _PATTERNS:
        yield {"kind": "pattern", "name": name, "bytes": tested, "errors": 0, "first": [],
               "elapsed_s": 1.2}  # fmt: skip


def _spread(rate: float) -> _Line:
    return {"n": 50, "median": round(rate), "low": round(rate * 0.99), "high": round(rate * 1.01)}
