"""A log as one run: its steps with their lengths, what happened between them, and evidence."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from preflight.diagnosis.series.shape import Spread, spread
from preflight.diagnosis.series.times import FIRST, Times, times_of
from preflight.facts.series import Log, LogEvent, Series
from preflight.model import Evidence
from preflight.units import format_duration


class Run(Struct):
    """The steps of one series. `kept`: rows that count: after the first of each beginning, with a
    known length."""

    log: Log
    series: Series
    times: Times
    kept: list[int]
    spread: Spread

    @property
    def each_step(self) -> bool:
        """Whether most rows are one step: then single slow steps can be seen."""
        ones = sum(1 for at in self.kept if self.times.steps[at] == 1)
        return ones * 10 >= 9 * len(self.kept) and self.series.fold == 1

    @property
    def relative(self) -> bool:
        """Whether lengths are only relative to each other."""
        return "relative" in self.times.basis

    @property
    def fine(self) -> bool:
        """Whether the clock is fine enough for single rows."""
        steps = median_of([self.times.steps[at] for at in self.kept]) or 1.0
        return self.times.quantum_s <= 0.05 * self.spread.median * steps

    def seconds(self) -> list[float]:
        return [self.times.seconds[at] for at in self.kept]

    def evidence(self, at: int, text: str = "") -> Evidence:
        """The line of a row."""
        return Evidence("log", text=text, line=self.series.line[at], source=self.log.source)

    def place(self, at: int) -> str:
        """step 1,240 (line 88)."""
        step = self.times.step[at]
        shown = f"step {step:,.0f}" if math.isfinite(step) else "a row"
        return f"{shown} (line {self.series.line[at]:,})"

    def events(self, *kinds: str) -> list[LogEvent]:
        return [one for one in self.log.events if one.kind in kinds]

    def evaluated(self) -> set[int]:
        """Rows in which, or just before which, it evaluated: by its lines, or a loss of that."""
        losses = self.series.values("val_loss")
        told = {row for row, one in enumerate(losses) if math.isfinite(one)}
        return told | set(self.by_row("eval-begins", "eval-ends"))

    def by_row(self, *kinds: str) -> dict[int, list[LogEvent]]:
        """Row -> the events whose lines stand between the row before and it."""
        found: dict[int, list[LogEvent]] = {}
        for one in self.events(*kinds):
            found.setdefault(bisect_left(self.series.line, one.line), []).append(one)
        return found


def median_of(values: Sequence[float]) -> float | None:
    """The median of what is finite."""
    found = spread(values)
    return found.median if found else None


def run_of(log: Log) -> Run | None:
    """The longest series of a log; None where the lengths of fewer than two of its steps are
    known."""
    best: Run | None = None
    for series in log.series:
        times = times_of(series)
        rows = _kept(times)
        found = spread([times.seconds[at] for at in rows])
        if found and found.median > 0 and (best is None or found.n > best.spread.n):
            best = Run(log, series, times, rows, found)
    return best


def _kept(times: Times) -> list[int]:
    """Without the first rows of each beginning; of a very short log without the first alone."""
    known = [at for at, one in enumerate(times.seconds) if math.isfinite(one) and one > 0]
    first = FIRST if len(known) >= 4 * FIRST else 1
    left_out = {begin + more for begin in times.begins for more in range(first)}
    kept = [at for at in known if at not in left_out]
    return kept or known


def span(run: Run) -> str:
    """`n = 412, median 1.20 s, 1.18 to 1.31 s`."""
    one = run.spread
    if run.relative:
        return f"n = {one.n:,}"
    return (
        f"n = {one.n:,}, median {_s(one.median)}, {_s(one.low)} to {_s(one.high)} "
        "(10th to 90th percentile)"
    )


def _s(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else format_duration(seconds)


def when(run: Run, at: int) -> str:
    """step 1,240 (2026-01-02 03:04:05), where lines have a date."""
    from datetime import datetime, timezone

    step = run.times.step[at]
    stamp = run.series.values("time_s")[at]
    told = f"step {step:,.0f}" if math.isfinite(step) else f"line {run.series.line[at]:,}"
    if stamp > 1e9:
        moment = datetime.fromtimestamp(stamp, timezone.utc)
        told += f" ({moment:%Y-%m-%d %H:%M:%S} by the log's clock)"
    return told
