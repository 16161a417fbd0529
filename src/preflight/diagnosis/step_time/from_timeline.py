"""A timeline of a pipeline: which worker, stage or micro-batch makes the step longer.

Each step is replayed by what depends on what, once with its own durations and once with the mean
of each kind; what of the difference goes when one worker, or the last stage, is given the mean
says who is behind (method of "Understanding Stragglers in Large Model Training", 2505.05713).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median
from typing import Any

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Lack, Number, Part, RankParts, Reading, Sign
from preflight.facts.traces import Operation, Timeline
from preflight.model import Evidence

#: Steps that are replayed; of more, so many spread over all.
_STEPS = 12
#: Below this share of a step nothing is told: runs differ by as much by themselves.
_LEAST = 0.03
#: Of the difference, what must go with one cause.
_EXPLAINS = 0.5
#: A worker is slow that takes so much longer than its peers of the same stage.
_SLOWER = 1.10
_COMPUTE = ("forward-compute", "backward-compute")

Duration = Callable[[Operation], float]


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """The first timeline; others are told as not judged."""
    lines: list[Timeline] = facts.get("timeline", [])
    timeline = lines[0]
    steps = _steps(timeline.operations)
    if not steps:
        lack = Lack(("straggler", "imbalance"), "no forward and backward of several workers in it",
                    "a timeline with the computing of each worker")  # fmt: skip
        return Reading(timeline.source, lacks=(lack,))
    ideal = _means(steps)
    actual_s = median(_replayed(one, _own) for one in steps) / 1e6
    ideal_s = median(_replayed(one, ideal) for one in steps) / 1e6
    walls = sorted(_wall(timeline.operations))
    signs = tuple(_signs(timeline, steps, ideal, actual_s, ideal_s))
    notes = [f"{one.source} was not judged: one timeline at a time" for one in lines[1:]]
    return Reading(
        f"timeline {timeline.source}", steps=len(walls), step_s=median(walls),
        low_s=walls[len(walls) // 10], high_s=walls[-1 - len(walls) // 10], signs=signs,
        covers=frozenset({"straggler", "imbalance"}),
        numbers=(Number("replayed step", actual_s, "s", n=len(steps)),
                 Number("evenly divided", ideal_s, "s", n=len(steps))),
        ranks=tuple(_by_worker(steps)), notes=(*notes, *timeline.damage),
    )  # fmt: skip


def _steps(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Computing by step, in time; a choice of steps where there are many, without the first."""
    by_step: dict[int, list[Operation]] = {}
    for one in operations:
        if one.kind in _COMPUTE and one.micro_batch >= 0:
            by_step.setdefault(one.step, []).append(one)
    found = [by_step[step] for step in sorted(by_step)]
    whole = [one for one in found if len({op.worker for op in one}) > 1]
    kept = whole[1:] if len(whole) > 3 else whole
    every = max(1, len(kept) // _STEPS)
    return [sorted(one, key=lambda op: op.start_us) for one in kept[::every]]


def _wall(operations: Sequence[Operation]) -> Iterator[float]:
    spans: dict[int, tuple[float, float]] = {}
    for one in operations:
        low, high = spans.get(one.step, (one.start_us, 0.0))
        spans[one.step] = min(low, one.start_us), max(high, one.start_us + one.duration_us)
    yield from ((high - low) / 1e6 for low, high in spans.values())


def _own(operation: Operation) -> float:
    return operation.duration_us


def _means(steps: Sequence[Sequence[Operation]]) -> Duration:
    """The mean over all workers, of each kind and chunk: work that is moved from one stage to
    another does not vanish."""
    values: dict[tuple[str, int], list[float]] = {}
    for step in steps:
        for one in step:
            values.setdefault((one.kind, one.chunk), []).append(one.duration_us)
    means = {key: mean(found) for key, found in values.items()}
    return lambda operation: means[operation.kind, operation.chunk]


def _replayed(step: Sequence[Operation], duration: Duration) -> float:
    """Microseconds of a step: a worker does its operations in their order; a forward waits for that
    of the stage before, a backward for that of the stage behind; sending takes no time."""
    queues: dict[int, list[Operation]] = {}
    for one in step:
        queues.setdefault(one.worker, []).append(one)
    known = {_key(one) for one in step}
    ended: dict[tuple[Any, ...], float] = {}
    free = dict.fromkeys(queues, 0.0)
    places = dict.fromkeys(queues, 0)
    moved = True
    while moved:
        moved = False
        for worker, queue in queues.items():
            while places[worker] < len(queue):
                one = queue[places[worker]]
                needs = _needs(one)
                if needs in known and needs not in ended:
                    break
                free[worker] = max(free[worker], ended.get(needs, 0.0)) + duration(one)
                ended[_key(one)] = free[worker]
                places[worker] += 1
                moved = True
    return max(free.values())


def _key(one: Operation) -> tuple[Any, ...]:
    return one.kind, one.dp_rank, one.chunk, one.micro_batch, one.stage


def _needs(one: Operation) -> tuple[Any, ...]:
    if one.stage is None:
        return ()
    stage = one.stage - 1 if one.kind == "forward-compute" else one.stage + 1
    return one.kind, one.dp_rank, one.chunk, one.micro_batch, stage


def _signs(
    timeline: Timeline, steps: Sequence[Sequence[Operation]], ideal: Duration, actual_s: float,
    ideal_s: float,
) -> Iterator[Sign]:  # fmt: skip
    share = 1 - ideal_s / actual_s
    if share < _LEAST:
        return
    evidence = (Evidence("timeline", source=timeline.source, text=f"step {steps[0][0].step}"),)
    worker, times = _slowest(steps)
    gone_worker = _gone(steps, ideal, actual_s, ideal_s, lambda one: one.worker == worker)
    last = max((one.stage or 0) for one in steps[0])
    gone_stage = _gone(steps, ideal, actual_s, ideal_s, lambda one: one.stage == last)
    took = f"a step takes {actual_s:.3g} s, evenly divided {ideal_s:.3g} s"
    if gone_worker >= _EXPLAINS and times >= _SLOWER:
        yield Sign(
            "straggler", f"{took}; worker {worker} computes {times:.3g} x as long as its peers of "
            f"the same stage, and without that {gone_worker * 100:.3g} % of the difference goes",
            share=share, seconds=actual_s - ideal_s, subject=f"worker {worker}", confidence="high",
            evidence=evidence, against=(f"the last stage explains {gone_stage * 100:.2g} %",),
        )  # fmt: skip
    elif gone_stage >= _EXPLAINS and last > 0:
        yield Sign(
            "imbalance", f"{took}; the last stage is heavier than the others on each replica, and "
            f"without that {gone_stage * 100:.3g} % of the difference goes",
            share=share, seconds=actual_s - ideal_s, subject="last stage", confidence="high",
            evidence=evidence,
            against=(f"no machine: the slowest worker explains {gone_worker * 100:.2g} % and takes "
                     f"{times:.3g} x as long as its peers",),
            fix=("fewer layers in the last stage: it has the loss too "
                 "(--decoder-last-pipeline-num-layers of Megatron-LM)",),
        )  # fmt: skip
    else:
        yield Sign(
            "imbalance", f"{took}; micro-batches differ: neither a worker "
            f"({gone_worker * 100:.2g} %) nor the last stage ({gone_stage * 100:.2g} %) is why",
            share=share, seconds=actual_s - ideal_s, confidence="medium", evidence=evidence,
            fix=("sequences of like length in the micro-batches of a step",),
        )  # fmt: skip


def _slowest(steps: Sequence[Sequence[Operation]]) -> tuple[int, float]:
    """The worker that takes longest of those of its stage, and how many times their median."""
    sums: dict[int, float] = {}
    stages: dict[int, int | None] = {}
    for step in steps:
        for one in step:
            sums[one.worker] = sums.get(one.worker, 0.0) + one.duration_us
            stages[one.worker] = one.stage
    best = (0, 0.0)
    for worker, total in sums.items():
        peers = [
            value for other, value in sums.items()
            if other != worker and stages[other] == stages[worker]
        ]  # fmt: skip
        if peers and total / median(peers) > best[1]:
            best = worker, total / median(peers)
    return best


def _gone(
    steps: Sequence[Sequence[Operation]], ideal: Duration, actual_s: float, ideal_s: float,
    mended: Callable[[Operation], bool],
) -> float:  # fmt: skip
    """Of the difference between own durations and means, what goes with means for these."""

    def duration(one: Operation) -> float:
        return min(one.duration_us, ideal(one)) if mended(one) else one.duration_us

    with_them = median(_replayed(one, duration) for one in steps) / 1e6
    return min(1.0, (actual_s - with_them) / (actual_s - ideal_s))


def _by_worker(steps: Sequence[Sequence[Operation]]) -> Iterator[RankParts]:
    sums: dict[int, dict[str, float]] = {}
    for step in steps:
        for one in step:
            kinds = sums.setdefault(one.worker, dict.fromkeys(_COMPUTE, 0.0))
            kinds[one.kind] += one.duration_us / 1e6 / len(steps)
    for worker in sorted(sums):
        forward, backward = (sums[worker][kind] for kind in _COMPUTE)
        yield RankParts(f"worker {worker}", (Part("forward", forward), Part("backward", backward)))
