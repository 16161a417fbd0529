"""The loss scale of fp16: its search at the start is usual; a fall later tells of what comes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.track import Course, Track


def scale_events(course: Course, bounds: Bounds) -> Iterator[Event]:
    """Collapse: falls one after the other, or to the floor. Decline: many powers of two below
    what it had been, over a long time."""
    whole = course.track("loss_scale")
    for begin, end in course.starts():
        track = whole.part(begin, end)
        if len(track.rows) < 8 or max(track.values) <= 1:
            continue
        found = _collapse(course, track, bounds) or _decline(course, track, bounds)
        if found is not None:
            yield found


def _collapse(course: Course, track: Track, bounds: Bounds) -> Event | None:
    falls: list[int] = []
    for at in range(1, len(track.values)):
        before, now = track.values[at - 1], track.values[at]
        if now > before:
            falls.clear()
        if not now < before:
            continue
        falls = [one for one in falls if at - one < 2 * bounds.halvings] + [at]
        powers = math.log2(track.values[falls[0] - 1] / max(now, 2.0**-40))
        # The search begins high above; where it goes on beyond the start, or below 1, it is none.
        late = course.steps[track.rows[at]] > bounds.startup_steps
        several = len(falls) > 1 or powers >= 2 * bounds.halvings
        if powers >= bounds.halvings and several and (late or now <= 1):
            return _event(course, track, "scale-collapse", falls[0], at)
    return None


def _decline(course: Course, track: Track, bounds: Bounds) -> Event | None:
    """From the largest value after the start to the end of the log."""
    started = bounds.startup_steps
    later = [at for at, row in enumerate(track.rows) if course.steps[row] > started]
    if not later:
        return None
    most = max(later, key=lambda at: track.values[at])
    last = [one for one in track.values[-max(4, len(later) // 10) :] if one > 0]
    if not last or track.values[most] <= 0:
        return None
    powers = math.log2(track.values[most] / max(last))
    if powers < bounds.decline_powers:
        return None
    first = next(at for at in range(most + 1, len(track.values))
                 if track.values[at] < track.values[most])  # fmt: skip
    return _event(course, track, "scale-decline", first, len(track.values) - 1)


def _event(course: Course, track: Track, kind: str, first: int, last: int) -> Event:
    row = track.rows[first]
    low = min(track.values[first : last + 1])
    return Event(
        kind, row, course.steps[row], course.line(row),
        f"the loss scale falls from {track.values[first - 1]:,.6g} to {low:,.6g} between step "
        f"{course.steps[row]:,.0f} and {course.steps[track.rows[last]]:,.0f}",
        column="loss_scale", value=low, usual=track.values[first - 1], recovery="never",
        rows=last - first + 1,
    )  # fmt: skip
