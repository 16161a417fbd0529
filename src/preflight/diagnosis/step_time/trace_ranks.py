"""Traces of several ranks: who comes last to collectives, without any clock in common.

All ranks leave a collective nearly together, so who spends least time in it came last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct, field

from preflight.diagnosis.reading import Confidence, Lack, Sign
from preflight.diagnosis.series.luck import luck
from preflight.diagnosis.step_time.trace_join import joined_calls
from preflight.diagnosis.step_time.trace_rank import Steps, idle
from preflight.diagnosis.wording import duration
from preflight.facts.traces import Collective
from preflight.model import Evidence

#: One rank must be last in so much of what is waited, and by its own work so much slower.
_OFTEN, _SLOWER = 0.60, 1.10
#: Chance that a rank is named that is no slower than others.
_LUCK = 0.02
#: Collectives in which nobody waits longer than this part of a step tell nothing.
_LEAST_WAIT = 0.002
#: Of the difference in own time, what one part of the step must explain to be called the cause.
_EXPLAINS = 0.5
#: Kernels that all take longer by one factor: of so many names, within so much of the middle.
_ALIKE_NAMES, _ALIKE = 5, 0.15


class Arrivals(Struct):
    """Collectives joined over ranks. `last`: seconds that others waited for a rank; `times`: how
    often it was the last; `waited`: seconds that each rank waited, of all its steps."""

    joined: int = 0
    last: dict[int, float] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    #: Step -> rank -> seconds that others waited for it there.
    by_step: dict[int, dict[int, float]] = field(default_factory=dict)
    waited: dict[int, float] = field(default_factory=dict)
    bytes: int = 0
    counted: bool = False


def arrivals(ranks: dict[int, Steps]) -> Arrivals:
    """Joined by group, number and name; where traces have no numbers, by their order."""
    found = Arrivals()
    wall = median(one.wall_us / len(one.steps) for one in ranks.values())
    for calls in joined_calls(ranks):
        if len(calls) > 1:
            found.counted |= any(call.counted for call in calls.values())
            _add(found, calls, wall)
    return found


def _add(found: Arrivals, calls: dict[int, Collective], wall_us: float) -> None:
    shortest = min(calls, key=lambda rank: calls[rank].duration_us)
    least = calls[shortest].duration_us
    longest = max(one.duration_us for one in calls.values())
    found.joined += 1
    for rank, one in calls.items():
        found.waited[rank] = found.waited.get(rank, 0.0) + (one.duration_us - least) / 1e6
    if longest - least < _LEAST_WAIT * wall_us:
        return
    found.last[shortest] = found.last.get(shortest, 0.0) + (longest - least) / 1e6
    found.times[shortest] = found.times.get(shortest, 0) + 1
    step = found.by_step.setdefault(calls[shortest].step, {})
    step[shortest] = step.get(shortest, 0.0) + (longest - least) / 1e6


def between_signs(ranks: dict[int, Steps], lacks: list[Lack]) -> Iterator[Sign]:
    """A slow rank and why it is, or work that is uneven, or communication itself. What the traces
    are too short for is added to `lacks`."""
    joined = arrivals(ranks)
    if not joined.joined:
        return
    own = {rank: _own_s(one, joined.waited.get(rank, 0.0)) for rank, one in ranks.items()}
    yield from _transfer(ranks, joined)
    culprit = _culprit(joined, own)
    steps, last = len(joined.by_step), _steps_as_last(joined, culprit)
    if culprit is not None and luck(last, steps, len(own)) <= _LUCK:
        yield from _named(ranks, joined, own, culprit)
    elif culprit is None or last < steps:
        yield from _uneven(ranks, joined)
    else:
        text = (
            f"rank {culprit} comes last to most collectives and works longer, but in "
            f"{steps} steps that may be luck"
        )
        lacks.append(Lack(("straggler", "imbalance"), text, "ten steps and more of each rank: "
                          "schedule(wait=10, warmup=2, active=10)"))  # fmt: skip


def _own_s(one: Steps, waited_s: float) -> float:
    """Seconds of a step that a rank does not wait for others."""
    # Collectives may lie beside each other: their waits together are no more than their union.
    waited = min(waited_s / len(one.steps), one.mean(lambda s: s.comm_us))
    return max(1e-9, one.mean(lambda s: s.wall_us) - waited)


def _culprit(joined: Arrivals, own: dict[int, float]) -> int | None:
    """The rank that others wait for most, where its own work is longer; whether that is luck is
    another question."""
    total = sum(joined.last.values())
    if not total or sum(joined.times.values()) < 2:
        return None
    rank = max(joined.last, key=lambda one: joined.last[one])
    others = median(value for other, value in own.items() if other != rank)
    is_slower = own[rank] >= _SLOWER * others
    return rank if joined.last[rank] > _OFTEN * total and is_slower else None


def _steps_as_last(joined: Arrivals, rank: int | None) -> int:
    """Steps in which others waited for this rank most: collectives of one step hang together, so
    that steps are counted."""
    return sum(1 for one in joined.by_step.values() if max(one, key=lambda r: one[r]) == rank)


def _named(
    ranks: dict[int, Steps], joined: Arrivals, own: dict[int, float], rank: int
) -> Iterator[Sign]:
    one = ranks[rank]
    wall = one.mean(lambda s: s.wall_us)
    others = median(value for other, value in own.items() if other != rank)
    behind = own[rank] - others
    times, total = joined.times[rank], sum(joined.times.values())
    subject = f"rank {rank}" + (f" ({one.trace.host})" if one.trace.host else "")
    confidence: Confidence = "high" if times >= 10 and not joined.counted else "medium"
    yield Sign(
        "straggler", f"{subject} comes last to {times} of {total} collectives that are waited for, "
        f"and works {duration(behind)} of a step of {duration(wall)} longer than the median "
        "of the others", share=behind / wall, seconds=behind, subject=f"rank {rank}",
        confidence=confidence,
        evidence=(Evidence("trace", source=one.trace.source, text=f"{joined.joined} collectives "
                           f"joined over {len(ranks)} ranks"),),
        against=("no clock is compared: all ranks leave a collective together",),
    )  # fmt: skip
    yield from _why(ranks, rank, behind, wall)


def _why(ranks: dict[int, Steps], rank: int, behind: float, wall: float) -> Iterator[Sign]:
    """What of its own time is longer than that of the others."""
    for cause, what, of in (
        ("data-wait", "its loader", lambda s: s.loader_us),
        ("python-gc", "its garbage collector", lambda s: s.gc_us),
        ("host", "waiting for its host", idle("host", "sync", "kernel-gap")),
    ):
        mine = ranks[rank].mean(of)
        usual = median(one.mean(of) for other, one in ranks.items() if other != rank)
        if mine - usual >= _EXPLAINS * behind:
            yield Sign(
                cause, f"{what} takes {duration(mine)} of a step, of the others "
                f"{duration(usual)}", share=(mine - usual) / wall, seconds=mine - usual,
                subject=f"rank {rank}", confidence="high",
                evidence=(Evidence("trace", source=ranks[rank].trace.source),),
            )  # fmt: skip
            return
    factor = _all_slower(ranks, rank)
    if factor is not None:
        yield Sign(
            "throttled", f"all its kernels take {factor:.3g} x as long as those of the same name "
            "on the others", share=1 - 1 / factor, subject=f"rank {rank}", confidence="medium",
            evidence=(Evidence("trace", source=ranks[rank].trace.source),),
            against=("work that is larger would lengthen some kernels and not all by one factor",),
        )  # fmt: skip


def _all_slower(ranks: dict[int, Steps], rank: int) -> float | None:
    """The factor of the rank's kernels, where it is one for all of them; communication apart."""
    usual: dict[str, list[float]] = {}
    for other, one in ranks.items():
        if other != rank:
            for kernel in one.trace.kernels:
                usual.setdefault(kernel.name, []).append(kernel.median_us)
    factors = [
        kernel.median_us / median(usual[kernel.name]) for kernel in ranks[rank].trace.kernels
        if kernel.name in usual and kernel.kind not in ("communication", "copy", "set")
        and median(usual[kernel.name]) > 5.0
    ]  # fmt: skip
    if len(factors) < _ALIKE_NAMES:
        return None
    middle = median(factors)
    alike = sum(1 for one in factors if abs(one / middle - 1) <= _ALIKE)
    return middle if middle >= _SLOWER and alike >= 0.8 * len(factors) else None


