"""Traces of a job and timelines of a pipeline, made with one fault and with noise."""

from __future__ import annotations

from random import Random
from typing import Any

from preflight.facts.traces import (
    Collective,
    KernelTotal,
    Operation,
    RankTrace,
    Timeline,
    TraceStep,
)  # fmt: skip

_PER_STEP = 8  # collectives
_LINK_US = 4_000.0


def job(
    seed: int, *, ranks: int = 8, steps: int = 10, noise: float = 0.02, slow: int | None = None,
    factor: float = 1.0, chance: float = 0.0, loader: int | None = None, world: int = 0,
    all_kernels: bool = True,
) -> list[RankTrace]:  # fmt: skip
    """Steps of 1 s with eight collectives, which all ranks leave together. `slow` computes `factor`
    as long; by `chance` another rank in each step does; `loader` waits 0.25 s for data."""
    random, now, seq = Random(seed), [0.0] * ranks, 0
    told: list[tuple[list[TraceStep], list[Collective]]] = [([], []) for _ in range(ranks)]
    for step in range(steps):
        begin, busy, sent = list(now), [0.0] * ranks, [0.0] * ranks
        unlucky = random.randrange(ranks)
        load = [250_000.0 if rank == loader else 0.0 for rank in range(ranks)]
        now = [one + more for one, more in zip(now, load, strict=True)]
        for _ in range(_PER_STEP):
            for rank in range(ranks):
                took = 1e6 / _PER_STEP * (1 + random.gauss(0, noise))
                took *= factor if rank == slow else 1.0
                took *= 1 + chance if rank == unlucky else 1.0
                now[rank] += took
                busy[rank] += took
            end = max(now) + _LINK_US
            for rank in range(ranks):
                told[rank][1].append(
                    Collective("0", seq, "all_reduce", step, now[rank], end - now[rank], 50_000_000,
                               ranks)
                )  # fmt: skip
                sent[rank] += end - now[rank]
                now[rank] = end
            seq += 1
        for rank in range(ranks):
            told[rank][0].append(
                _step(step, begin[rank], now[rank], busy[rank], sent[rank], load[rank])
            )
    return [
        RankTrace(
            f"rank{rank}.json", rank=rank, world=world or ranks, host=f"n{rank}", has_device=True,
            steps=tuple(told[rank][0]), collectives=tuple(told[rank][1]),
            kernels=_kernels(random, factor if rank == slow and all_kernels else 1.0),
        )
        for rank in range(ranks)
    ]  # fmt: skip


def _step(
    number: int, begin: float, end: float, busy: float, sent: float, load: float
) -> TraceStep:
    return TraceStep(
        number, begin, end - begin, end - begin, busy_us=busy + sent, compute_us=busy,
        classes_us={"gemm": busy * 0.7, "elementwise": busy * 0.3, "communication": sent},
        exposed_comm_us=sent, comm_us=sent, idle_us={"loader": load}, loader_us=load,
        loader_idle_us=load, kernels=1000, launches=1000, kernel_median_us=200.0, queue_median=50.0,
    )  # fmt: skip


def _kernels(random: Random, factor: float) -> tuple[KernelTotal, ...]:
    return tuple(
        KernelTotal(f"k{at}", "gemm", 100, 1e5, 100.0 * (at + 1) * factor * random.gauss(1, 0.01))
        for at in range(8)
    )


def rank_of(**step: Any) -> RankTrace:
    """One rank of ten steps of 1 s that are alike."""
    steps = tuple(TraceStep(at, at * 1e6, 1e6, 1e6, **step) for at in range(10))
    return RankTrace("rank0.json", rank=0, world=1, has_device=True, steps=steps)


def pipeline(
    seed: int, *, replicas: int = 4, stages: int = 4, steps: int = 6, noise: float = 0.02,
    slow: dict[int, float] | None = None, heavy: dict[int, float] | None = None,
    uneven: float = 0.0,
) -> Timeline:  # fmt: skip
    """Eight micro-batches forward, then backward. `slow`: worker -> factor; `heavy`: stage ->
    factor; `uneven`: how much micro-batches differ."""
    random = Random(seed)
    told: list[Operation] = []
    for step in range(steps):
        longer = {(one, batch): 1 + abs(random.gauss(0, uneven))
                  for one in range(replicas) for batch in range(8)}  # fmt: skip
        for replica in range(replicas):
            free = dict.fromkeys(range(stages), step * 1e8)
            for kind, usual in (("forward-compute", 1e5), ("backward-compute", 2e5)):
                order = range(stages) if kind == "forward-compute" else range(stages)[::-1]
                for batch in range(8):
                    ready = 0.0
                    for stage in order:
                        worker = replica * stages + stage
                        took = usual * random.gauss(1, noise) * longer[replica, batch]
                        took *= (slow or {}).get(worker, 1.0) * (heavy or {}).get(stage, 1.0)
                        begin = max(free[stage], ready)
                        free[stage] = ready = begin + took
                        told.append(
                            Operation(worker, stage, replica, step, kind, begin, took, batch)
                        )
    return Timeline("pipeline.json", tuple(told))
