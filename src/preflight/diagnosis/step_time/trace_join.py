"""Which collectives of several ranks are one. Traces without sequence numbers are joined by order;
where a trace begins in the middle of one that another has not, by how far their ends lie apart:
all ranks leave a collective nearly together, so that the gaps between ends are the same for all,
whatever their clocks say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from preflight.diagnosis.step_time.trace_rank import Steps
from preflight.facts.traces import Collective

#: Collectives that one rank's trace may have more at its beginning; pairs of gaps to judge by.
_MOST_SHIFT, _LEAST_GAPS = 4, 3
#: Another order must fit so much better than the plain one.
_BETTER = 0.5


def joined_calls(ranks: dict[int, Steps]) -> Iterator[dict[int, Collective]]:
    """Each collective with the call of every rank that has it, of the steps that count."""
    numbered: dict[tuple[object, ...], dict[int, Collective]] = {}
    counted: dict[tuple[str, str], dict[int, list[Collective]]] = {}
    numbers = {rank: {step.number for step in one.steps} for rank, one in ranks.items()}
    for rank, one in ranks.items():
        for call in one.trace.collectives:
            if call.counted:
                mine = counted.setdefault((call.group, call.name), {})
                mine.setdefault(rank, []).append(call)
            elif call.step in numbers[rank]:
                numbered.setdefault((call.group, call.seq, call.name), {})[rank] = call
    yield from numbered.values()
    for lists in counted.values():
        for calls in _in_order(lists):
            kept = {rank: call for rank, call in calls.items() if call.step in numbers[rank]}
            if kept:
                yield kept


def _in_order(lists: dict[int, list[Collective]]) -> Iterator[dict[int, Collective]]:
    """By their place, of each rank shifted to fit the one that has most of them."""
    for calls in lists.values():
        calls.sort(key=_end)
    first = max(lists, key=lambda rank: len(lists[rank]))
    gaps = _gaps(lists[first])
    shifts = {rank: _shift(gaps, _gaps(calls)) for rank, calls in lists.items()}
    for at in range(-_MOST_SHIFT, len(lists[first]) + _MOST_SHIFT):
        found = {
            rank: calls[at - shifts[rank]] for rank, calls in lists.items()
            if 0 <= at - shifts[rank] < len(calls)
        }  # fmt: skip
        if found:
            yield found


def _end(call: Collective) -> float:
    return call.start_us + call.duration_us


def _gaps(calls: Sequence[Collective]) -> list[float]:
    return [_end(two) - _end(one) for one, two in pairwise(calls)]


def _shift(gaps: Sequence[float], mine: Sequence[float]) -> int:
    """By how many places `mine` begins later; 0 unless another place fits much better."""

    def misfit(shift: int) -> float:
        pairs = [abs(gaps[at + shift] - one) for at, one in enumerate(mine)
                 if 0 <= at + shift < len(gaps)]  # fmt: skip
        return median(pairs) if len(pairs) >= _LEAST_GAPS else float("inf")

    best = min(range(-_MOST_SHIFT, _MOST_SHIFT + 1), key=lambda one: (misfit(one), abs(one)))
    return best if misfit(best) < _BETTER * misfit(0) else 0
