"""What the bundled bench of an object store tells: lines of payload/objects."""

from __future__ import annotations

import json
from typing import Any

URL = "s3://training/runs/me"


def lines(requests: int = 1500, **changed: dict[str, Any]) -> list[dict[str, Any]]:
    """A sound store, asked so often each way. `changed`: kind -> fields that are other ones; put
    and get are the ways."""
    told: list[dict[str, Any]] = [
        {"preflight": "objects/1", "kind": "begin", "library": "s3fs 2026.9.0", "protocol": "s3",
         "plan": {"url": URL, "size_bytes": 1 << 28, "seconds": 30.0},
         "folder": "training/runs/me/.preflight-objects-1790000000.0.0.1.1"},
        {"kind": "reached", "ok": True, "left": 0, "text": ""},
        *(_way(op, requests) for op in ("put", "get")),
        *(_way(op, 48, size_bytes=2 << 20, elapsed_s=1.0) for op in ("put", "get")),
        {"kind": "listed", "put": 1548, "missing": 0, "text": "", "elapsed_s": 0.3},
        {"kind": "parts", "parts": 4, "part_bytes": 8 << 20, "ok": True, "text": "",
         "put_s": 0.4, "get_s": 0.2},
        {"kind": "content", "read": 1549, "wrong": 0},
        {"kind": "exchanges", "seen": 3116, "troubled": 0, "throttled": 0, "said": "",
         "statuses": {"200": 1560, "206": 1556}},
        {"kind": "removed", "left": 0, "text": ""},
        {"kind": "end", "elapsed_s": 21.5},
    ]  # fmt: skip
    return [{**one, **changed.get(one.get("op", one["kind"]), {})} for one in told]


def _way(op: str, requests: int, **fields: Any) -> dict[str, Any]:
    told = {"kind": "way", "op": op, "size_bytes": 16 << 10, "at_once": 16, "asked": requests,
            "failed": 0, "hung": 0, "said": [], "elapsed_s": 4.0,
            "taken_us": [20_000 + 10 * one for one in range(requests)]}  # fmt: skip
    return {**told, **fields}


def text(requests: int = 1500, **changed: dict[str, Any]) -> str:
    """The same as it is written."""
    return "".join(json.dumps(one) + "\n" for one in lines(requests, **changed))
