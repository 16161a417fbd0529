"""Lines of a bench on GPUs, as the bundled engine tells them; figures and hosts are made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.nccl_lines import Job

Line = dict[str, Any]
H100 = "NVIDIA H100 80GB HBM3"
GIB = 1 << 30


def logged(job: Job, host: int) -> list[Line]:
    """What NCCL wrote on one host of a job, as the bench tells it."""
    name = f"node-{host + 1:02}:"
    return [{"kind": "nccl_log", "log": line, "of": name[:-1]}
            for line in job.text().splitlines() if line.startswith(name)]  # fmt: skip


def on_gpus(
    busbw: float, log: Sequence[Line] = (), hosts: Sequence[str] = ("node-01", "node-02"),
    **begin: Any,
) -> str:  # fmt: skip
    """An all_reduce of eight GPUs on each of the hosts; the first of them tells it."""
    world = 8 * len(hosts)
    plan = {
        "device": "cuda",
        "ranks": 8,
        "hosts": list(hosts),
        "master": "10.0.0.1",
        "locate": False,
    }
    time_us = 8 * GIB * 2 * (world - 1) / world / busbw / 1e3
    lines: list[Line] = [
        {"preflight": "nccl-bench/1", "kind": "begin", "plan": plan, "world": world,
         "torch": "2.9.1+cu130", "backend": "nccl", "nccl": "2.27.7", "environment": {},
         "host": hosts[0], **begin},
        *({"kind": "started", "device": H100, "rank": rank} for rank in range(8)),
        {"kind": "size", "collective": "all_reduce", "bytes": 8 * GIB, "asked_bytes": 8 * GIB,
         "dtype": "float32", "count": 2 * GIB, "wrong": 0, "n": 20, "median_us": time_us,
         "mad_us": 1.0, "low_us": time_us, "high_us": time_us, "rank": 0},
        *log,
        {"kind": "end", "elapsed_s": 60.0},
    ]  # fmt: skip
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines)


def inside(*culprits: Line, **counts: int) -> Line:
    """What was looked at within the host of a bench."""
    tried = [{"test": at, "what": f"GPUs 0 and {at}", "among": ["node-01"], "bytes": 1 << 28,
              "busbw_gbps": [100.0 * at]} for at in (1, 2)]  # fmt: skip
    return {"kind": "inside", "of": "node-01", "counts": counts, "tried": tried,
            "culprits": list(culprits)}  # fmt: skip


#: What checks are seen to pass and to fail on.
BASES = {
    "bench-gpus": {"nccl-bench": on_gpus(450.0)},
    "inside": {"nccl-bench": on_gpus(450.0, [inside(gpu=9, fabric=6, nic=16)])},
}
