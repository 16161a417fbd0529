"""Events of the loss: spikes, and what stays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event, Recovery
from preflight.diagnosis.divergence.levels import began, early, risen
from preflight.diagnosis.divergence.spikes import Spike, spikes
from preflight.diagnosis.divergence.track import LEAST, WINDOW, Course, Track
from preflight.diagnosis.series.shape import period


def loss_events(course: Course, bounds: Bounds) -> Iterator[Event]:
    """Spikes of the loss; one that stays is a shift."""
    whole = course.track("loss")
    odd = odd_norms(course, bounds)
    for number, (begin, end) in enumerate(course.starts()):
        track = whole.part(begin, end)
        step = course.steps[track.rows[0]] if track.rows else 0.0
        before = _before(course, whole, number, step)
        if len(track.rows) + len(before) < 2 * LEAST and step < bounds.startup_steps:
            continue  # the first steps of a run go up and down
        found = spikes(track, bounds, before)
        if not _in_turn([course.steps[track.rows[one.at]] for one in found]):
            found = [one for one in found if not one.lone or _near(odd, track.rows[one.at])]
        for one in found:
            if one.back is None and len(track.rows) - one.at > bounds.stays_rows:
                one.at = began(track, one.at)
        if not any(one.back is None for one in found):
            found += early(track, bounds) or risen(track, bounds)
        for spike in found:
            if not _asked_for(course, track.rows[spike.at], spike, bounds):
                yield _event(course, track, spike, bounds)


#: Rows within which a learning rate that is raised again raises the loss, and by how many times it
#: is raised.
_ROWS_AFTER, _RAISED = 20, 1.5


def _asked_for(course: Course, row: int, spike: Spike, bounds: Bounds) -> bool:
    """A schedule that starts anew, to no more than the rate had been, costs a little at first."""
    if spike.top > spike.usual * (1 + bounds.few_rise):
        return False
    rates = course.track("lr")
    last = bisect_left(rates.rows, row + 2)
    near = rates.values[max(0, bisect_left(rates.rows, row - _ROWS_AFTER)) : last]
    first = last - len(near)
    if not near or first <= 0 or min(near) <= 0:
        return False
    return near[-1] >= _RAISED * min(near) and near[-1] <= 1.05 * max(rates.values[:first])


def _in_turn(steps: Sequence[float]) -> bool:
    """At equal distances: that is no noise."""
    found = period(steps[:WINDOW]) if len(steps) >= _BEATS else None
    return found is not None and found.hits >= max(_BEATS, 0.7 * len(steps[:WINDOW]))


_BEATS = 5


def odd_norms(course: Course, bounds: Bounds) -> list[int]:
    """Rows in which the gradient norm is far above what is usual."""
    if "grad_norm" not in course.odd:
        whole, rows = course.track("grad_norm"), list[int]()
        for begin, end in course.starts():
            track = whole.part(begin, end)
            rows += [track.rows[one.at] for one in spikes(track, bounds) if not one.lone]
        course.odd["grad_norm"] = rows
    return course.odd["grad_norm"]


def _near(rows: Sequence[int], row: int) -> bool:
    at = bisect_left(rows, row - 1)
    return at < len(rows) and rows[at] <= row + 1


def _before(course: Course, track: Track, number: int, step: float) -> list[float]:
    """The last values of an earlier start, of steps before the one from which it goes on."""
    for begin, end in reversed([*zip(course.begins[:number], course.begins[1:], strict=False)]):
        if course.steps[begin] < step:
            near = track.part(begin, end)
            return [top for row, top in zip(near.rows, near.tops, strict=True)
                    if step - WINDOW <= course.steps[row] < step][-LEAST:]  # fmt: skip
    return []


def _event(course: Course, track: Track, spike: Spike, bounds: Bounds) -> Event:
    row = track.rows[spike.at]
    step = course.steps[row]
    back = None if spike.back is None else course.steps[track.rows[spike.back]]
    last = len(track.rows) - 1 if spike.back is None else spike.back
    lasted = last - spike.at
    recovery: Recovery = "never"
    if back is not None:
        recovery = "alone" if back - step < bounds.alone_steps else "slowly"
    stays = back is None and lasted >= bounds.stays_rows
    change = f"loss {spike.usual:.4g} -> {spike.top:.4g}"
    after = {
        "alone": f"back after {_steps(back, step)}", "slowly": f"back after {_steps(back, step)}",
        "never": f"not back in the {lasted + 1:,} rows that follow", "": "",
    }[recovery]  # fmt: skip
    return Event(
        "shift" if stays else "spike", row, step, course.line(row), f"{change}, {after}",
        value=spike.top, usual=spike.usual, until=back, recovery=recovery, rows=max(1, lasted),
    )  # fmt: skip


def _steps(back: float | None, step: float) -> str:
    count = 0 if back is None else back - step
    return f"{count:,.0f} step{'s' if count != 1 else ''}"
