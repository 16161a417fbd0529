"""Who owns the time in which the device has nothing to do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec import Struct

from preflight.facts.traces import IDLE_OWNERS
from preflight.traces.gather import Activities, Gathered
from preflight.traces.spans import Span, clipped, merged, minus, total

#: Of what the host is known to do in a gap, the first that covers it owns it.
_COVERING = (("loader", "loader"), ("save", "save"), ("gc", "gc"), ("compile", "compile"),
             ("alloc", "allocator"), ("communication", "communication"))  # fmt: skip
#: A gap with work launched is a switch between kernels up to here; what else can hold a device for
#: longer a trace does not show.
_KERNEL_GAP_US = 100.0
#: How far the clocks of host and device may differ.
_CLOCKS_US = 20.0


class Hosts(Struct):
    """What the host did, by kind, over the whole trace; and its operators, the main thread's."""

    kinds: Mapping[str, Sequence[Span]]
    operators: Sequence[Span]

    @classmethod
    def of(cls, gathered: Gathered) -> Hosts:
        kinds = {kind: spans.merged() for kind, spans in gathered.spans.items()}
        threads = {tid: spans.merged() for tid, spans in gathered.operators.items()}
        if gathered.step_tid in threads:
            return cls(kinds, threads[gathered.step_tid])
        return cls(kinds, merged(span for spans in threads.values() for span in spans))

    def within(self, kind: str, low: float, high: float) -> list[Span]:
        return clipped(self.kinds.get(kind, ()), low, high)


class Gap(Struct, frozen=True):
    """Idle time before `launch`, the call for the work that ends it; None where there is no more
    work in the step, NaN where its call was not recorded."""

    start: float
    end: float
    launch: float | None


def owners(
    rows: Activities, mine: Sequence[int], idle: Sequence[Span], hosts: Hosts
) -> dict[str, float]:
    """Microseconds by IDLE_OWNERS; together all the idle time. `mine` in order of their begin."""
    found = dict.fromkeys(IDLE_OWNERS, 0.0)
    if not idle:
        return {}
    low, high = idle[0][0], idle[-1][1]
    left = list(idle)
    for kind, owner in _COVERING:
        covering = hosts.within(kind, low, high)
        if covering:
            before = total(left)
            left = minus(left, covering)
            found[owner] += before - total(left)
    gaps = _gaps(rows, mine, idle)
    starts = [gap.start for gap in gaps]
    syncs = hosts.within("sync", low - 1e6, high)
    for start, end in left:
        gap = gaps[bisect_right(starts, start) - 1]
        found[_owner(gap, syncs)] += end - start
    return {owner: us for owner, us in found.items() if us > 0}


def _gaps(rows: Activities, mine: Sequence[int], idle: Sequence[Span]) -> list[Gap]:
    """Each idle span with the call that ended it."""
    begun = [rows.start[row] for row in mine]
    found = []
    for start, end in idle:
        at = bisect_right(begun, end) - 1
        ends = at >= 0 and begun[at] >= end
        found.append(Gap(start, end, rows.launch[mine[at]] if ends else None))
    return found


def _owner(gap: Gap, syncs: Sequence[Span]) -> str:
    """The host, where the next work was not yet launched when the last ended; for its own reasons,
    or because it had waited for the device."""
    if gap.launch is not None and gap.launch != gap.launch:
        return "unknown"
    if gap.launch is None or gap.launch > gap.start:
        at = bisect_right(syncs, (gap.start + _CLOCKS_US, float("inf"))) - 1
        waited = at >= 0 and gap.start - _CLOCKS_US <= syncs[at][1] <= gap.end
        return "sync" if waited else "host"
    return "kernel-gap" if gap.end - gap.start <= _KERNEL_GAP_US else "unknown"
