"""What to do with a run that went wrong, in order: which checkpoint, what to move away, what to
change. Nothing is done here; what can be done for the user is described as moves and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from posixpath import basename, dirname, join
from shlex import quote

from msgspec import Struct, convert

from preflight import datafiles, strict_yaml
from preflight.diagnosis.checkpoint.trackers import pointers
from preflight.diagnosis.checkpoint.verdicts import Judged as Checkpoint
from preflight.diagnosis.divergence.conclude import Judged, status_of
from preflight.model import Finding, Status

#: Steps that a checkpoint is older than the first sign: what announced it may be older than that.
MARGIN_STEPS = 100
#: PaLM (2204.02311) skipped 200 to 500 batches; the first tenth of that before the sign.
_SKIP, _SKIP_BEFORE = 500, 50
#: OPT-175B went on with x 0.9 at the first drift, x 2/3 later.
_RATE, _CLIP, _BETA2 = 0.9, 0.5, 0.95
_WATCH_STEPS = 500
#: What an earlier rescue moved away lies in folders that begin so.
QUARANTINE = "quarantine-"
_NO_STEPS = (
    "resume from a checkpoint that is older than the first sign: this log tells no steps, so that "
    "which one that is cannot be said; give trainer_state.json, or the log with its bars"
)
#: A rate that was changed shows in the loss within so many steps.
_LEAD_STEPS = 10


class Framework(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of checks/data/rescue.yaml, whose head explains the fields."""

    id: str
    title: str
    styles: tuple[str, ...]
    layouts: tuple[str, ...]
    signal: str
    saves_on: tuple[str, ...]
    keep: str
    resume: str
    skip: str
    rate: str
    clip: str
    beta2: str
    bf16: str


class Move(Struct, frozen=True):
    """A path that is moved; it is never deleted."""

    path: str
    to: str


class Write(Struct, frozen=True):
    """A tracker that is to name another checkpoint."""

    path: str
    text: str


class Step(Struct, frozen=True):
    """`name`: of what can be done for the user, by `moves` and `writes`; "" where it is theirs."""

    text: str
    name: str = ""
    moves: tuple[Move, ...] = ()
    writes: tuple[Write, ...] = ()


class Plan(Struct, frozen=True):
    """`chosen`: what to go on from; None where nothing is whole and old enough."""

    framework: Framework
    steps: tuple[Step, ...]
    chosen: Checkpoint | None
    since: float  # the step of the first sign
    margin: float  # steps that the chosen one is older
    looked_at: int = 0  # checkpoints, without those that an earlier rescue had moved away
    counted: bool = False  # the log tells no steps


@cache
def frameworks() -> tuple[Framework, ...]:
    """The last is for what no other knows."""
    path = datafiles.root() / "checks" / "data" / "rescue.yaml"
    document = strict_yaml.load(path.read_text(encoding="utf-8"), "checks/data/rescue.yaml")
    return convert(document["rows"], tuple[Framework, ...])


