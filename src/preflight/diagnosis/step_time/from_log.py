"""What training logs tell of the step, of the run's time, and of what they cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Curve, Lack, Mark, Number, Reading, Sign
from preflight.diagnosis.series.shape import shift
from preflight.diagnosis.series.thin import thinned
from preflight.diagnosis.step_time.goodput import goodput_number, goodput_of, stood_signs
from preflight.diagnosis.step_time.log_lacks import lacks_of
from preflight.diagnosis.step_time.log_numbers import mfu_sign, numbers_of
from preflight.diagnosis.step_time.log_parts import fraction_signs, parts_of, told_causes
from preflight.diagnosis.step_time.log_ranks import rank_signs, tells_ranks
from preflight.diagnosis.step_time.log_run import Run, run_of
from preflight.diagnosis.step_time.log_shape import ENOUGH, shape_signs
from preflight.diagnosis.step_time.log_training import training_signs
from preflight.diagnosis.step_time.log_transport import transport_signs
from preflight.facts.series import Log

_POINTS = 1000  # of a curve
_MARKS = 1000  # in it, of a kind


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """All logs together; the run with the most steps gives the figures of the step. None where
    none of them has a step: what else they say is for others."""
    logs: list[Log] = [one for one in facts.get("log", []) if one.series]
    if not logs:
        return None
    runs = [run for log in logs if (run := run_of(log)) is not None]
    signs = [sign for log in logs for sign in (*training_signs(log), *transport_signs(log))]
    name = logs[0].source if len(logs) == 1 else f"{len(logs)} logs"
    notes = tuple(_notes(logs))
    if not runs:
        lack = Lack(("drift", "irregular", "data-wait"), "no length of a step is in it",
                    "a log with a time on each line: python train.py 2>&1 | ts")  # fmt: skip
        return Reading(name, signs=tuple(signs), lacks=(lack,), notes=notes,
                       covers=_of_training(logs))  # fmt: skip
    longest = max(runs, key=lambda run: len(run.kept))
    numbers = list(numbers_of(longest, asked))
    shares = goodput_of(runs)
    numbers += goodput_number(shares)
    signs += stood_signs(shares, longest)
    for run in runs:
        signs += [*fraction_signs(run), *rank_signs(run), *shape_signs(run)]
    signs += _low_mfu(longest, numbers, signs)
    relative = longest.relative
    return Reading(
        name, steps=len(longest.kept), step_s=None if relative else longest.spread.median,
        low_s=None if relative else longest.spread.low,
        high_s=None if relative else longest.spread.high, signs=tuple(signs),
        covers=_covers(longest) | _of_training(logs) | ({"downtime"} if shares else set()),
        lacks=tuple(lacks_of(longest)),
        numbers=tuple(numbers), parts=parts_of(longest), curves=(_curve(longest),),
        goodput=shares, notes=notes,
    )  # fmt: skip


def _low_mfu(run: Run, numbers: list[Number], signs: Sequence[Sign]) -> Iterator[Sign]:
    """Only where nothing else says why."""
    from preflight.diagnosis.decide import status_of

    if not any(status_of(one) is not None for one in signs):
        yield from mfu_sign(run, numbers)


def _covers(run: Run) -> frozenset[str]:
    found = set(told_causes(run))
    if len(run.kept) >= ENOUGH:
        found.add("drift")
        if run.each_step and run.fine:
            found |= {"irregular", "data-wait-periodic"}
        if run.events("save-begins", "save-ends"):
            found.add("checkpoint-stall")
    if tells_ranks(run):
        found.add("straggler")
    return frozenset(found)


def _of_training(logs: Sequence[Log]) -> frozenset[str]:
    told = any({"loss", "grad_norm"} & set(one.columns) for log in logs for one in log.series)
    return frozenset({"not-training"}) if told else frozenset()


def _notes(logs: Sequence[Log]) -> Iterator[str]:
    for log in logs:
        folded = max((one.fold for one in log.series), default=1)
        if folded > 1:
            yield (f"{log.source}: {folded} neighbouring lines are one row: single slow steps are "
                   "less than they were")  # fmt: skip
        if log.truncated:
            yield f"{log.source} was read in part"
        yield from (f"{log.source}: not understood: {line}" for line in log.unread)


def _curve(run: Run) -> Curve:
    """Step time over steps, thinned so that slow and fast ones stay seen; marks at what happened
    and where it changed for good."""
    # The first steps of a start compile and tune: they would take the whole scale.
    rows = [at for at in run.kept if math.isfinite(run.times.seconds[at])]
    places = thinned([run.times.seconds[at] for at in rows], _POINTS)
    marks = [*_changes(run), *_happened(run)]
    return Curve(
        "step time", "x" if run.relative else "s",
        tuple(run.times.step[rows[at]] for at in places),
        tuple(run.times.seconds[rows[at]] for at in places), tuple(dict.fromkeys(marks)),
        count=len(rows),
    )  # fmt: skip


def _happened(run: Run) -> Iterator[Mark]:
    """Starts and saves; both ends of a save are one."""
    starts = run.times.begins[1:_MARKS]
    yield from (Mark(run.times.step[at], "start") for at in starts)
    for event in run.events("save-begins", "save-ends")[:_MARKS]:
        if event.step is not None:
            yield Mark(float(event.step), "save")


def _changes(run: Run) -> Iterator[Mark]:
    """Where steps became longer or shorter, and stayed so."""
    found = shift(run.seconds())
    if found is not None:
        label = "drift begins" if found.gradual else "shift"
        yield Mark(run.times.step[run.kept[found.begin]], f"{label} x {found.ratio:.2f}")
