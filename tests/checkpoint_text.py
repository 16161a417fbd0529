"""What the bundled bench of storage tells of a checkpoint: eight ranks of a sound host, on an array
of NVMe disks (payload/storage/checkpoint.py)."""

from __future__ import annotations

import json
from typing import Any

_BEGIN = {"preflight": "io-bench/1", "kind": "begin", "dir": "/raid/run", "mount": "/raid",
          "fs": "xfs", "source": "/dev/md0", "memory": False,
          "plan": {"patterns": ["checkpoint"]}}  # fmt: skip
_BYTES, _BLOCK, _RANKS = 2 << 30, 4 << 20, 8


def _row(part: str, way: str, elapsed_s: float, **more: Any) -> dict[str, Any]:
    mbps = _BYTES / elapsed_s / 1e6
    return {
        "kind": "pattern", "name": "checkpoint", "trouble": "", "part": part, "way": way,
        "processes": _RANKS, "block_bytes": _BLOCK, "done_bytes": _BYTES, "elapsed_s": elapsed_s,
        "count": _BYTES // _BLOCK, "us": {"mean": 9000.0, "p50": 8000.0, "p99": 20000.0,
                                          "p999": 31000.0, "max": 31000.0},
        "each_mbps": [mbps / _RANKS] * _RANKS, "through": "device", **more,
    }  # fmt: skip


def _save(part: str, elapsed_s: float, stall_s: float, **more: Any) -> dict[str, Any]:
    return _row(part, "write", elapsed_s, durable_s=elapsed_s, stall_s=stall_s, sync_s=0.3,
                reached_percent=100.2, cached_bytes=_BYTES, read_back="device", wrong=0,
                compared=_BYTES // _BLOCK, **more)  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """All of them."""
    return [
        _save("save", 0.8, 0.4),
        _save("save, direct", 0.4, 0.4),
        _save("save, one file", 0.9, 0.5),
        _row("restore", "read", 0.5),
        _save("save while reading", 1.1, 0.6, reader_alone_mbps=480.0, reader_mbps=160.0,
              reader_kept_percent=33.3, reader_starved_s=0.0),
    ]  # fmt: skip


def text(told: list[dict[str, Any]] | None = None) -> str:
    """As the payload prints it."""
    lines = [_BEGIN, *(rows() if told is None else told), {"kind": "end", "elapsed_s": 9.0}]
    return "".join(json.dumps(one) + "\n" for one in lines)
