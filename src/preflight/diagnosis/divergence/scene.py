"""What stands around an event: the figures from which causes are argued."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.loss import odd_norms
from preflight.diagnosis.divergence.track import LEAST, Course
from preflight.facts.series import Log, LogEvent

#: Rows before an event that are its run-up, and after a restart that are its own.
_BEFORE, _AFTER_RESUME = 10, 20
_NEAR_STEPS = 20
#: A log that begins later does not show how the run began.
_FIRST_STEPS = 20


class Scene(Struct):
    """Shares and counts; None where the log does not tell. `norm_lead`: rows by which the gradient
    norm was odd before the loss; 0 in the same row. `scale_lead`: steps by which the loss scale
    fell before. `since_resume`: rows. `rate`: of the largest; `rate_jump`: times what it was."""

    event: Event
    rate: float | None = None
    rate_jump: float | None = None
    warmup_end: float | None = None  # step
    first_rate: float | None = None  # of the largest, in the first row
    norm_lead: int | None = None
    norm_told: bool = False
    scale_lead: float | None = None
    fp16: bool | None = None
    since_resume: int | None = None
    worst_rank: float | None = None  # loss of the worst rank, times the mean
    masked: bool = False
    again: tuple[float, ...] = ()  # steps of the same event in other starts
    rose: float | None = None  # steps since a rise that had not come back
    others: int = 0  # spikes beside it
    rank: int | None = None  # that had it first, as the log says
    hardware: tuple[LogEvent, ...] = ()


def scene_of(
    log: Log, course: Course, event: Event, events: Sequence[Event], bounds: Bounds
) -> Scene:
    """Everything that the log tells around the event."""
    found = Scene(event)
    _rates(course, event, found)
    _norms(course, event, bounds, found)
    scales = [one for one in events if one.kind in ("scale-collapse", "scale-decline", "frozen")]
    before = [event.step - one.step for one in scales if one.row <= event.row]
    found.scale_lead = max(before, default=None)
    scale = course.series.columns.get("loss_scale")
    if scale is not None:
        found.fp16 = any(one > 1 for one in scale.high)
    elif "bf16" in " ".join(log.told.values()).lower():
        found.fp16 = False
    resumed = [begin for begin in course.begins[1:] if begin <= event.row]
    if resumed:
        found.since_resume = event.row - resumed[-1]
    worst, loss = (
        course.series.values("worst_loss")[event.row],
        course.series.values("loss")[event.row],
    )
    if math.isfinite(worst) and math.isfinite(loss) and loss > 0:
        found.worst_rank = worst / loss
    found.masked = event.kind == "loss-zero" or (event.column == "grad_norm" and loss == 0.0)
    same = [one for one in events if one.kind == event.kind and one is not event]
    found.again = tuple(one.step for one in same if abs(one.step - event.step) <= 1)
    found.others = sum(one.kind in ("spike", "shift") for one in events if one is not event)
    if event.kind in ("not-finite", "loss-vanished"):
        risen = [event.step - one.step for one in events
                 if one.kind in _RISES and one.row < event.row and one.recovery == "never"
                 and course.start(one.row) == course.start(event.row)]  # fmt: skip
        found.rose = max(risen, default=None)
    _words(log, course, event, found)
    return found


_RISES = ("spike", "shift", "slow-divergence", "gradient-growth")


def _rates(course: Course, event: Event, found: Scene) -> None:
    track = course.track("lr")
    most = course.largest("lr")
    if most <= 0 or len(track.values) < 8:
        return
    begin = course.begins[course.start(event.row)]
    first, last = bisect_left(track.rows, begin), bisect_left(track.rows, event.row + 1)
    if first == last:
        return
    now = track.values[last - 1]
    found.rate = now / most
    earlier = track.values[max(first, last - 1 - _BEFORE) : last - 1]
    earlier = earlier or track.values[max(0, first - 1) : first]
    found.rate_jump = now / min(earlier) if earlier and min(earlier) > 0 else None
    if course.steps[track.rows[0]] <= _FIRST_STEPS:
        found.first_rate = track.values[0] / most
    full = next(at for at, one in enumerate(track.values) if one >= 0.99 * most)
    if 0 < full < len(track.values) - 1 and track.values[0] < 0.9 * most:
        found.warmup_end = course.steps[track.rows[full]]


def _norms(course: Course, event: Event, bounds: Bounds, found: Scene) -> None:
    begin = course.begins[course.start(event.row)]
    rows = course.track("grad_norm").rows
    last = bisect_left(rows, event.row + 2)
    found.norm_told = last - bisect_left(rows, begin) > LEAST
    odd = odd_norms(course, bounds)
    first = bisect_left(odd, max(begin, event.row - _BEFORE))
    near = [event.row - row for row in odd[first : bisect_left(odd, event.row + 2)]]
    found.norm_lead = max(near) if near else None


def _words(log: Log, course: Course, event: Event, found: Scene) -> None:
    """What other lines say of a rank or of hardware."""
    for one in log.events:
        text = one.text.lower()
        if ("nan" in text or "unexpected result" in text) and one.rank is not None:
            close = one.step is None or abs(one.step - event.step) <= _NEAR_STEPS
            found.rank = one.rank if close and found.rank is None else found.rank
        if one.kind == "error" and any(word in text for word in _HARDWARE):
            found.hardware = (*found.hardware, one)


_HARDWARE = ("xid", "ecc error", "uncorrectable", "persistent error", "transient error")


def after_resume(scene: Scene) -> bool:
    """Whether the event is of the first rows after a restart."""
    return scene.since_resume is not None and scene.since_resume <= _AFTER_RESUME
