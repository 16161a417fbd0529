"""What a restart changes: a loss that jumps or drops where it should go on; and spikes that come
in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from msgspec.structs import replace

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.track import Course, Track, sigma_of
from preflight.diagnosis.series.shape import period

_LEAST_BEFORE = 8
#: Spikes that make a rhythm.
_BEATS = 4


def resume_events(course: Course, bounds: Bounds) -> Iterator[Event]:
    """At each restart, against the steps just before it in the run before."""
    loss = course.track("loss")
    starts = list(course.starts())
    for (begin, middle), (_, end) in pairwise(starts):
        before, after = loss.part(begin, middle), loss.part(middle, end)
        if not after.rows or course.steps[after.rows[0]] <= course.steps[starts[0][0]]:
            continue  # another run in the same file
        reference = _around(course, before, course.steps[after.rows[0]])
        found = _changed(course, reference, after, bounds) if reference else None
        if found is not None:
            yield found


def _around(course: Course, track: Track, step: float) -> list[float]:
    """Values of the steps before the one from which it goes on, and of those done twice."""
    told = [value for row, value in zip(track.rows, track.values, strict=True)
            if course.steps[row] < step]  # fmt: skip
    near = told[-4 * _LEAST_BEFORE :]
    return near if len(near) >= _LEAST_BEFORE else []


def _changed(course: Course, before: Sequence[float], after: Track, bounds: Bounds) -> Event | None:
    rows = after.values[: bounds.resume_rows]
    if len(rows) < 3:
        return None
    usual, now = median(before), median(rows)
    steps = [b - a for a, b in pairwise(before)]
    noise = max(sigma_of(steps) / 1.4142, 1e-9)
    off = now - usual
    if abs(off) < max(3 * noise, bounds.resume_rise * abs(usual)):
        return None
    if off < 0 and _falls_so(before, off):
        return None
    row = after.rows[0]
    kind = "jump-after-resume" if off > 0 else "drop-after-resume"
    return Event(
        kind, row, course.steps[row], course.line(row),
        f"loss {usual:.4g} before the restart, {now:.4g} in the {len(rows)} rows after it "
        f"(noise {noise:.2g})", value=now, usual=usual, rows=len(rows),
    )  # fmt: skip


def _falls_so(before: Sequence[float], off: float) -> bool:
    """Whether it fell as fast before: early in a run a loss falls from row to row."""
    half = len(before) // 2
    trend = median(before[half:]) - median(before[:half])
    return trend < 0 and off > 3 * trend


def in_turn(events: Sequence[Event]) -> list[Event]:
    """Spikes at equal distances are one event: the data come in that order."""
    spikes = [one for one in events if one.kind == "spike"]
    spikes = [one for one in spikes if one.recovery != "never" or one.rows < _BEATS]
    found = period([one.step for one in spikes]) if len(spikes) >= _BEATS else None
    if found is None or found.hits < _BEATS or found.hits < 0.7 * len(spikes):
        return list(events)
    first = spikes[0]
    one = replace(
        first, kind="periodic-spikes",
        text=f"{len(spikes)} spikes, every {found.every} steps: {first.text} at the first",
        rows=len(spikes),
    )  # fmt: skip
    return [one, *(other for other in events if other not in spikes)]
