"""What a bench tells of the links of one of three hosts, with figures that are made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from preflight.payload.wire.ends import ends
from tests.collective_text import perftest

Line = dict[str, Any]
Gbits = Callable[[str, str, int], float]
HOSTS = ("h1", "h2", "h3")
_PAIRS = [(a, b) for a in HOSTS for b in HOSTS if a != b]


def written(host: str, tests: list[Line], **site: Any) -> str:
    """All that the host is told."""
    begin = {"preflight": "nccl-bench/1", "kind": "begin", "world": 3, "torch": "2.9.1",
             "backend": "gloo",
             "plan": {"hosts": list(HOSTS), "ranks": 1, "wire": "auto"}}  # fmt: skip
    about = {"kind": "wire_site", "nics": [], "interface": "eth0", "physical": True,
             "mtu_bytes": 9000, "rates_gbits": [100.0], "loopback_gbits": 60.0, "tool": "tcp",
             "why": "", "asked": "auto", "of": host, **site}  # fmt: skip
    mine = [one for one in tests if host in (one["from"], one["to"])]
    compared = [one for one in ends(tests) if one["of"] == host]
    lines = [begin, about, *mine, *compared, {"kind": "end"}]
    return "".join(f"{json.dumps(one)}\n" for one in lines)


def tcp(
    gbits: Gbits = lambda *_: 97.0, host: str = "h1", *, together: float = 1.0,
    again: Callable[[str, str], int] = lambda *_: 0,
    busy: Callable[[str, int], float] = lambda *_: 0.2, **site: Any,
) -> str:  # fmt: skip
    """`together`: the share of it that is left where both ways are used; `busy`: by the sender and
    the number of connections; `again`: packets of 100,000 by both ends."""
    tests = [
        {"kind": "wire", "tool": "tcp", "from": a, "to": b, "rail": 0, "flows": flows,
         "together": both, "gbits": [rate] * 5, "median_gbits": rate, "busy": busy(a, flows),
         "sent": 100_000, "again": again(a, b)}
        for a, b in _PAIRS for flows in (1, 8) for both in (False, True)
        for rate in [gbits(a, b, flows) * (together if both else 1.0)]
    ]  # fmt: skip
    return written(host, tests, **site)


def rdma(gbits: Gbits = lambda *_: 392.0, host: str = "h1", *, together: float = 1.0) -> str:
    """Two adapters of 400 Gb/s, in loopback and with those of the others."""
    nics = [{"nic": f"mlx5_{rail}", "rate_gbits": 400.0, "layer": "InfiniBand", "gid": None}
            for rail in (0, 1)]  # fmt: skip
    tests = []
    for a, b in [*_PAIRS, *((one, one) for one in HOSTS)]:
        for rail, flows, all_ in [(0, 1, False), (1, 1, False), (0, 1, True), (1, 1, True)]:
            rate = gbits(a, b, flows) * (together if all_ else 1.0)
            text = perftest(rate, device=f"mlx5_{rail}")
            tests.append({
                "kind": "wire", "tool": "ib_write_bw", "from": a, "to": b, "rail": rail,
                "nic": f"mlx5_{rail}", "flows": flows, "together": all_, "memory": "host",
                "rate_gbits": 400.0, "gid": None, "median_gbits": rate,
                **({"text": text} if a == host else {}),
            })  # fmt: skip
    return written(host, tests, tool="rdma", nics=nics)
