"""Whether a run learns at all: its loss and gradients, steps that are left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from preflight.diagnosis.reading import Sign
from preflight.facts.series import Log, Series
from preflight.model import Evidence

#: Steps without a single one that counted; the search for a loss scale takes less than fifty.
_SKIPPED = 100
#: Rows at the end that are no numbers, of a log with more.
_ROWS = 3


def training_signs(log: Log) -> Iterator[Sign]:
    """At the end of each series: no numbers, or each step left out."""
    for series in log.series:
        yield from _no_numbers(log, series)
        yield from _all_skipped(log, series)


def _no_numbers(log: Log, series: Series) -> Iterator[Sign]:
    for name, word in (("loss", "the loss"), ("grad_norm", "the gradient norm"),
                       ("val_loss", "the loss of validation")):  # fmt: skip
        column = series.columns.get(name)
        if column is None or not column.bad:
            continue
        rows = [at for at in range(len(series.line)) if at in column.bad or _told(column.mean, at)]
        bad = _trailing(rows, column.bad)
        if not bad or (len(bad) < _ROWS and len(bad) < len(rows)):
            continue
        first = bad[0]
        yield Sign(
            "not-training", f"{word} is no number in the last {len(bad)} of {len(rows)} lines that "
            f"tell it, from line {series.line[first]:,} on", confidence="high",
            evidence=(Evidence("log", line=series.line[first], source=log.source),),
            fix=(f"preflight divergence-rescue {log.source}",),
        )  # fmt: skip
        return


def _told(values: Sequence[float], at: int) -> bool:
    return math.isfinite(values[at])


def _trailing(rows: Sequence[int], bad: dict[int, int]) -> list[int]:
    """The rows at the end that are all bad."""
    found: list[int] = []
    for at in reversed(rows):
        if at not in bad:
            break
        found.append(at)
    return found[::-1]


def _all_skipped(log: Log, series: Series) -> Iterator[Sign]:
    """Skipped as many as there were steps, over the last of them."""
    if "skipped" not in series.columns or len(series.line) < 2:
        return
    step, skipped = series.values("step"), series.values("skipped")
    known = [at for at in range(len(step)) if _told(step, at) and _told(skipped, at)]
    if len(known) < 2:
        return
    sums = series.columns["skipped"].way == "sum" and skipped[known[-1]] > skipped[known[0]]
    steps = lost = 0.0
    begin = known[-1]
    for before, at in zip(reversed(known[:-1]), reversed(known), strict=False):
        gap = step[at] - step[before]
        more = skipped[at] - skipped[before] if sums else skipped[at]
        if gap <= 0 or more < gap:
            break
        steps, lost, begin = steps + gap, lost + more, at
    if steps >= _SKIPPED:
        yield Sign(
            "not-training", f"each of the last {steps:,.0f} steps was left out: weights do not "
            "change", confidence="high",
            evidence=(Evidence("log", line=series.line[begin], source=log.source),),
            fix=(f"preflight divergence-rescue {log.source}",),
        )  # fmt: skip
