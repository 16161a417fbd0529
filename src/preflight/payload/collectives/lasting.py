"""One collective in one size for as long as the user asks: what it was in each of some windows."""

from __future__ import annotations

from .bench import TROUBLE, Bench
from .orders import START_S
from .slow import BYTES

#: However long it takes; and no window is shorter.
WINDOWS, _LEAST_S = 120, 0.1
#: Beyond its time: the last window, ranks that end.
_BEYOND_S = 60.0


def lasting(bench: Bench) -> None:
    """Nothing where no time was asked for."""
    plan, hosts = bench.plan, bench.hosts
    if not plan.lasting_s or (plan.hosts and len(hosts) < 2):
        return
    about = {
        "collective": (plan.collectives or ["all_reduce"])[0],
        "bytes": plan.end_bytes or BYTES[plan.device], "lasting_s": plan.lasting_s,
        "window_s": max(_LEAST_S, plan.lasting_s / WINDOWS),
    }  # fmt: skip
    bench.tell({"kind": "lasting", **about, "ranks": plan.ranks * max(1, len(hosts))})
    order = bench.order("repeating", hosts, plan.lasting_s + START_S + _BEYOND_S, **about)
    ended = True
    for _, line in bench.heard([order]):
        ended = ended and line["kind"] not in TROUBLE
        if line["kind"] not in ("step", "joined"):
            bench.tell(line)
    bench.tell({"kind": "lasted", "ended": ended})
