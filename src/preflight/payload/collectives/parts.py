"""The parts of a bench, in their order. Each looks itself whether the plan and the hosts ask for
it, and tells what it found."""

from __future__ import annotations

from ..wire.part import wire
from .alike import alike
from .bench import Bench
from .counting import after, before
from .inside import inside
from .lasting import lasting
from .settings import settings
from .slow import slow

#: All sizes of all collectives.
_SIZES_S = 1800.0


def parts(bench: Bench) -> None:
    """All of them."""
    for part in (alike, before, _sizes, slow, inside, wire, settings, lasting, after):
        part(bench)


def _sizes(bench: Bench) -> None:
    """Every collective in every size, over all hosts. Where one of them is lost before anything was
    measured the others are."""
    many, measured = 0, False
    while len(bench.hosts) not in (many, 1 if bench.plan.hosts else 0) and not measured:
        many = len(bench.hosts)
        for _, line in bench.heard([bench.order("sizes", bench.hosts, _SIZES_S, log=True)]):
            measured = measured or line["kind"] == "size"
            bench.tell(line)
