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
