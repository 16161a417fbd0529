"""What the lengths of steps show by themselves: stalls at saves, periods, changes that stay."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from preflight.diagnosis.reading import Sign
from preflight.diagnosis.series.shape import Shift, period, shift, slow
from preflight.diagnosis.step_time.log_parts import grown_part
from preflight.diagnosis.step_time.log_run import Run, median_of, span, when
from preflight.facts.series import LogEvent

_SAVES = ("save-begins", "save-ends")
#: Events that explain a slow step: kinds -> cause, in this order.
_EXPLAINS: tuple[tuple[tuple[str, ...], str], ...] = (
    (_SAVES, "checkpoint-stall"),
    (("eval-begins", "eval-ends"), ""),  # evaluation is work that was asked for
    (("started", "loaded"), ""),
    (("recompile",), "recompile"),
    (("gc",), "python-gc"),
    (("allocator-flush", "alloc-retry"), "allocator"),
)
#: Of a coarse clock, that a slow row lasts at least.
_QUANTA = 4
#: Fewer rows show no shape.
ENOUGH = 20
#: Of workers of a loader: more are rare, and longer periods are those of saves and evaluations.
_MOST_WORKERS = 16


class Stalls(Struct):
    """Rows that took longer than usual, under one cause."""

    cause: str
    rows: list[int] = []
    lost_s: float = 0.0
    events: list[LogEvent] = []


def shape_signs(run: Run) -> Iterator[Sign]:
    """Of a run with enough rows."""
    total = _total(run)
    if len(run.kept) < ENOUGH or total <= 0:
        return
    stalls = _stalls(run)
    for one in stalls.values():
        if one.cause and one.cause != "?":
            yield _stalled(run, one, total)
    yield from _gaps(run)
    rest = stalls.get("?")
    if rest is not None and (run.fine or _plain(run, rest)):
        yield from _unexplained(run, rest, total)
    yield from _changed(run)


def _total(run: Run) -> float:
    steps = run.times.steps
    return sum(
        run.times.seconds[at] * (steps[at] if math.isfinite(steps[at]) else 1) for at in run.kept
    )


def _stalls(run: Run) -> dict[str, Stalls]:
    """Slow rows by what the log says happened in them; "?" where it says nothing."""
    found: dict[str, Stalls] = {}
    seconds = run.seconds()
    places = slow(seconds)
    late = set(places)
    base = median_of([one for at, one in enumerate(seconds) if at not in late])
    evaluated = run.evaluated()
    explains = [(cause, run.by_row(*kinds)) for kinds, cause in _EXPLAINS]
    for place in places:
        at = run.kept[place]
        cause, events = next(((why, rows[at]) for why, rows in explains if at in rows), ("?", []))
        if cause == "?" and at in evaluated:
            cause = ""  # nanoGPT's time of a step has its evaluation in it
        one = found.setdefault(cause, Stalls(cause))
        steps = run.times.steps[at]
        one.rows.append(at)
        one.lost_s += (seconds[place] - (base or run.spread.median)) * (steps if steps > 0 else 1)
        one.events += events
    return found


def _stalled(run: Run, one: Stalls, total: float) -> Sign:
    share = one.lost_s / total
    text = (
        f"{len(one.rows):,} of {len(run.kept):,} rows took longer, {_each(run, one)}: "
        f"{share * 100:.2g} % of the time of all steps"
    )
    evidence = tuple(run.evidence(at) for at in one.rows[:2])
    return Sign(
        one.cause, text, share=share, seconds=one.lost_s / _count(run), evidence=evidence,
        confidence="high" if len(one.rows) >= 3 else "medium",
        against=(f"steps without such a line: {span(run)}",),
    )  # fmt: skip


def _plain(run: Run, rest: Stalls) -> bool:
    """Whether each of the slow rows is one even by a clock as coarse as this."""
    least = _QUANTA * run.times.quantum_s
    return all(run.times.seconds[at] * max(1.0, run.times.steps[at]) >= least for at in rest.rows)


def _each(run: Run, one: Stalls) -> str:
    if run.relative:
        return "beside a line that says why"
    return f"{one.lost_s / len(one.rows):.3g} s each, beside a line that says why"


def _count(run: Run) -> float:
    return sum(max(1.0, run.times.steps[at]) for at in run.kept if run.times.steps[at] > 0) or 1.0


def _gaps(run: Run) -> Iterator[Sign]:
    """Wall time between rows that is not in the step times, at saves: trainers leave saving out of
    what they call a step."""
    saves = run.by_row(*_SAVES)
    if not saves or "told" not in run.times.basis:
        return
    lost, rows, wall = 0.0, [], 0.0
    for at in run.kept:
        gone = run.times.wall[at]
        if not math.isfinite(gone):
            continue
        wall += gone
        beside = gone - run.times.seconds[at] * max(1.0, run.times.steps[at])
        if beside > max(1.0, 0.1 * run.spread.median) and at in saves:
            lost += beside
            rows.append(at)
    if rows and wall > 0:
        yield Sign(
            "checkpoint-stall", f"{len(rows)} saves, {lost / len(rows):.3g} s each between steps: "
            f"{lost / wall * 100:.2g} % of the wall time", share=lost / wall,
            seconds=lost / _count(run), evidence=tuple(run.evidence(at) for at in rows[:2]),
            confidence="high" if len(rows) >= 2 else "medium",
        )  # fmt: skip


def _unexplained(run: Run, rest: Stalls, total: float) -> Iterator[Sign]:
    share = rest.lost_s / total
    evidence = tuple(run.evidence(at) for at in rest.rows[:3])
    found = period([run.times.step[at] for at in rest.rows]) if run.each_step else None
    workers = run.log.told.get("workers", "")
    is_loader = found is not None and workers == str(found.every)
    if found is not None and (is_loader or found.every <= _MOST_WORKERS):
        held = f"num_workers is {workers}" if workers else "num_workers is not in this log"
        yield Sign(
            "data-wait-periodic", f"every {found.every} steps one is slow: {found.hits} of "
            f"{found.slow} slow steps, {share * 100:.2g} % of the time; a loader with "
            f"{found.every} workers that are too slow does this",
            share=share, seconds=rest.lost_s / _count(run), evidence=evidence,
            # Saving or logging that leaves no line looks the same.
            confidence="high" if is_loader else "low",
            against=("no line about saving, evaluation or garbage collection stands beside them",
                     held),
            fix=(f"is num_workers {found.every}? then more workers, or less work in each; else "
                 f"look for what the script does every {found.every} steps",),
        )  # fmt: skip
        return
    longest = max(run.times.seconds[at] for at in rest.rows)
    every = f", every {found.every:,} steps" if found else ""
    unit = "times the usual" if run.relative else "s"
    size = longest / run.spread.median if run.relative else longest
    text = (
        f"{len(rest.rows):,} of {len(run.kept):,} rows are slow{every}, the longest {size:.3g} "
        f"{unit}; nothing in the log says why"
    )
    yield Sign(
        "irregular", text, share=share, seconds=rest.lost_s / _count(run), evidence=evidence,
        confidence="medium",
        against=(f"usual steps: {span(run)}", "no period of a loader's workers in them"),
    )  # fmt: skip


def _changed(run: Run) -> Iterator[Sign]:
    """Slower than before, and it stays so."""
    seconds = run.seconds()
    found = shift(seconds)
    if found is None or found.after <= found.before:
        return
    at = run.kept[found.at]
    other = _work_changed(run, found)
    share = 1 - found.before / found.after
    how = "grew steadily" if found.gradual else "rose at once"
    amount = "" if run.relative else f" from {found.before:.3g} to {found.after:.3g} s"
    if other:
        return
    if (grown := grown_part(run, found)) is not None:
        yield grown
        return
    yield Sign(
        "drift", f"a step {how}{amount}, {(found.ratio - 1) * 100:.2g} % longer",
        share=share, seconds=None if run.relative else found.after - found.before,
        since=when(run, run.kept[found.begin]), evidence=(run.evidence(at),),
        confidence="high" if found.sigmas > 12 else "medium",
        against=tuple(_moved(run, found)) or ("no other figure of the log moved with it",),
    )  # fmt: skip


#: Columns of the work of a step: where one grew by as much, a longer step is what was asked for.
_WORK = ("batch_samples", "batch_tokens", "actual seqlen", "sequence", "seq_len", "num_tokens")


def _work_changed(run: Run, found: Shift) -> bool:
    for name in filter(run.series.columns.__contains__, _WORK):
        column = run.series.values(name)
        values = [column[at] for at in run.kept]
        before, after = median_of(values[: found.at]), median_of(values[found.at :])
        if before and after and after / before > 1 + (found.ratio - 1) / 2:
            return True
    return False


#: Of columns that say what a step does, not how it went.
_NOT_CAUSES = {"step", "loss", "lr", "epoch", "samples", "tokens", "time_s", "elapsed_s", "step_s",
               "tokens_per_s", "tokens_per_s_gpu", "samples_per_s", "tflops_gpu", "mfu_percent",
               "grad_norm", "param_norm", "val_loss", "worst_loss", "skipped"}  # fmt: skip


def _moved(run: Run, found: Shift) -> Iterator[str]:
    """Other figures that changed, with when: what moved first is nearer to the cause."""
    moved: list[tuple[int, str]] = []
    for name, column in run.series.columns.items():
        if name in _NOT_CAUSES or column.way == "sum":
            continue
        values = [column.mean[at] for at in run.kept]
        other = shift(values, least=0.05)
        if other is not None:
            text = f"{name} {other.before:.4g} to {other.after:.4g}"
            moved.append((other.at, text))
    for at, text in sorted(moved)[:4]:
        order = "before it" if at < found.at else "with it" if at == found.at else "after it"
        yield f"{text}, since {when(run, run.kept[at])}: {order}"
