"""What figures beside the step time show: parts of the step, and which of them grew with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from preflight.diagnosis.reading import Part, Sign
from preflight.diagnosis.series.shape import Shift
from preflight.diagnosis.step_time.log_run import Run, median_of, when


class Fraction(Struct, frozen=True):
    """A figure that is a part of the step. `columns`: the first that is there counts, else `timer`
    of each rank, of which `over` makes one; `scale`: 100 where it is percent of the step already.
    `alone`: columns that tell of one rank, or the slowest: what it waits for others is in them."""

    cause: str
    part: str
    columns: tuple[str, ...]
    timer: str = ""
    over: Callable[..., float] = max
    scale: float = 0.0
    alone: tuple[str, ...] = ()


#: Part of the step by column. All ranks wait for the one whose data come last; of communication
#: that counts which also the rank has that comes last to it. Megatron's forward-recv and the like
#: wait for other stages as well, and are no proof of a slow network.
FRACTIONS = (
    Fraction("data-wait", "data", ("data_percent",), scale=100.0),
    Fraction("data-wait", "data", ("data_s", "timer/batch-generator.max", "timer/batch-generator",
                                   "timing_s/data", "timer/data"), "batch-generator"),
    Fraction("exposed-communication", "communication",
             ("timer/all-grads-sync.min", "comm_s", "timer/all-grads-sync.max",
              "timer/all-grads-sync", "timer/bwd_allreduce"), "all-grads-sync", min,
             alone=("comm_s", "timer/all-grads-sync.max", "timer/all-grads-sync",
                    "timer/bwd_allreduce")),
    Fraction("exposed-communication", "gathering parameters",
             ("timer/params-all-gather.min", "timer/params-all-gather.max",
              "timer/params-all-gather"), "params-all-gather", min,
             alone=("timer/params-all-gather.max", "timer/params-all-gather")),
    Fraction("checkpoint-stall", "saving", ("save_s", "timing_s/save_checkpoint")),
)  # fmt: skip
#: Parts of the bar that are no cause.
_PARTS = (
    Fraction("", "forward", ("forward_s", "timer/forward-compute.max"), "forward-compute"),
    Fraction("", "backward", ("backward_s", "timer/backward-compute.max"), "backward-compute"),
    Fraction("", "optimizer", ("optimizer_s", "timer/optimizer.max"), "optimizer"),
)
#: Of the rise of a step, that a part must have to be what rose.
_MOST_OF_IT = 0.5


class Told(Struct):
    """Values of a fraction by row; `name`: the column, or the timer over ranks."""

    name: str
    values: Sequence[float]


def told_of(run: Run, one: Fraction) -> Told | None:
    """None where the log has no such figure."""
    for name in one.columns:
        values = run.series.values(name)
        if any(math.isfinite(values[at]) for at in run.kept):
            return Told(name, values)
    form = re.compile(rf"timer/{re.escape(one.timer)}\.rank\d+")
    ranks = [run.series.values(name) for name in run.series.columns if form.fullmatch(name)]
    if not one.timer or not ranks:
        return None
    return Told(f"{one.timer}, {one.over.__name__} over {len(ranks)} ranks",
                [one.over(row) for row in zip(*ranks, strict=True)])  # fmt: skip


def fraction_signs(run: Run) -> Iterator[Sign]:
    """Shares of the step that columns tell; below the bounds as well, for what is ruled out."""
    for one in FRACTIONS:
        told = told_of(run, one)
        found = _share(run, one, told) if told else None
        if told is None or found is None:
            continue
        share, seconds, n = found
        at = next(at for at in run.kept if math.isfinite(told.values[at]))
        took = f"{seconds * 1e3:.3g} ms, " if not run.relative else ""
        alone = told.name in one.alone
        yield Sign(
            one.cause, f"{one.part} takes {took}{share * 100:.3g} % of a step "
            f"({told.name}, n = {n:,}, median)", share=share,
            seconds=None if run.relative else seconds, evidence=(run.evidence(at),),
            confidence="high" if n >= 10 and not alone else "medium",
            against=("by the time of one rank: where that waits for a slower one it looks the "
                     "same; times of all ranks would tell",) if alone else (),
        )  # fmt: skip


def told_causes(run: Run) -> frozenset[str]:
    """Causes that a column of this log proves or rules out."""
    return frozenset(one.cause for one in FRACTIONS if told_of(run, one))


def grown_part(run: Run, found: Shift) -> Sign | None:
    """The part of the step that rose with it, where that is most of the rise: then it is the
    cause, and the step's longer time its effect."""
    rise = found.after - found.before
    for one in FRACTIONS:
        told = told_of(run, one)
        if told is None:
            continue
        seconds = [_seconds(run, one, told, at) for at in run.kept]
        before, after = median_of(seconds[: found.at]), median_of(seconds[found.at :])
        if before is not None and after is not None and after - before >= _MOST_OF_IT * rise:
            at = run.kept[found.at]
            amount = f" from {before:.3g} to {after:.3g} s" if not run.relative else ""
            return Sign(
                one.cause, f"{one.part} rose{amount}, which is "
                f"{min(1.0, (after - before) / rise):.0%} of what a step became longer",
                share=min(1.0, (after - before) / found.after),
                seconds=None if run.relative else after - before, since=when(run, at),
                evidence=(run.evidence(at),), confidence="high",
            )  # fmt: skip
    return None


def _seconds(run: Run, one: Fraction, told: Told, at: int) -> float:
    value = told.values[at]
    return value / one.scale * run.times.seconds[at] if one.scale else value


def parts_of(run: Run) -> tuple[Part, ...]:
    """The step by the parts that are told; the rest is "not told"."""
    if run.relative:
        return ()
    found: dict[str, float] = {}
    for one in FRACTIONS:
        told = told_of(run, one)
        share = _share(run, one, told) if told else None
        if share and one.cause != "checkpoint-stall":
            found.setdefault(one.part, share[1])
    for one in _PARTS:
        told = told_of(run, one)
        middle = median_of([told.values[at] for at in run.kept]) if told else None
        if middle:
            found[one.part] = middle
    if "backward" in found and "communication" in found:
        # DeepSpeed's backward has its all-reduce in it; so has what is told as one figure.
        found["backward"] = max(0.0, found["backward"] - found["communication"])
    rest = run.spread.median - sum(found.values())
    if not found or rest < -0.02 * run.spread.median:
        return ()
    return (*(Part(name, one) for name, one in found.items()), Part("not told", max(0.0, rest)))


def _share(run: Run, one: Fraction, told: Told) -> tuple[float, float, int] | None:
    """Of the step, seconds, in how many rows."""
    seconds = [value for at in run.kept if math.isfinite(value := _seconds(run, one, told, at))]
    shares = [value / run.times.seconds[at] for at in run.kept
              if math.isfinite(value := _seconds(run, one, told, at))]  # fmt: skip
    middle, took = median_of(shares), median_of(seconds)
    if middle is None or took is None or not 0 <= middle <= 1.5:
        return None
    return min(middle, 1.0), took, len(shares)
