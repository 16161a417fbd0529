"""A sound run of the bundled training loop, line by line as the payload tells it; tests edit it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

#: Steps of the whole run; at the last of these a checkpoint was begun that the resume reads.
STEPS, SAVES = 32, (8, 16)
RANKS = 2
_SECONDS = {
    "data": 0.0004, "copy": 0.0001, "forward": 0.006, "backward": 0.01, "communication": 0.001,
    "optimizer": 0.002, "checkpoint": 0.0, "rest": 0.0005,
}  # fmt: skip
_GIB = 1 << 30
_HASHES = ["1a2b3c4d5e6f7a8b", "2b3c4d5e6f7a8b9c", "3c4d5e6f7a8b9c0d"]

_Line = dict[str, Any]
_DATA: _Line = {
    "kind": "data", "shards": 2, "looked_at": 2, "tokens": 70000, "sampled": 65536,
    "distinct": 256, "most_id": 7, "most_percent": 0.51, "stretch_percent": 0.0, "stretch_in": "",
}  # fmt: skip


def lines(*, gpu: bool = False) -> Iterator[_Line]:
    """Of two ranks with DDP, killed and resumed; `gpu`: in fp16 and compiled."""
    yield _begin(gpu=gpu)
    yield _DATA
    yield from _each({"kind": "loader_alone", "launch": "whole", "tokens_per_s": 900000.0})
    for proof in _proofs(gpu=gpu):
        yield from _each({"launch": "whole", "kind": "proof", **proof})
    yield from _steps("whole", 0, gpu=gpu)
    yield from _each({"launch": "whole", **_memory(gpu=gpu)})
    yield from _each({"launch": "whole", "kind": "gc", "seconds": 0.004, "longest_s": 0.001})
    yield from _done("whole")
    yield {"kind": "launched", "launch": "whole", "elapsed_s": 6.1}
    yield from _each(_resumed("killed"))
    yield {"kind": "killed", "launch": "killed", "rank": 1, "left": ["step-00000024.part"]}
    yield {"kind": "launched", "launch": "killed", "elapsed_s": 2.0}
    yield from _each(_resumed("resumed"))
    yield from _steps("resumed", SAVES[-1], gpu=gpu)
    yield from _done("resumed")
    yield {"kind": "launched", "launch": "resumed", "elapsed_s": 3.1}
    yield {"kind": "end", "elapsed_s": 11.4}


def text(*, gpu: bool = False) -> str:
    """The same as the payload writes it."""
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines(gpu=gpu))


def together() -> str:
    """A run over two hosts of two ranks each, as the first of them tells it."""
    begin, *rest = lines()
    plan = {**begin["plan"], "hosts": ["a", "b"], "resume": False}
    met = {"kind": "met", "preflight": "micro-train/1", "host": "a"}
    told = [met, {**begin, "plan": plan}, *(one for one in rest if _is_whole(one))]
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in told)


def _is_whole(line: _Line) -> bool:
    return line.get("launch", "whole") == "whole" and not line["kind"].startswith("sav")


def slowed(part: str, seconds: float, *, rank: int | None = None) -> str:
    """A run on GPUs one part of whose steps is longer, on one rank or on all."""
    told = [
        {**one, "seconds": {**one["seconds"], part: seconds}}
        if one["kind"] == "step" and rank in (None, one["rank"])
        else one
        for one in lines(gpu=True)
    ]
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in told)


def swept() -> str:
    """A sweep over 1, 2 and 4 GPUs, and one of the loader, as the payload writes them."""
    begin = _begin(gpu=True)
    begin["plan"] |= {"sweep": {"scaling": [], "loader": []}, "ranks": 4}
    told = [begin]
    for at, (count, rate) in enumerate(((1, 1000.0), (2, 1940.0), (4, 3760.0))):
        name = f"{count} device{'' if count == 1 else 's'}"
        told += _rounds("scaling", name, {"devices": count}, rate, base=count == 4, wait=2.0 + at)
    for workers, rate in ((0, 800.0), (1, 1000.0), (2, 1200.0)):
        values = {"workers": workers, "prefetch": 2 if workers else 0, "pin": True}
        name = f"workers {workers}, pinned"
        told += _rounds("loader", name, values, rate, base=workers == 1, wait=5.0 - workers)
    told.append({"kind": "end", "elapsed_s": 60.0})
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in told)


def _rounds(
    axis: str, name: str, values: _Line, rate: float, *, base: bool, wait: float
) -> Iterator[_Line]:
    """Three rounds, of which the first is half a percent slower."""
    for number in range(3):
        each = rate * (0.995 if number == 0 else 1.0)
        yield {
            "kind": "setting", "axis": axis, "setting": name, "values": values, "round": number,
            **({"base": True} if base else {}), "steps": 15, "step_s": 0.1, "tokens_per_s": each,
            "data_percent": wait, "loss": 9.1, "loss_noise": 0.02, "peak_bytes": 4 * _GIB,
            "host_bytes": (1 + int(values.get("workers", 0))) * _GIB, "shm_bytes": 4096,
            "shares": {"data": wait, "communication": 3.0 * wait, "forward": 100.0 - 4.0 * wait},
        }  # fmt: skip


def _begin(*, gpu: bool) -> _Line:
    device = {"name": "NVIDIA H100 80GB HBM3", "capability": "9.0"}
    return {
        "kind": "begin", "preflight": "micro-train/1",
        "plan": {
            "preset": "gpu-small" if gpu else "cpu-tiny", "device": "cuda" if gpu else "cpu",
            "ranks": RANKS, "sharding": "ddp", "seed": 1, "threads": 1, "compiled": gpu,
            "resume": True, "hosts": [], "inject": {},
        },
        "shape": {
            "name": "gpu-small" if gpu else "cpu-tiny", "vocabulary": 256, "length": 128,
            "batch": 8, "accumulation": 1, "steps": STEPS, "precision": "fp16" if gpu else "fp32",
        },
        "flops_per_token": 2.0e9 if gpu else 2.0e6, "parameters": 400000, "floor_nats": 1.3862943,
        "torch": "2.9.0", "python": "3.11.7", "cores": 16, "devices": [device] * 2 if gpu else [],
    }  # fmt: skip


def _proofs(*, gpu: bool) -> Iterator[_Line]:
    apart = {"loss": 2e-8, "gradient": 2e-7, "norm_ratio": 1.0}
    for name in ("accumulation", "attention", *(("compile",) if gpu else ())):
        yield {"name": name, **apart}
    yield {"name": "repeated", "hashes": [_HASHES, _HASHES]}
    yield {"name": "membership", "trained": 21, "missing": 0, "foreign": 0, "repeated": 0}


def _steps(launch: str, first: int, *, gpu: bool) -> Iterator[_Line]:
    for step in range(first, STEPS):
        loss = 1.45 + 4.1 * 0.8**step
        told = {"launch": launch, "kind": "step", "step": step, "loss": loss, "norm": 0.8,
                "learning_rate": 0.001, "scale": 65536.0 if gpu else 1.0, "skipped": False,
                "samples": [step], "seconds": _SECONDS}  # fmt: skip
        yield from _each(told)
        at = step + 1
        if at in SAVES and launch == "whole":
            yield from _each({"launch": launch, "kind": "saved", "step_at": at, "digest": f"d{at}"})
        if not at % 10:
            yield from _each(
                {"launch": launch, "kind": "replica", "step_at": at, "digest": f"r{at}"}
            )
            norms = {"embedding": 0.2, "blocks.0": 0.5}
            yield from _each({"launch": launch, "kind": "norms", "step": at, "layers": norms})
        if gpu and launch == "whole":
            yield {"launch": launch, "kind": "device", "at_s": float(step), "local_rank": 0,
                   "power_w": 650.0, "sm_clock_mhz": 1980, "sm_percent": 99,
                   "memory_percent": 60}  # fmt: skip


def _memory(*, gpu: bool) -> _Line:
    told: _Line = {
        "kind": "memory", "weights_bytes": _GIB // 4, "gradients_bytes": _GIB // 4,
        "optimizer_bytes": _GIB // 2, "host_peak_bytes": 2 * _GIB,
    }  # fmt: skip
    if gpu:
        told |= {
            "activations_bytes": 3 * _GIB, "peak_bytes": 4 * _GIB, "reserved_peak_bytes": 5 * _GIB,
            "inactive_split_peak_bytes": _GIB // 2, "retries": 0, "device_used_bytes": 6 * _GIB,
            "device_total_bytes": 80 * _GIB,
        }  # fmt: skip
    return told


def _resumed(launch: str) -> _Line:
    at = SAVES[-1]
    return {
        "launch": launch, "kind": "resumed", "from": f"step-{at:08d}", "step_from": at, "wrong": [],
        "digest": f"d{at}", "elapsed_s": 0.8,
    }  # fmt: skip


def _done(launch: str) -> Iterator[_Line]:
    return _each({"launch": launch, "kind": "done", "digest": "e32", "failed": "",
                  "staged_s": 0.01, "written_s": [0.2]})  # fmt: skip


def _each(line: _Line) -> Iterator[_Line]:
    for rank in range(RANKS):
        yield {**line, "rank": rank}
