"""A timeline of a pipeline: which worker, stage or micro-batch makes the step longer.

Each step is replayed by what depends on what, once with its own durations and once with the mean
of each kind; what of the difference goes when one worker, or the last stage, is given the mean
says who is behind (method of "Understanding Stragglers in Large Model Training", 2505.05713).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean, median, pstdev
from typing import Any

from msgspec.structs import replace

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Lack, Number, Part, RankParts, Reading, Sign
from preflight.facts.traces import Operation, Timeline
from preflight.model import Evidence

#: Steps that are replayed; of more, so many spread over all.
_STEPS = 12
#: Below this share of a step nothing is told: runs differ by as much by themselves.
_LEAST = 0.03
#: From here on it is more than noise.
_UNEXPLAINED = 0.10
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
    if not steps or not any(one.duration_us > 0 for step in steps for one in step):
        lack = Lack(("straggler", "imbalance"), "no forward and backward of several workers in it",
                    "a timeline with the computing of each worker")  # fmt: skip
        return Reading(timeline.source, lacks=(lack,))
    ideal = _means(steps)
    actual_s = median(_replayed(one, _own) for one in steps) / 1e6
    ideal_s = median(_replayed(one, ideal) for one in steps) / 1e6
    walls = sorted(_wall(timeline.operations))
    signs = tuple(_signs(timeline, steps, ideal, actual_s, ideal_s))
    unexplained = not signs and actual_s > 0 and 1 - ideal_s / actual_s >= _UNEXPLAINED
    lack = Lack(("straggler", "imbalance"), f"a step takes {actual_s:.3g} s, evenly divided "
                f"{ideal_s:.3g} s, and neither workers, stages nor micro-batches say why",
                "more steps of it, and a trace of torch.profiler of each rank")  # fmt: skip
    notes = [f"{one.source} was not judged: one timeline at a time" for one in lines[1:]]
    return Reading(
        f"timeline {timeline.source}", steps=len(walls), step_s=median(walls),
        low_s=walls[len(walls) // 10], high_s=walls[-1 - len(walls) // 10], signs=signs,
        covers=frozenset() if unexplained else frozenset({"straggler", "imbalance"}),
        lacks=(lack,) if unexplained else (),
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
    share = 1 - ideal_s / actual_s if actual_s > 0 else 0.0
    if share < _LEAST:
        return
    evidence = (Evidence("timeline", source=timeline.source, text=f"step {steps[0][0].step}"),)
    slow = _slow_workers(steps)
    gone_worker = _gone(steps, ideal, actual_s, ideal_s, lambda one: one.worker in slow)
    stages = sorted({one.stage or 0 for one in steps[0]})
    gone_stage = {
        stage: _gone(steps, ideal, actual_s, ideal_s, partial(_is_of, stage))
        for stage in stages
    }  # fmt: skip
    heavy = max(gone_stage, key=lambda stage: gone_stage[stage])
    took = f"a step takes {actual_s:.3g} s, evenly divided {ideal_s:.3g} s"
    whole = Sign("imbalance", "", share, actual_s - ideal_s, evidence=evidence)
    if slow and gone_worker >= _EXPLAINS:
        yield _workers(slow, took, gone_worker, whole)
    elif len(stages) > 1 and gone_stage[heavy] >= _EXPLAINS:
        yield _stage(heavy, stages, took, gone_stage[heavy], whole, alone=_replicas(steps) < 2)
    elif _alike_by_micro_batch(steps):
        yield replace(
            whole, text=f"{took}; micro-batches differ: what is long on one worker is long on all "
            "that have it", confidence="medium", fix=("sequences of like length in a step",),
        )  # fmt: skip


def _is_of(stage: int, one: Operation) -> bool:
    return (one.stage or 0) == stage


def _workers(slow: dict[int, float], took: str, gone: float, whole: Sign) -> Sign:
    names = ", ".join(f"{worker} ({times:.3g} x)" for worker, times in list(slow.items())[:4])
    return replace(
        whole, cause="straggler", confidence="high",
        text=f"{took}; worker {names} computes so many times as long as peers of the same stage, "
        f"and without that {gone * 100:.3g} % of the difference goes",
        subject=f"worker {', '.join(map(str, list(slow)[:4]))}",
        against=("its peers do the same work: it is no heavy stage",),
    )  # fmt: skip


def _stage(
    heavy: int, stages: Sequence[int], took: str, gone: float, whole: Sign, *, alone: bool
) -> Sign:
    """A stage that is heavier on all replicas; with one replica its machine could be slow as
    well, and nobody can be told apart from it."""
    last = heavy == stages[-1]
    name = "last stage" if last else "first stage" if heavy == stages[0] else f"stage {heavy}"
    held = "one replica: a slow machine in this stage would look the same" if alone else (
        "no machine: workers of the stage take as long as each other on all replicas"
    )  # fmt: skip
    own = "fewer layers in the last stage: it has the loss too " if last else "fewer layers in it "
    return replace(
        whole, text=f"{took}; the {name} is heavier than the others, and without that "
        f"{gone * 100:.3g} % of the difference goes", subject=name,
        confidence="low" if alone else "high", against=(held,),
        fix=(f"{own}(--decoder-{'last' if last else 'first'}-pipeline-num-layers of Megatron-LM)",),
    )  # fmt: skip


def _replicas(steps: Sequence[Sequence[Operation]]) -> int:
    return len({one.dp_rank for one in steps[0]})


def _alike_by_micro_batch(steps: Sequence[Sequence[Operation]]) -> bool:
    """Whether the length of an operation hangs on its micro-batch: between micro-batches it varies
    much more than what is left within them over stages."""
    between, within = [], []
    for step in steps:
        lengths: dict[tuple[object, ...], list[float]] = {}
        usual: dict[tuple[object, ...], list[float]] = {}
        for one in step:
            usual.setdefault((one.kind, one.stage), []).append(one.duration_us)
        for one in step:
            middle = median(usual[one.kind, one.stage])
            if middle > 0:
                key = (one.dp_rank, one.micro_batch)
                lengths.setdefault(key, []).append(one.duration_us / middle)
        means = [mean(found) for found in lengths.values() if len(found) > 1]
        if len(means) > 2:
            between.append(pstdev(means))
            within.append(mean(pstdev(found) for found in lengths.values() if len(found) > 1))
    return bool(between) and median(between) > max(0.05, 1.5 * median(within))


def _slow_workers(steps: Sequence[Sequence[Operation]]) -> dict[int, float]:
    """Workers that take longer than the median of those of their stage, and how many times: the
    slowest first. Where a stage has one worker, nobody is."""
    sums: dict[int, float] = {}
    stages: dict[int, int | None] = {}
    for step in steps:
        for one in step:
            sums[one.worker] = sums.get(one.worker, 0.0) + one.duration_us
            stages[one.worker] = one.stage
    found: dict[int, float] = {}
    for worker, total in sums.items():
        peers = [
            value for other, value in sums.items()
            if other != worker and stages[other] == stages[worker]
        ]  # fmt: skip
        if peers and median(peers) > 0 and total >= _SLOWER * median(peers):
            found[worker] = total / median(peers)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


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
