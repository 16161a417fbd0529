"""What the wall time of a run went into: trained, saved, evaluated, lost, stood still."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from preflight.diagnosis.reading import Number, Share, Sign
from preflight.diagnosis.step_time.log_run import Run
from preflight.diagnosis.wording import duration, percent

#: Llama 3 (2407.21783): over 90 % of the time was effective, with 466 interruptions in 54 days.
GOOD = 90.0
#: Of usual steps: a longer gap that nothing explains is a stop.
_STOOD = 10.0
#: Fewer rows with a time say nothing.
_FEW = 10
#: Ticks of a clock of seconds that are a stop.
_QUANTA = 4
#: Unix seconds; what is less was told without a year.
_DATED = 1e9
#: The same beside a line that says why.
_SLOW = 1.3
#: Of the wall time: less is not told. Shorter is the start of any run, and a hiccup.
_LOST = 0.02
_LEAST_S = {"stood still": 60.0, "restarted": 600.0}
_WORDS = {"stood still": "stood still for", "restarted": "was down for"}
_PARTS = ("trained", "repeated lost steps", "saved", "evaluated", "restarted", "stood still",
          "between steps")  # fmt: skip


def goodput_of(runs: Sequence[Run]) -> tuple[Share, ...]:
    """Of logs whose lines have the time: one, or one after the other as restarts leave them; ()
    where that is not told, too little of it, or where they ran at once."""
    runs = [one for one in runs if not one.relative and len(_wall(one)) >= _FEW]
    spans = [_span(one) for one in runs]
    if len(runs) > 1 and None in spans:
        return ()
    # A log without a date is alone, so that it needs no order.
    ordered = sorted(zip(spans, runs, strict=True), key=lambda one: one[0] or (0.0, 0.0))
    spent, reached, ended = dict.fromkeys(_PARTS, 0.0), -math.inf, math.inf
    for lasted, run in ordered:
        if lasted and lasted[0] < ended < math.inf:
            return ()
        if run.times.step[0] <= ordered[0][1].times.step[0]:
            reached = -math.inf  # begun anew
        again, reached = _repeated(run, reached)
        for at, name, seconds in _spent(run):
            spent["repeated lost steps" if name == "trained" and at in again else name] += seconds
        if lasted:
            spent["restarted"] += max(0.0, lasted[0] - ended)
            ended = lasted[1]
    total = sum(spent.values())
    return tuple(
        Share(name, seconds, seconds / total) for name, seconds in spent.items()
        if total > 0 and seconds > 0.0005 * total
    )  # fmt: skip


def _wall(run: Run) -> list[float]:
    return [one for one in run.times.wall if math.isfinite(one)]


def _span(run: Run) -> tuple[float, float] | None:
    """From when until when, Unix seconds, of lines that tell the date."""
    known = [one for one in run.series.values("time_s") if math.isfinite(one)]
    if not known or min(known) < _DATED:
        return None
    return min(known), max(known)


def _repeated(run: Run, reached: float) -> tuple[set[int], float]:
    """Rows of steps that had been reached before a restart, and are done again; how far it got.
    `reached`: by the log before."""
    found, first = set(), run.times.step[0]
    for at, step in enumerate(run.times.step):
        if at in run.times.begins and at and step <= first:
            reached = step  # another run in the same file
        elif step <= reached:
            found.add(at)
        elif math.isfinite(step):
            reached = step
    return found, reached


def _spent(run: Run) -> Iterator[tuple[int, str, float]]:
    saves = run.by_row("save-begins", "save-ends")
    evaluations = run.evaluated()
    starts = set(run.times.begins)
    # A clock of whole seconds goes on by one whatever a step takes.
    quantum = _QUANTA * all(one == int(one) for one in _wall(run))
    for at, gone in enumerate(run.times.wall):
        if not math.isfinite(gone):
            continue
        if at in starts:
            yield at, "restarted", gone
            continue
        trained = min(gone, _usual(run, at, explained=at in saves or at in evaluations))
        yield at, "trained", trained
        rest = gone - trained
        if at in saves:
            yield at, "saved", rest
        elif at in evaluations:
            yield at, "evaluated", rest
        elif rest > max(_STOOD * run.spread.median, quantum):
            yield at, "stood still", rest
        else:
            yield at, "between steps", rest


def _usual(run: Run, at: int, *, explained: bool) -> float:
    """Seconds that the steps of a row take, by their own time where it is told: not where that
    time holds a save, an evaluation or a stop."""
    steps, usual = run.times.steps[at], run.spread.median
    told = run.times.seconds[at] if "told" in run.times.basis else usual
    most = (_SLOW if explained else _STOOD) * usual
    return (steps if steps > 0 else 1.0) * (told if told <= most else usual)


def stood_signs(shares: Sequence[Share], run: Run) -> Iterator[Sign]:
    """Time in which nothing moved and no line says why, and time lost to restarts."""
    for one in shares:
        least = _LEAST_S.get(one.name)
        if least is not None and one.seconds >= least and one.share >= _LOST:
            what = "no line says why" if one.name == "stood still" else "between its starts"
            yield Sign(
                "downtime", f"the run {_WORDS[one.name]} {duration(one.seconds)}, "
                f"{percent(one.share)} of its time by the clock of the log: {what}",
                share=one.share, confidence="high", evidence=(run.evidence(run.kept[0]),),
            )  # fmt: skip


def goodput_number(shares: Sequence[Share]) -> list[Number]:
    """The share that trained, against what long runs reach."""
    trained = next((one for one in shares if one.name == "trained"), None)
    if trained is None:
        return []
    return [
        Number("goodput", trained.share * 100, "%", source="by the clock of the log's lines",
               good=f"over {GOOD:g} % in Llama 3's run of 54 days"),
    ]  # fmt: skip