def _uneven(ranks: dict[int, Steps], joined: Arrivals) -> Iterator[Sign]:
    """Ranks wait for each other, and not for one: the median rank's wait."""
    steps = {rank: len(one.steps) for rank, one in ranks.items()}
    waits = [seconds / steps[rank] for rank, seconds in joined.waited.items()]
    wall = median(one.mean(lambda s: s.wall_us) for one in ranks.values())
    wait = median(waits)
    if len(joined.times) < 2 or sum(joined.times.values()) < 4:
        return
    yield Sign(
        "imbalance", f"ranks wait for each other for {duration(wait)} of a step of "
        f"{duration(wall)}, each time for another ({len(joined.times)} ranks were last in "
        f"{sum(joined.times.values())} collectives)", share=wait / wall, seconds=wait,
        confidence="medium",
        evidence=(Evidence("trace", source=next(iter(ranks.values())).trace.source,
                           text=f"{joined.joined} collectives joined"),),
        against=(f"of the {len(ranks)} ranks that are there none is last in most of them",),
        fix=("sequences of like length in a batch; garbage collection on all ranks in one step",),
    )  # fmt: skip


def _transfer(ranks: dict[int, Steps], joined: Arrivals) -> Iterator[Sign]:
    """Communication that is not hidden, without the waiting for others."""
    exposed = median(one.mean(lambda s: s.exposed_comm_us) for one in ranks.values())
    wall = median(one.mean(lambda s: s.wall_us) for one in ranks.values())
    waits = median(joined.waited.get(rank, 0.0) / len(one.steps) for rank, one in ranks.items())
    sent = max(0.0, exposed - waits)
    yield Sign(
        "exposed-communication", f"communication that nothing hides takes {duration(exposed)} "
        f"of a step of {duration(wall)} (median rank), {duration(sent)} of them with all ranks "
        "there", share=sent / wall, seconds=sent, confidence="medium" if joined.counted else "high",
        evidence=(Evidence("trace", source=next(iter(ranks.values())).trace.source),),
        against=(f"{duration(waits)} are waiting for the rank that comes last",),
    )  # fmt: skip


def joinable(ranks: Sequence[Steps]) -> bool:
    """Whether there are collectives of two ranks or more."""
    return sum(1 for one in ranks if one.trace.collectives) > 1
