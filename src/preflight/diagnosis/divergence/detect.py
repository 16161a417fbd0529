"""All events of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from preflight.diagnosis.divergence.bounds import Bounds, table
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.finite import finite_events
from preflight.diagnosis.divergence.loss import loss_events
from preflight.diagnosis.divergence.resume import in_turn, resume_events
from preflight.diagnosis.divergence.scale import scale_events
from preflight.diagnosis.divergence.track import Course
from preflight.diagnosis.divergence.trends import trend_events

_DETECTORS = (finite_events, loss_events, scale_events, trend_events, resume_events)


def events_of(course: Course, bounds: Bounds | None = None) -> list[Event]:
    """In the order of the log; what another event says already is left out, and of a kind that
    comes again and again those beyond the first hundreds."""
    bounds = bounds or table().bounds
    found = [one for detector in _DETECTORS for one in detector(course, bounds)]
    if course.of_policy:
        found = [one for one in found if one.column != "loss" or one.kind in _OF_ANY]
    found = sorted(_without_echoes(course, in_turn(found)), key=lambda one: one.row)
    told = Counter[str]()
    kept = []
    for one in found:
        told[one.kind] += 1
        if told[one.kind] <= _MOST:
            kept.append(one)
    return kept


_MOST = 500
#: What a loss shows whatever it measures. That of a policy rises and falls, and begins at 0.
_OF_ANY = {"not-finite", "loss-vanished"}
#: An event that is told -> those that say the same of the same start.
_SAY_THE_SAME = {
    "not-finite": ("loss-vanished", "frozen", "loss-zero"),
    "shift": ("slow-divergence", "oscillation"),
    "frozen": ("loss-zero", "scale-collapse"),
    "scale-collapse": ("scale-decline",),
    "spike": ("slow-divergence",),
    "oscillation": ("shift", "spike", "periodic-spikes"),
    "jump-after-resume": ("shift", "spike"),
}


def _without_echoes(course: Course, events: Sequence[Event]) -> list[Event]:
    speakers: dict[tuple[int, str], list[Event]] = {}  # by start and by whom they silence
    for two in events:
        for kind in _SAY_THE_SAME.get(two.kind, ()):
            if len(mine := speakers.setdefault((course.start(two.row), kind), [])) < _MOST:
                mine.append(two)
    return [
        one for one in events
        if not any(two is not one and _one_thing(one, two)
                   for two in speakers.get((course.start(one.row), one.kind), ()))
    ]  # fmt: skip


#: Times the rows that are looked at after a restart: what lost state costs is paid back slowly.
_SETTLES = 16


def _one_thing(one: Event, two: Event) -> bool:
    if two.kind == "jump-after-resume":
        return one.row - two.row <= _SETTLES * two.rows
    if two.kind == "spike":
        return two.recovery == "never"
    if two.kind == "oscillation":  # as long as it swings
        return one.row >= two.row - _SETTLES
    if two.kind == "shift" and one.kind == "oscillation":
        return two.row < one.row - _SETTLES
    return True