def plan_of(one: Judged, checkpoints: Sequence[Checkpoint], run: str, stamp: str) -> Plan | None:
    """None of a run in which nothing failed. `run`: the folder of its checkpoints; `stamp`: names
    the folder that what is wrong is moved to."""
    checkpoints = [each for each in checkpoints if not each.found.path.startswith(QUARANTINE)]
    failed = [event for event in one.events if status_of(event) is Status.FAIL]
    if not failed:
        return None
    # What came back, or was left behind by a restart, is no beginning of this.
    since = min(event.step for event in one.events if event in failed or event.recovery == "never")
    framework = framework_of(one, checkpoints)
    good = [each for each in checkpoints if each.can_resume and each.found.step is not None]
    chosen = None if one.course.counted else _chosen(good, since)
    margin = since - (chosen.found.step or 0) if chosen else 0.0
    worst = one.worst
    suspects = one.causes[one.events.index(worst)] if worst is not None else []
    cause = suspects[0].cause if suspects else ""
    evidence, log = quote(join(run, "evidence")), quote(one.log.source)
    steps = (
        Step(f"keep the evidence: mkdir -p {evidence} && cp -p {log} {evidence}/"),
        Step(f"stop the run. {framework.title}: {framework.signal}. Its weights are not worth "
             "saving over a good checkpoint"),
        *(() if one.course.counted else _quarantine(checkpoints, chosen, since, stamp)),
        *_trackers(chosen),
        Step(f"keep the good one: {framework.keep}"),
        *map(Step, _changes(one, framework, cause, since)),
        Step(_NO_STEPS) if one.course.counted else
        _resume(framework, chosen, since, looked=bool(checkpoints)),
        Step(f"watch it: at a second event within {_WATCH_STEPS:,} steps go back one checkpoint "
             "further, with the next value"),
    )  # fmt: skip
    return Plan(framework, steps, chosen, since, margin, len(checkpoints), one.course.counted)


def framework_of(one: Judged, checkpoints: Sequence[Checkpoint]) -> Framework:
    """By the checkpoints, which say it for sure; else by the log."""
    layouts = {each.found.layout.id for each in checkpoints if each.found.layout}
    by_files = [row for row in frameworks() if layouts & set(row.layouts)]
    by_log = [row for row in frameworks() if one.course.series.style in row.styles]
    return (by_files or by_log or frameworks()[-1:])[0]


def _chosen(good: Sequence[Checkpoint], since: float) -> Checkpoint | None:
    """The newest that is older than the first sign by the margin; else the newest that is older."""
    older = [each for each in good if (each.found.step or 0) < since]
    safe = [each for each in older if (each.found.step or 0) <= since - MARGIN_STEPS]
    return max(safe or older, key=lambda each: each.found.step or 0, default=None)


def _quarantine(
    checkpoints: Sequence[Checkpoint], chosen: Checkpoint | None, since: float, stamp: str
) -> Iterator[Step]:
    """All that a resume could take by mistake: damaged ones, and those from after the sign; each
    within its own folder, for another may be another file system. What tells no step, or has
    weights alone, is left where it is."""
    own = chosen.found.step if chosen is not None else None
    first = since if own is None else float(own)
    moved = [
        each for each in checkpoints
        if each.found.path and each is not chosen
        and (each.finding.status is Status.FAIL
             or (each.found.step is not None and each.found.step >= first))
    ]  # fmt: skip
    if not moved:
        return
    moves = tuple(
        Move(each.found.shown,
             join(each.found.scan.source, f"{QUARANTINE}{stamp}", each.found.path))
        for each in moved
    )  # fmt: skip
    why = ", ".join(f"{basename(each.found.path)} ({_why(each, since)})" for each in moved[:6])
    yield Step(f"move away what must not be resumed from, {why}: {_commands(moves)}",
               "quarantine", moves)  # fmt: skip


def _commands(moves: Sequence[Move]) -> str:
    """One mv for each folder that something is moved to."""
    folders: dict[str, list[str]] = {}
    for one in moves:
        folders.setdefault(dirname(one.to), []).append(quote(one.path))
    return "; ".join(f"mkdir -p {quote(folder)} && mv {' '.join(paths)} {quote(folder)}/"
                     for folder, paths in folders.items())  # fmt: skip


def _why(each: Checkpoint, since: float) -> str:
    if each.finding.status is Status.FAIL:
        return each.finding.finding.partition(".")[2]
    step = each.found.step or 0
    return f"{step - since:,.0f} steps after the first sign" if step >= since else "too near to it"


def _trackers(chosen: Checkpoint | None) -> Iterator[Step]:
    for one in pointers(chosen) if chosen is not None else ():
        if not one.right:
            yield Step(f"let {basename(one.path)} name it: {one.command}", "tracker",
                       writes=(Write(one.path, one.text),))  # fmt: skip


