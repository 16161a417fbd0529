"""What is no number, and what hides it: a field that vanishes, a loss of 0, steps that are all
skipped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.track import Course
from preflight.facts.series import Column

#: Rows in a row that make it more than a hiccup of the log.
_LASTING = 3
#: Of the rows before, so many have the field.
_MOSTLY = 0.9
_FIELDS = ("loss", "grad_norm", "val_loss", "param_norm")


def finite_events(course: Course, bounds: Bounds) -> Iterator[Event]:
    """For each start of the run the first of each kind."""
    skips = _skipped(course)
    for begin, end in course.starts():
        for one in (
            _not_finite(course, begin, end, skips), _vanished(course, begin, end),
            _zero(course, begin, end, bounds), _frozen(course, begin, end, skips),
        ):  # fmt: skip
            if one is not None:
                yield one


def _skipped(course: Course) -> list[bool]:
    """Rows in which the scaler left steps out: there a gradient that is no number is its work."""
    count = len(course.steps)
    told = [False] * count
    for name in ("skipped", "nan_steps"):
        column = course.series.columns.get(name)
        if column is not None and name == "skipped":
            told = [was or one > 0 for was, one in zip(told, _per_row(column), strict=True)]
    scale = course.series.columns.get("loss_scale")
    if scale is not None:
        for at in range(1, count):
            told[at] = told[at] or scale.low[at] < scale.low[at - 1]
    return told


def _per_row(column: Column) -> Sequence[float]:
    """Of a count since the start what came to it in each row."""
    values = column.high
    if column.way != "sum" and not _only_rises(values):
        return values
    return [0.0, *(two - one for one, two in pairwise(values))]


def _only_rises(values: Sequence[float]) -> bool:
    known = [one for one in values if math.isfinite(one)]
    rises = all(a <= b for a, b in pairwise(known))
    return rises and bool(known) and known[-1] > 1


def _not_finite(course: Course, begin: int, end: int, skips: Sequence[bool]) -> Event | None:
    bad: dict[str, list[int]] = {}
    for name in _FIELDS:
        column = course.series.columns.get(name)
        rows = sorted(row for row in (column.bad if column else ()) if begin <= row < end)
        if name != "loss":
            rows = [row for row in rows if not skips[row]]
        if rows:
            bad[name] = rows
    counted = course.series.columns.get("nan_steps")
    if counted is not None:
        rows = [row for row in range(begin, end) if counted.high[row] > 0 and not skips[row]]
        bad |= {"nan_steps": rows} if rows else {}
    if not bad:
        return None
    name, row = min(((name, rows[0]) for name, rows in bad.items()), key=lambda one: one[1])
    last = max(rows[-1] for rows in bad.values())
    count = len({row for rows in bad.values() for row in rows})
    over = last < end - 1 and last - row < (end - row) / 2
    masked = ""
    if "loss" not in bad and name == "grad_norm":
        shown = course.series.values("loss")[row]
        masked = (
            f"; the loss is shown as {shown:.4g}: the trainer hides what is no number"
            if math.isfinite(shown) else "; the loss of it is not shown"
        )  # fmt: skip
    told = ", ".join(f"{field} in {len(rows):,}" for field, rows in bad.items())
    return Event(
        "not-finite", row, course.steps[row], course.line(row),
        f"{name} is no number from step {course.steps[row]:,.0f} on: {told} of the "
        f"{end - row:,} rows that follow{masked}", column=name, rows=count,
        until=course.steps[last + 1] if over else None, recovery="alone" if over else "never",
    )  # fmt: skip


def _vanished(course: Course, begin: int, end: int) -> Event | None:
    """Megatron prints the loss only where it is no NaN."""
    column = course.series.columns.get("loss")
    if column is None or course.series.style not in ("megatron", "megatron-deepspeed"):
        return None
    there = [math.isfinite(column.mean[row]) or row in column.bad for row in range(begin, end)]
    first = next((at for at, one in enumerate(there) if not one and at), None)
    if first is None or sum(there[:first]) < _MOSTLY * first or any(there[first:]):
        return None
    lasting = len(there) - first
    if lasting < _LASTING and not _norm_is_bad(course, begin + first):
        return None
    row = begin + first
    return Event(
        "loss-vanished", row, course.steps[row], course.line(row),
        f"the loss is not printed any more from step {course.steps[row]:,.0f} on ({lasting:,} "
        "rows): it is no number", recovery="never", rows=lasting,
    )  # fmt: skip


def _norm_is_bad(course: Course, row: int) -> bool:
    column = course.series.columns.get("grad_norm")
    return column is not None and any(row <= at for at in column.bad)


def _zero(course: Course, begin: int, end: int, bounds: Bounds) -> Event | None:
    """Exactly 0, for several rows."""
    values = course.series.values("loss")
    run = 0
    for row in range(begin, end):
        run = run + 1 if values[row] == 0.0 else 0
        if run == _LASTING:
            first = row - run + 1
            if _may_be_zero(course, begin, first, bounds):
                return None
            rows = sum(values[at] == 0.0 for at in range(first, end))
            return Event(
                "loss-zero", first, course.steps[first], course.line(first),
                f"the loss is exactly 0 in {rows:,} rows from step {course.steps[first]:,.0f} on",
                value=0.0, recovery="never", rows=rows,
            )  # fmt: skip
    return None


#: Columns that tell of reinforcement learning, by how they begin.
_REWARDS = ("reward", "kl", "train/reward", "train/kl", "critic/", "actor/", "objective/")


def _may_be_zero(course: Course, begin: int, first: int, bounds: Bounds) -> bool:
    """Whether it had been learned away, or is that of reinforcement learning, which is 0 where
    the policy is still the one that it is held against."""
    if any(name.startswith(_REWARDS) for name in course.series.columns):
        return True
    values = course.series.values("loss")
    known = [one for one in values[max(begin, first - 16) : first] if math.isfinite(one)]
    return bool(known) and median(known) < bounds.zero_from


def _frozen(course: Course, begin: int, end: int, skips: Sequence[bool]) -> Event | None:
    """Every step is skipped until the end: the weights stand still."""
    row = end
    while row > begin and skips[row - 1]:
        row -= 1
    skipped = course.series.columns.get("skipped")
    if end - row < 2 * _LASTING or skipped is None:
        return None
    if end - row < 5 * _LASTING and row == begin:
        return None  # a short log of the search for the scale
    return Event(
        "frozen", row, course.steps[row], course.line(row),
        f"each of the last {end - row:,} rows skips its steps: the weights have stood still since "
        f"step {course.steps[row]:,.0f}", column="skipped", recovery="never", rows=end - row,
    )  # fmt: skip
