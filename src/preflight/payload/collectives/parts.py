"""The parts of a bench, in their order. Each looks itself whether the plan and the hosts ask for
it, and tells what it found."""

from __future__ import annotations

from ..wire.part import wire
from .alike import alike
from .bench import Bench
from .slow import slow

#: All sizes of all collectives.
_SIZES_S = 1800.0


def parts(bench: Bench) -> None:
    """All of them."""
    for part in (alike, _sizes, slow, wire):
        part(bench)


def _sizes(bench: Bench) -> None:
    """Every collective in every size, over all hosts."""
    if bench.plan.hosts and len(bench.hosts) < 2:
        return
    for _, line in bench.heard([bench.order("sizes", bench.hosts, _SIZES_S, log=True)]):
        bench.tell(line)
