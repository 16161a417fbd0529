"""Lines about a file of data that was decoded, with figures that are made up."""

from __future__ import annotations

import json
from typing import Any


def decoder(by: str = "zlib of Python 3.12.3", **over: Any) -> dict[str, Any]:
    """500 MB/s of a core come out, and 200 go in."""
    return {"kind": "decoder", "by": by, "taken_bytes": 80_000_000, "done_bytes": 200_000_000,
            "cpu_s": 0.4, "ended": True, "trouble": "", "enough": True} | over  # fmt: skip


def shard(*decoders: dict[str, Any], demand_mbps: float | None = 800.0, **first: Any) -> str:
    """A file of 80 MB on a host with 8 processors."""
    begin = {"preflight": "shard/1", "kind": "begin", "plan": {"demand_mbps": demand_mbps},
             "path": "/data/train-0001.tar.gz", "format": "gzip", "size_bytes": 80_000_000,
             "sample_bytes": 64 << 20, "fs": "nfs4", "shared": True,
             "processors": 8} | first  # fmt: skip
    lines = [begin, *(decoders or (decoder(),)), {"kind": "end"}]
    return "".join(f"{json.dumps(one)}\n" for one in lines)
