"""Traces as a profiler would write them, built event by event. Times are microseconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from preflight.facts.traces import RankTrace, TraceStep
from preflight.traces import kineto

MAIN, AUTOGRAD = 100, 101
_CORRELATIONS = count(1)
Json = dict[str, Any]
#: Events, or lists of them where one thing is several.
Events = Sequence[Any]


def span(
    name: str, start: float, us: float, cat: str = "user_annotation", tid: int = MAIN,
    args: Json | None = None,
) -> Json:  # fmt: skip
    """Anything on the host."""
    return {"ph": "X", "cat": cat, "name": name, "pid": MAIN, "tid": tid, "ts": start, "dur": us,
            "args": args or {}}  # fmt: skip


def step(number: int, start: float, us: float) -> Json:
    return span(f"ProfilerStep#{number}", start, us)


def on_device(
    name: str, start: float, us: float, cat: str = "kernel", stream: int = 7, device: int = 0,
    args: Json | None = None,
) -> Json:  # fmt: skip
    return {"ph": "X", "cat": cat, "name": name, "pid": device, "tid": stream, "ts": start,
            "dur": us, "args": {"device": device, "stream": stream, **(args or {})}}  # fmt: skip


def launched(
    name: str, at: float, start: float, us: float, call_us: float = 5.0, stream: int = 7,
    device: int = 0, args: Json | None = None,
) -> list[Json]:  # fmt: skip
    """A kernel and the call that launched it."""
    call: Json = {"correlation": next(_CORRELATIONS)}
    return [
        span("cudaLaunchKernel", at, call_us, "cuda_runtime", args=call),
        on_device(name, start, us, "kernel", stream, device, {**call, **(args or {})}),
    ]


def copied(kind: str, at: float, start: float, us: float, size: int) -> list[Json]:
    """A copy, `kind` as in "HtoD (Pageable -> Device)"."""
    call: Json = {"correlation": next(_CORRELATIONS)}
    return [
        span("cudaMemcpyAsync", at, 5, "cuda_runtime", args=call),
        on_device(f"Memcpy {kind}", start, us, "gpu_memcpy", args={**call, "bytes": size}),
    ]


def flat(events: Events) -> list[Json]:
    return [one for some in events for one in ([some] if isinstance(some, dict) else some)]


def document(events: Events, **more: Any) -> Json:
    info = {"backend": "nccl", "rank": 3, "world_size": 8}
    return {"schemaVersion": 1, "distributedInfo": info, **more, "traceEvents": flat(events)}


def written(path: Path, events: Events, **more: Any) -> Path:
    file = path / "trace.json"
    file.write_text(json.dumps(document(events, **more)))
    return file


def read_bytes(path: Path, text: bytes, name: str = "trace.json") -> RankTrace:
    file = path / name
    file.write_bytes(text)
    return kineto.read(file, lambda told: None)


def trace_of(path: Path, events: Events, **more: Any) -> RankTrace:
    return kineto.read(written(path, events, **more), lambda told: None)


def only_step(path: Path, events: Events) -> TraceStep:
    (found,) = trace_of(path, events).steps
    return found


def trace_texts() -> tuple[str, ...]:
    """Short traces with something of everything."""
    reduce = {"Collective name": "allreduce", "In msg nelems": 10, "Process Group Name": "0"}
    events = flat([
        step(1, 0, 500), span("enumerate(DataLoader)#_SingleProcessDataLoaderIter", 0, 100),
        launched("gemm", 110, 120, 50), copied("HtoD (Pageable -> Device)", 150, 160, 20, 64),
        span("aten::mm", 100, 50, "cpu_op"), span("cudaMalloc", 200, 50, "cuda_runtime"),
        launched("ncclDevKernel_AllReduce_Sum_f32", 260, 270, 100, args=reduce),
        span("Optimizer.step#SGD.step", 400, 50), step(2, 500, 300),
        {"ph": "B", "name": "forward", "pid": 1, "tid": 1, "ts": 510},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 600}, span("gloo:all_reduce", 610, 50, tid=AUTOGRAD),
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    ])  # fmt: skip
    whole = document(events, displayTimeUnit="ms")
    return (
        json.dumps(whole, indent=1), json.dumps(whole, separators=(",", ":")), json.dumps(events),
        json.dumps(whole).replace('"dur": 50', '"dur": 50, "occupancy": N/A'),
        json.dumps(whole)[:1500], json.dumps({"traceEvents": []}),
    )  # fmt: skip


def timeline_texts() -> tuple[str, ...]:
    """Two steps of two workers, with and without names of their threads."""
    operations = [
        {"name": kind, "cat": kind, "ph": "X", "pid": pid, "tid": pid, "ts": 10.0 * number,
         "dur": 9.5, "args": {"step": number // 4, "model_chunk": 0, "mb_id": number % 4}}
        for number in range(8)
        for pid in range(2)
        for kind in ("forward-compute", "backward-send")
    ]  # fmt: skip
    threads = [
        {"name": "thread_name", "ph": "M", "pid": pid, "tid": pid,
         "args": {"name": f"PP rank {pid}, TP rank 0, compute"}}
        for pid in range(2)
    ]  # fmt: skip
    return json.dumps([*operations, *threads]), json.dumps({"traceEvents": operations}, indent=1)
