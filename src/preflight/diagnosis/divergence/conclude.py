"""Events and their causes as findings of a report; a run without any is healthy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from preflight.diagnosis.divergence.attribute import Hypothesis, hypotheses
from preflight.diagnosis.divergence.bounds import Kind, table
from preflight.diagnosis.divergence.detect import events_of
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.scene import scene_of
from preflight.diagnosis.divergence.track import Course, course_of, sigma_of
from preflight.facts.series import Log
from preflight.model import Evidence, Finding, Status

_LEAST_ROWS = 20
#: Rows after a spike below which it is too early to say that it stays.
_EARLY_ROWS = 5
_NO_NORM = (
    "the gradient norm, which moves before the loss, is not in this log: Megatron-LM prints it by "
    "default, Transformers with max_grad_norm, torchtitan by default"
)
#: Of one kind so many are told by themselves.
_OF_A_KIND = 3


class Judged(Struct):
    """One log with what happened in it."""

    log: Log
    course: Course
    events: list[Event]
    causes: dict[int, list[Hypothesis]]  # by the place of the event

    @property
    def worst(self) -> Event | None:
        """What is told first."""
        return min(self.events, key=_urgency) if self.events else None


def judged(log: Log, evidence: Sequence[str] = ()) -> Judged | None:
    """By the series with most rows of a loss; None where no series has one."""
    known = [one for one in log.series if {"loss", "grad_norm"} & set(one.columns)]
    if not known:
        return None
    series = max(known, key=lambda one: len(one.line))
    course = course_of(series, log.events)
    found = events_of(course)
    bounds = table().bounds
    causes = {
        at: hypotheses(scene_of(log, course, one, found, bounds), evidence)
        for at, one in enumerate(found)
    }
    return Judged(log, course, [_since_restarted(course, one) for one in found], causes)


def _since_restarted(course: Course, event: Event) -> Event:
    """What an earlier start ended in is over where a later one went back to before it: a log that
    is appended to keeps both."""
    later = course.begins[course.start(event.row) + 1 :]
    back = next((row for row in later if course.steps[row] <= event.step), None)
    if back is None:
        return event
    text = f"{event.text}; the run went back to step {course.steps[back]:,.0f} since"
    return replace(event, text=text, recovery="restarted", until=course.steps[back])


def _urgency(event: Event) -> tuple[int, int, int]:
    kind = table().kind(event.kind)
    return 0 if status_of(event) is Status.FAIL else 1, kind.rank, event.row


def status_of(event: Event) -> Status:
    """By its kind, and whether the run came back."""
    kind = table().kind(event.kind)
    if event.recovery == "restarted":
        return Status.WARN
    back = event.recovery in ("alone", "slowly")
    if event.kind == "spike" and not back and event.rows < _EARLY_ROWS:
        return Status.WARN  # most pass by themselves
    return kind.recovered if back and kind.recovered else kind.status


def findings_of(one: Judged) -> Iterator[Finding]:
    """The worst first; "healthy" without any, or what is missing to say so."""
    told: dict[str, int] = {}
    for event in sorted(one.events, key=_urgency):
        told[event.kind] = told.get(event.kind, 0) + 1
        if told[event.kind] <= _OF_A_KIND:
            yield _finding(one, event)
    for name, count in told.items():
        if count > _OF_A_KIND:
            text = f"{count - _OF_A_KIND} more of this kind: --format json has their steps"
            yield Finding(name, Status.SKIP, text=text)
    if not any(status_of(event) is Status.FAIL for event in one.events):
        yield from _healthy(one, few=not one.events)


def _finding(one: Judged, event: Event) -> Finding:
    kind: Kind = table().kind(event.kind)
    suspects = one.causes[one.events.index(event)]
    text, against = event.text, []
    if suspects:
        first = suspects[0]
        text += f"; first suspect: {table().suspect(first.cause).title}: {'; '.join(first.reasons)}"
        against = list(first.against)
        against += [f"or {table().suspect(other.cause).title}: {'; '.join(other.reasons)}"
                    for other in suspects[1:3]]  # fmt: skip
        against.append(f"what would tell: {table().suspect(first.cause).tells}")
    if one.course.counted:
        against.insert(0, "steps are rows of this log, which tells none")
    fix = [*kind.fix, *(table().suspect(suspects[0].cause).fix if suspects else ())]
    confidence = "high" if suspects and suspects[0].weight >= 4 else "medium"
    return Finding(
        event.kind, status_of(event), subject=suspects[0].cause if suspects else "",
        confidence=confidence, text=text, against=tuple(against), fix=tuple(fix),
        evidence=(Evidence("log", text=f"step {event.step:,.0f}", line=event.line,
                           source=one.log.source),),
        runbook=kind.runbook,
    )  # fmt: skip


def _healthy(one: Judged, *, few: bool) -> Iterator[Finding]:
    loss, norm = one.course.track("loss"), one.course.track("grad_norm")
    rows = max(len(loss.rows), len(norm.rows))
    source = one.log.source
    if rows < _LEAST_ROWS and not few:
        return
    if rows < _LEAST_ROWS:
        text = f"INCOMPLETE: only {rows} rows with a loss: {_LEAST_ROWS} show a spike"
        yield Finding("loss.unknown", Status.ERROR, source, text=text,
                      fix=("give the whole log",))  # fmt: skip
        return
    told = []
    if loss.rows:
        told.append(f"loss {loss.values[0]:.4g} -> {loss.values[-1]:.4g}")
    if norm.rows:
        middle = sorted(norm.values)[len(norm.values) // 2]
        told.append(f"gradient norm {middle:.3g}, spread {sigma_of(norm.values):.2g}")
    first, last = one.course.steps[0], one.course.steps[-1]
    count = f"{one.course.series.lines:,} lines of steps {first:,.0f} to {last:,.0f}"
    passed = "no event that stays" if one.events else "no sign of divergence"
    yield Finding("healthy", Status.PASS, text=f"{passed} in {count}: {'; '.join(told)}")
    if not norm.rows:
        yield Finding("gradient-norm", Status.SKIP, text=f"not looked at: {_NO_NORM}")
