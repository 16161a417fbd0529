"""What the bundled bench of storage tells of loaders: on NFS that gives 1 GB/s."""

from __future__ import annotations

import json
from typing import Any

BEGIN = {
    "preflight": "io-bench/1", "kind": "begin", "plan": {"demand_mbps": 400.0}, "dir": "/data",
    "size_bytes": 1 << 30, "mount": "/data", "fs": "nfs4", "source": "filer:/data",
    "shared": True, "memory": False,
}  # fmt: skip


def row(part: str, mbps: float = 1000.0, **over: Any) -> dict[str, Any]:
    """Windows of 128 KiB by 8 workers, for two seconds."""
    done = int(2e6 * mbps) >> 17 << 17
    return {
        "kind": "pattern", "name": "dataloader", "part": part, "way": "read", "processes": 8,
        "block_bytes": 131072, "done_bytes": done, "count": done >> 17, "elapsed_s": 2.0,
        "us": {"mean": 1049.0, "p50": 900.0, "p99": 4100.0, "p999": 9000.0, "max": 12000.0},
        "each_mbps": [mbps / 8] * 8, "through": "device", "brought_bytes": done, "trouble": "",
    } | over  # fmt: skip


def text(*rows: dict[str, Any], **begin: Any) -> str:
    """The lines, as they are written."""
    told = rows or (row("read"), row("mmap", 800.0), row("read, cached", 9000.0))
    lines = [BEGIN | begin, *told, {"kind": "end", "elapsed_s": 9.0}]
    return "".join(json.dumps(one) + "\n" for one in lines)
