"""What the wall time of a run went into: trained, saved, evaluated, lost, stood still."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from preflight.diagnosis.reading import Number, Share
from preflight.diagnosis.step_time.log_run import Run
from preflight.facts.series import Log

#: Llama 3 (2407.21783): over 90 % of the time was effective, with 466 interruptions in 54 days.
GOOD = 90.0
#: Of usual steps: a longer gap that nothing explains is a stop.
_STOOD = 10.0
#: The same beside a line that says why.
_SLOW = 1.3
_PARTS = ("trained", "repeated lost steps", "saved", "evaluated", "restarted", "stood still",
          "between steps")  # fmt: skip


def goodput_of(logs: Sequence[Log], run: Run) -> tuple[Share, ...]:
    """Of one log whose lines have the time; () where that is not told, or too little of it."""
    wall = [one for one in run.times.wall if math.isfinite(one)]
    if len(logs) != 1 or len(wall) < 10 or run.relative:
        return ()
    total = sum(wall)
    if total <= 0:
        return ()
    spent = dict.fromkeys(_PARTS, 0.0)
    again = _repeated(run)
    for at, name, seconds in _spent(run):
        spent["repeated lost steps" if name == "trained" and at in again else name] += seconds
    return tuple(
        Share(name, seconds, seconds / total) for name, seconds in spent.items()
        if seconds > 0.0005 * total
    )  # fmt: skip


def _repeated(run: Run) -> set[int]:
    """Rows of steps that had been reached before a restart, and are done again."""
    found, reached, first = set(), -math.inf, run.times.step[0]
    for at, step in enumerate(run.times.step):
        if at in run.times.begins and step <= first:
            reached = step  # another run in the same file
        elif step <= reached:
            found.add(at)
        elif math.isfinite(step):
            reached = step
    return found


def _spent(run: Run) -> Iterator[tuple[int, str, float]]:
    saves = run.by_row("save-begins", "save-ends")
    evaluations = run.by_row("eval-begins", "eval-ends")
    starts = set(run.times.begins)
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
        elif rest > _STOOD * run.spread.median:
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


def goodput_number(shares: Sequence[Share]) -> list[Number]:
    """The share that trained, against what long runs reach."""
    trained = next((one for one in shares if one.name == "trained"), None)
    if trained is None:
        return []
    return [
        Number("goodput", trained.share * 100, "%", source="by the clock of the log's lines",
               good=f"over {GOOD:g} % in Llama 3's run of 54 days"),
    ]  # fmt: skip