def _changes(one: Judged, framework: Framework, cause: str, since: float) -> Iterator[str]:
    """What to change, by the first suspect; of several values the mildest."""
    rate = _rate(one, since)
    first, last = since - _SKIP_BEFORE, since + _SKIP - _SKIP_BEFORE
    skip = framework.skip.format(batches=_SKIP, steps=f"{first:.0f}-{last:.0f}")
    around = f"around step {since:,.0f}"
    changes = {
        "learning-rate": (framework.rate.format(value=rate),),
        "no-warmup": (framework.rate.format(value=rate), "and warm up over 2 / (1 - beta2) steps"),
        "bad-batch": (f"{skip}, {around}",),
        "optimizer-state": (framework.beta2.format(value=_BETA2),
                            framework.clip.format(value=_CLIP), f"{skip}, {around}"),
        "fp16-range": (framework.bf16, framework.rate.format(value=rate)),
        "data-order": (f"{skip}, {around}",),
        "silent-corruption": ("leave the suspected node out, and test it: preflight gpu-health "
                              "--stress",),
        "code": ("run one step with torch.autograd.set_detect_anomaly(True) before all else",),
    }.get(cause, (framework.rate.format(value=rate), f"{skip}, {around}"))  # fmt: skip
    yield f"change one thing, for {cause or 'an unknown cause'}: " + "; ".join(changes)


def _rate(one: Judged, since: float) -> str:
    """A little below the largest that it had before, not that which may be the fault."""
    track = one.course.track("lr")
    told = [value for row, value in zip(track.rows, track.values, strict=True)
            if one.course.steps[row] < since - _LEAD_STEPS]  # fmt: skip
    return f"{max(told) * _RATE:.3g}" if told else f"x {_RATE}"


def _resume(framework: Framework, chosen: Checkpoint | None, since: float, *, looked: bool) -> Step:
    if chosen is None and not looked:
        return Step(f"resume from the newest that is whole and older than step "
                    f"{since - MARGIN_STEPS:,.0f}: preflight checkpoint verify DIR")  # fmt: skip
    if chosen is None:
        return Step("there is nothing whole and old enough to resume from: look for copies "
                    "elsewhere (preflight checkpoint verify PATH), or begin anew")  # fmt: skip
    found = chosen.found
    told = framework.resume.format(
        path=found.shown, folder=dirname(found.shown), name=basename(found.shown), step=found.step
    )
    return Step(f"resume: {told}")


def plan_finding(plan: Plan | None) -> Finding | None:
    """The plan as it is printed: its steps are what to do, one after the other."""
    if plan is None:
        return None
    looked_at = plan.looked_at
    steps = tuple(
        f"{at}. {step.text}" + (f" (or --execute {step.name})" if step.name else "")
        for at, step in enumerate(plan.steps, 1)
    )
    if plan.chosen is not None:
        found = plan.chosen.found
        text = (
            f"{found.shown} is the newest of {looked_at} checkpoints that is whole and older than "
            f"the first sign at step {plan.since:,.0f}: by {plan.margin:,.0f} steps"
        )
        near = f"less than {MARGIN_STEPS} steps: it may hold the beginning of it"
        return Finding("rescue", Status.PASS, found.shown, text=text, fix=steps,
                       against=(near,) if plan.margin < MARGIN_STEPS else ())  # fmt: skip
    if plan.counted and looked_at:
        text = f"which of {looked_at} checkpoints is old enough is not known: no step is in the log"
        return Finding("rescue", Status.SKIP, text=text, fix=steps)
    text = (
        f"none of {looked_at} checkpoints is whole and older than the first sign at step "
        f"{plan.since:,.0f}" if looked_at else "no checkpoint was given: which to resume from is "
        "not known: preflight divergence-rescue LOG --checkpoints DIR"
    )  # fmt: skip
    status = Status.FAIL if looked_at else Status.SKIP
    return Finding("rescue", status, text=text, fix=steps)
