"""Where the time of the steps went."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Any

from preflight.facts.training import Spread
from preflight.model import Known, Missing
from preflight.probes.training.lines import NO_STEP, Line, Told, middle

#: Steps at the beginning that time nothing: kernels are chosen, memory is taken.
_WARM = 5
#: Of fewer steps no rank is held against others.
_LEAST = 10
#: What a step holds beside work of its own rank.
_NOT_BUSY = ("data", "communication", "checkpoint")
_ALONE = Missing("not-applicable", "one rank has no others to be compared with")
_LOST = Missing("not-applicable", "a rank was lost: what the others did meanwhile tells no pace")
_ALONE_HERE = Missing(
    "not-applicable",
    "one rank on each host, and the ranks of the others are not in the input: no slow rank was "
    "looked for",
)


def warm(steps: list[Line]) -> list[Line]:
    """The steps that count; all where there are few."""
    return steps[_WARM:] or steps


def total(step: Line) -> float:
    return float(sum(step["seconds"].values()))


def length(step: Line) -> float:
    """Seconds of a step without its checkpoint."""
    return total(step) - spent(step, ("checkpoint",))


def spent(step: Line, parts: Iterable[str]) -> float:
    return float(sum(step["seconds"].get(part, 0.0) for part in parts))


def busy(steps: list[Line]) -> Known[float]:
    """Seconds of a step that the rank itself was at work, the median; of few steps it says little
    of a rank."""
    if 0 < len(steps) < _LEAST:
        few = f"{len(steps)} steps are too few to compare ranks by: {_LEAST} are needed"
        return Missing("not-applicable", few)
    return middle(total(one) - spent(one, _NOT_BUSY) for one in warm(steps))


def behind(
    of: dict[int, Known[float]], rank: int, *, hosts: int = 1, lost: bool = False
) -> Known[float]:
    """How much longer a rank is busy than the others of the job, in percent of their median."""
    own = _LOST if lost else of[rank]
    others = [one for key, one in of.items() if key != rank and not isinstance(one, Missing)]
    if isinstance(own, Missing) or not others:
        return own if isinstance(own, Missing) else _ALONE_HERE if hosts > 1 else _ALONE
    usual = median(others)
    return 100.0 * (own / usual - 1.0) if usual > 0 else NO_STEP


def times(ranks: Collection[list[Line]], tokens: float) -> dict[str, Any]:
    """Of the rank that took longest, from the steps of each: they go at one pace. `tokens`: of a
    step of all ranks. All wait for whichever rank has no data yet, and that is another one in each
    step.

    A checkpoint is begun at few steps and costs a short run more than a long one: what is a share
    of time leaves it out, and with it the longest step, which is told by itself.
    """
    steps = max(ranks, key=lambda one: sum(map(total, one)), default=[])
    counted = warm(steps)
    if not counted:
        return {"step_s": NO_STEP}
    usual = sorted(counted, key=length)
    each = list(map(length, usual))
    low, high = each[len(each) // 10], each[min(len(each) - 1, len(each) * 9 // 10)]
    half, whole = median(each), sum(each)
    if half <= 0 or whole <= 0:
        return {"step_s": NO_STEP}
    usual = usual[:-1] or usual
    waits = _waits(ranks)
    return {
        "step_s": Spread(len(each), half, low, high),
        "jitter_percent": 100.0 * (high / half - 1.0),
        "tokens_per_s": tokens * len(each) / whole,
        "shares": shares(counted),
        "data_percent": min(
            100.0, 100.0 * sum(waits[one["step"]] for one in usual) / sum(map(length, usual))
        ),
        **{f"{part}_percent": 100.0 * _sum(usual, part) / sum(map(length, usual))
           for part in ("copy", "rest")},
        "data_longest_s": max(waits[one["step"]] for one in counted),
        "checkpoint_stall_s": max(spent(one, ("checkpoint",)) for one in steps),
    }  # fmt: skip


def _waits(ranks: Iterable[list[Line]]) -> dict[int, float]:
    """Seconds that the last of all ranks waited for its data, by step."""
    found: dict[int, float] = {}
    for one in (step for steps in ranks for step in steps):
        found[one["step"]] = max(found.get(one["step"], 0.0), spent(one, ("data",)))
    return found


def loader_ratio(told: Told, tokens_per_s: Known[float]) -> Known[float]:
    """What the loader of a rank gives when nobody trains, over what the rank takes; of the
    slowest."""
    alone = [float(one["tokens_per_s"]) for one in told.of["loader_alone"]]
    if not alone:
        return Missing("not-in-input", "the loader was not tried alone")
    if isinstance(tokens_per_s, Missing):
        return tokens_per_s
    return min(alone) * told.world() / tokens_per_s


def shares(steps: Sequence[Line]) -> dict[str, float]:
    """Percent of all time by part: they add up to 100."""
    whole = sum(map(total, steps))
    parts = dict.fromkeys(part for one in steps for part in one["seconds"])
    return {str(part): 100.0 * _sum(steps, part) / whole for part in parts} if whole > 0 else {}


def _sum(steps: Iterable[Line], part: str) -> float:
    return sum(spent(one, (part,)) for one in steps)
