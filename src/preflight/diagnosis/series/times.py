"""How long each step took, from whatever a log tells of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from preflight.facts.series import Series

#: Of each segment: compiling, tuning and the start of NCCL are in the first steps.
FIRST = 3
_NAN = math.nan
#: Of its clock, in the usual row of a series whose single rows mean something.
_QUANTA = 5


class Times(Struct):
    """Rows of a log as lengths of steps. `seconds`: of one step, the mean over the `steps` steps
    that the row stands for; NaN where it is not known. `wall`: from the row before to this one, by
    the clock of the lines; NaN where they have none. `begins`: rows at which a run began, or went
    back to an earlier step. `quantum_s`: how fine a clock the seconds were taken by."""

    step: Sequence[float]
    seconds: list[float]
    steps: list[float]
    wall: list[float]
    begins: list[int]
    basis: str = ""  # which figures they come from, in words
    quantum_s: float = 0.0


def times_of(series: Series) -> Times:
    """The best that the series has: told seconds, else clocks, else means that are undone."""
    step = _steps(series)
    begins = begins_of(step)
    steps = _gaps(step, begins)
    wall, quantum = _wall(series, begins)
    times = Times(step, [_NAN] * len(step), steps, wall, begins)
    known = [
        one for one in _ways(series, steps, wall, quantum, begins)
        if sum(map(math.isfinite, one[0])) >= max(2, len(step) // 4)
    ]  # fmt: skip
    # A clock of whole seconds tells nothing of a step of milliseconds; a rate may.
    chosen = next((one for one in known if _fine(one[0], steps, one[2])), None)
    if chosen or known:
        times.seconds, times.basis, times.quantum_s = chosen or known[0]
    return times


def _fine(seconds: Sequence[float], steps: Sequence[float], quantum: float) -> bool:
    rows = [one * gap for one, gap in zip(seconds, steps, strict=True) if one * gap > 0]
    return quantum == 0 or (bool(rows) and median(rows) >= _QUANTA * quantum)


def _steps(series: Series) -> Sequence[float]:
    found = series.values("step")
    if any(map(math.isfinite, found)):
        return found
    return [float(at) for at in range(len(series.line))]


def begins_of(step: Sequence[float]) -> list[int]:
    """Rows whose step is not above the one before: a restart, or another run in the same file."""
    found, before = [0] if len(step) else [], _NAN
    for at, value in enumerate(step):
        if value < before:
            found.append(at)
        before = value if math.isfinite(value) else before
    return found


def _gaps(step: Sequence[float], begins: Sequence[int]) -> list[float]:
    """Steps since the row before; NaN at a beginning and where the step repeats."""
    starts = set(begins)
    found = [_NAN] * len(step)
    for at in range(1, len(step)):
        gap = step[at] - step[at - 1]
        if at not in starts and gap > 0:
            found[at] = gap
    return found


def _wall(series: Series, begins: Sequence[int]) -> tuple[list[float], float]:
    """Seconds from row to row, by the lines' clock or the run's own; how fine it is."""
    for name in ("elapsed_s", "time_s"):
        clock = series.values(name)
        if sum(map(math.isfinite, clock)) * 2 > len(clock) > 1:
            starts = set(begins) if name == "elapsed_s" else {0}
            gaps = [
                _NAN if at in starts or clock[at] < clock[at - 1] else clock[at] - clock[at - 1]
                for at in range(len(clock))
            ]  # fmt: skip
            whole = all(value == int(value) for value in clock if math.isfinite(value))
            return gaps, 1.0 if whole else 0.001
    return [_NAN] * len(series.line), 0.0


def _ways(
    series: Series, steps: list[float], wall: list[float], quantum: float, begins: list[int]
) -> list[tuple[list[float], str, float]]:
    """Lengths by each way that the series has, the best first."""
    found = []
    told = series.columns.get("step_s")
    if told is not None and told.way == "now":
        found.append((list(told.mean), "the step time that is told", 0.0))
    by_clock = [one / gap for one, gap in zip(wall, steps, strict=True)]
    found.append((by_clock, "the clock of the lines", quantum))
    if told is not None and told.way == "mean-so-far":
        seconds = undone(told.mean, steps, begins)
        found.append((seconds, "a mean since the start, undone", 0.0))
    for name, unit in (("samples_per_s", "batch_samples"), ("tokens_per_s", "batch_tokens")):
        rate = series.columns.get(name)
        if rate is not None:
            amount = _known(series.values(unit))
            means = [amount / one if one > 0 else _NAN for one in rate.mean]
            if rate.way == "mean-so-far":
                means = undone(means, steps, begins)
            basis = f"{name}" if unit in series.columns else f"{name}; lengths relative to others"
            found.append((means, basis, 0.0))
    if told is not None and told.way == "smoothed":
        found.append((list(told.mean), "a smoothed step time: changes show late", 0.0))
    for name in ("tokens_per_s_gpu", "tflops_gpu", "mfu_percent"):
        if name in series.columns:
            means = [1.0 / one if one > 0 else _NAN for one in series.values(name)]
            found.append((means, f"{name}; lengths relative to others", 0.0))
    return found


def _known(values: Sequence[float]) -> float:
    """The first that is a number; 1 where none is, for lengths relative to each other."""
    return next((one for one in values if one > 0), 1.0)


def undone(means: Sequence[float], steps: Sequence[float], begins: Sequence[int]) -> list[float]:
    """Of a mean since the start the values themselves: n_i a_i - n_(i-1) a_(i-1), of one step.

    `n` counts from the row at which a run began; a trainer that counts its first step elsewhere
    is off by little after some rows.
    """
    starts = set(begins)
    found = [_NAN] * len(means)
    count, before = 0.0, 0.0
    for at, mean in enumerate(means):
        if at in starts or not math.isfinite(mean):
            count, before = (1.0, mean) if at in starts else (count, before)
            continue
        gap = steps[at] if math.isfinite(steps[at]) else 1.0
        total = (count + gap) * mean
        found[at] = (total - before * count) / gap
        count, before = count + gap, mean
    return found
