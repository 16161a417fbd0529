"""What traces of a profiler tell, of one rank and of all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Lack, Number, RankParts, Reading, Sign
from preflight.diagnosis.step_time.trace_rank import Steps, idle, parts_of, rank_signs, steps_of
from preflight.diagnosis.step_time.trace_ranks import between_signs, joinable
from preflight.diagnosis.wording import duration, percent
from preflight.facts.traces import TRACE_LACKS, RankTrace
from preflight.model import Evidence

_ALL = "traces of all ranks: on_trace_ready=tensorboard_trace_handler(DIR) on each of them"
_BOTH = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
_STEPS = "profile(schedule=schedule(wait=10, warmup=2, active=10)) and profiler.step() in the loop"
_ON_DEVICE = {"data-wait", "h2d", "host", "allocator", "memory-bandwidth", "compute"}
#: Of the step: so much idle time without an owner can be anything.
_UNOWNED = 0.10
#: The same of processors, where all that is no operator is idle to a trace.
_UNNAMED = 0.30
#: Of ranks on processors that share cores: less is who gets a core first.
_LEAST_S = 0.010


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """All traces together; the later of two of one rank counts."""
    traces: list[RankTrace] = facts.get("trace", [])
    known, notes = _one_for_each(traces)
    steps = [one for trace in known if (one := steps_of(trace)) is not None]
    notes += [f"{trace.source}: {text}" for trace in known for text in trace.damage]
    if not steps:
        lack = Lack(("data-wait", "host", "compute"), "no step and no work of a device is in it",
                    _STEPS)  # fmt: skip
        return Reading(_name(traces), lacks=(lack,), notes=tuple(notes))
    ranks = {one.trace.rank: one for one in steps if one.trace.rank is not None}
    several = len(ranks) > 1 and joinable(list(ranks.values()))
    signs = list(_of_each(steps))
    lacks = list(_lacks(steps, several))
    if several:
        on_device = all(one.trace.has_device for one in steps)
        signs += [
            sign for sign in between_signs(ranks, lacks)
            if on_device or (sign.seconds or 0.0) >= _LEAST_S or sign.share is None
        ]  # fmt: skip
    else:
        signs += _alone(steps)
    middle = sorted(steps, key=lambda one: one.mean(lambda s: s.wall_us))[len(steps) // 2]
    walls = sorted(step.wall_us / 1e6 for one in steps for step in one.steps)
    return Reading(
        _name(known), steps=len(middle.steps), step_s=None if middle.whole else median(walls),
        low_s=walls[len(walls) // 10], high_s=walls[-1 - len(walls) // 10], signs=tuple(signs),
        covers=_covers(steps, several, lacks), lacks=tuple(lacks),
        numbers=tuple(_numbers(middle)), parts=() if middle.whole else parts_of(middle),
        ranks=tuple(RankParts(one.name, parts_of(one)) for one in steps if len(steps) > 1),
        notes=tuple(notes),
    )  # fmt: skip


def _name(traces: Sequence[RankTrace]) -> str:
    return f"trace {traces[0].source}" if len(traces) == 1 else f"traces of {len(traces)} ranks"


def _one_for_each(traces: Sequence[RankTrace]) -> tuple[list[RankTrace], list[str]]:
    """Of several of one rank the one that begins last; whose rank is not told stands alone."""
    found: dict[object, RankTrace] = {}
    notes = []
    for at, trace in enumerate(traces):
        key = ("?", at) if trace.rank is None else trace.rank
        before = found.get(key)
        if before is None:
            found[key] = trace
            continue
        older, newer = sorted((before, trace), key=_begin)
        found[key] = newer
        notes.append(f"{older.source} is an earlier trace of rank {trace.rank}: not judged")
    return list(found.values()), notes


def _begin(trace: RankTrace) -> float:
    return trace.steps[0].start_us if trace.steps else 0.0


def _of_each(steps: Sequence[Steps]) -> Iterator[Sign]:
    """What ranks have alike is told once, by the rank in the middle."""
    from msgspec.structs import replace

    by_cause: dict[str, list[tuple[Steps, Sign]]] = {}
    for one in steps:
        for sign in rank_signs(one):
            by_cause.setdefault(sign.cause, []).append((one, sign))
    for found in by_cause.values():
        found.sort(key=lambda pair: pair[1].share or 0.0)
        middle_rank, middle = found[(len(found) - 1) // 2]
        yield replace(middle, text=f"{middle_rank.name}: {middle.text}" if len(steps) > 1 else
                      middle.text)  # fmt: skip


def _alone(steps: Sequence[Steps]) -> Iterator[Sign]:
    """Communication of a rank whose peers are not there: to wait and to send look alike."""
    one = steps[0]
    share = one.share(lambda s: s.exposed_comm_us)
    if share <= 0:
        return
    seconds = one.mean(lambda s: s.exposed_comm_us)
    yield Sign(
        "exposed-communication", f"communication with no computing beside it takes "
        f"{duration(seconds)} ({percent(share)}) of a step (mean of {len(one.steps)})",
        share=share, seconds=seconds, confidence="low" if one.whole else "medium",
        evidence=(Evidence("trace", source=one.trace.source),),
        against=("waiting for a slow rank looks the same in the trace of one rank",),
        fix=(f"which of both: {_ALL}",),
    )  # fmt: skip


def _covers(steps: Sequence[Steps], several: bool, lacks: Sequence[Lack]) -> frozenset[str]:
    if any(one.whole for one in steps):
        return frozenset()
    found: set[str] = set()
    if all(one.trace.has_device for one in steps):
        found |= _ON_DEVICE | {"exposed-communication"}
        if "launches" in {lack for one in steps for lack in one.trace.lacks}:
            found -= {"host", "data-wait", "allocator"}
    elif not any(one.trace.has_device for one in steps):
        found |= {"data-wait", "exposed-communication"}
    alone = all((one.trace.world or 1) == 1 for one in steps)
    found |= {"straggler", "imbalance"} if several or alone else set()
    return frozenset(found - {cause for lack in lacks for cause in lack.causes})


def _lacks(steps: Sequence[Steps], several: bool) -> Iterator[Lack]:
    world = max((one.trace.world or 1) for one in steps)
    if world > 1 and (not several or len(steps) < world):
        yield Lack(("straggler", "imbalance"), f"{len(steps)} of {world} ranks are there: who "
                   "waits for whom is not known", _ALL)  # fmt: skip
    unowned = max(one.share(idle("unknown")) for one in steps)
    if unowned >= _UNOWNED:
        yield Lack(("host", "data-wait"), f"the device is idle for {percent(unowned)} of a step, "
                   "and the trace does not show for what", _BOTH)  # fmt: skip
    loose = max((_unnamed(one) for one in steps if not one.trace.has_device), default=0.0)
    if loose >= _UNNAMED:
        yield Lack(("host", "data-wait", "python-gc", "checkpoint-stall"), f"{percent(loose)} of a "
                   "step lies in no operator: the program's own lines, which the trace does not "
                   "have", "profile(with_stack=True), or py-spy record --pid PID")  # fmt: skip
    missing = {lack for one in steps for lack in one.trace.lacks}
    if "kernels" in missing:
        yield Lack(("host", "compute", "h2d"), TRACE_LACKS["kernels"], _BOTH)
    if "steps" in missing or any(one.whole for one in steps):
        yield Lack(("data-wait", "host", "allocator"), TRACE_LACKS["steps"], _STEPS)
    if "launches" in missing and "kernels" not in missing:
        yield Lack(("host", "data-wait"), TRACE_LACKS["launches"], _BOTH)


def _unnamed(one: Steps) -> float:
    """The share of a step that no part of it has."""
    parts = parts_of(one)
    whole = sum(part.seconds for part in parts)
    return sum(part.seconds for part in parts if part.name == "other") / whole if whole else 0.0


def _numbers(one: Steps) -> Iterator[Number]:
    if not one.trace.has_device or one.whole:
        return
    n = len(one.steps)
    yield Number("device busy", one.share(lambda s: s.busy_us) * 100, "%", n=n)
    comm = one.share(lambda s: s.comm_us)
    if comm > 0.001:
        hidden = 1 - one.share(lambda s: s.exposed_comm_us) / comm
        yield Number("communication hidden", hidden * 100, "%", n=n)
