"""All events of a log."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.diagnosis.divergence.bounds import Bounds, table
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.finite import finite_events
from preflight.diagnosis.divergence.resume import in_turn, resume_events
from preflight.diagnosis.divergence.scale import scale_events
from preflight.diagnosis.divergence.spikes import loss_events
from preflight.diagnosis.divergence.track import Course
from preflight.diagnosis.divergence.trends import trend_events

_DETECTORS = (finite_events, loss_events, scale_events, trend_events, resume_events)


def events_of(course: Course, bounds: Bounds | None = None) -> list[Event]:
    """In the order of the log; what another event says already is left out."""
    bounds = bounds or table().bounds
    found = [one for detector in _DETECTORS for one in detector(course, bounds)]
    return sorted(_without_echoes(course, in_turn(found)), key=lambda one: one.row)


#: An event that is told -> those that say the same of the same start.
_SAY_THE_SAME = {
    "not-finite": ("loss-vanished", "frozen", "loss-zero"),
    "shift": ("slow-divergence", "oscillation"),
    "frozen": ("loss-zero", "scale-collapse"),
    "scale-collapse": ("scale-decline",),
    "spike": ("slow-divergence",),
    "jump-after-resume": ("shift", "spike"),
}


def _without_echoes(course: Course, events: Sequence[Event]) -> list[Event]:
    kept = []
    for one in events:
        others = (two for two in events if one.kind in _SAY_THE_SAME.get(two.kind, ()))
        if not any(_same_start(course, one, two) and _one_thing(one, two) for two in others):
            kept.append(one)
    return kept


#: Times the rows that are looked at after a restart: what lost state costs is paid back slowly.
_SETTLES = 16


def _one_thing(one: Event, two: Event) -> bool:
    if two.kind == "jump-after-resume":
        return one.row - two.row <= _SETTLES * two.rows
    if two.kind == "spike":
        return two.recovery == "never"
    return True


def _same_start(course: Course, one: Event, two: Event) -> bool:
    def start(event: Event) -> int:
        return sum(begin <= event.row for begin in course.begins)

    return start(one) == start(two)
