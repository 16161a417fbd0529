"""What figures by rank show: who is the slowest, and whether it always is the same."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from preflight.diagnosis.reading import Sign
from preflight.diagnosis.series.luck import luck
from preflight.diagnosis.step_time.log_run import Run, median_of
from preflight.facts.series import LogEvent
from preflight.model import Evidence

_BY_RANK = re.compile(r"timer/(?P<name>[\w-]+)\.rank(?P<rank>\d+)")
#: Timers in which no rank waits for another.
_DATA = "batch-generator"
_OWN_WORK = ("forward-compute", "backward-compute", _DATA, "optimizer-inner-step")
_APART = 0.10
_OFTEN = 0.6  # the same rank is last in so many rows
#: Chance that a rank is named that is no slower than others: of each timer.
_LUCK = 0.002


def rank_signs(run: Run) -> Iterator[Sign]:
    """Timers of each rank, or of the fastest and slowest; lines of Megatron's detector."""
    by_rank = _timers_by_rank(run)
    for name, ranks in by_rank.items():
        yield from _of_ranks(run, name, ranks)
    if not by_rank:
        for name in _OWN_WORK:
            yield from _of_extremes(run, name)
    yield from _of_detector(run)


def tells_ranks(run: Run) -> bool:
    """Whether it has figures by rank at all."""
    extremes = any(f"timer/{name}.min" in run.series.columns for name in _OWN_WORK)
    return extremes or bool(_timers_by_rank(run)) or len(run.events("straggler")) >= 3


def _timers_by_rank(run: Run) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for column in run.series.columns:
        match = _BY_RANK.fullmatch(column)
        if match and match["name"] in _OWN_WORK:
            found.setdefault(match["name"], {})[int(match["rank"])] = column
    return {name: ranks for name, ranks in found.items() if len(ranks) >= 3}


def _of_ranks(run: Run, name: str, ranks: dict[int, str]) -> Iterator[Sign]:
    last: Counter[int] = Counter()
    beyond, rows = [], []
    for at in run.kept:
        row = {rank: run.series.values(column)[at] for rank, column in ranks.items()}
        row = {rank: value for rank, value in row.items() if math.isfinite(value)}
        middle = median_of(list(row.values()))
        if len(row) < 3 or not middle:
            continue
        worst = max(row, key=lambda rank: row[rank])
        last[worst] += 1
        beyond.append((row[worst] - middle) / run.times.seconds[at])
        rows.append(at)
    share = median_of(beyond)
    if not rows or share is None or share < _APART / 2:
        return
    (rank, times), *_ = last.most_common(1)
    if _is_named(times, len(rows), len(ranks)):
        cause = "data-wait" if name == _DATA else "straggler"
        yield Sign(
            cause, f"rank {rank} is the slowest in {name} in {times} of {len(rows)} rows, "
            f"{share * 100:.3g} % of a step behind the median rank", share=share,
            seconds=None if run.relative else share * run.spread.median, subject=f"rank {rank}",
            confidence="high" if len(rows) >= 10 else "medium",
            evidence=(run.evidence(rows[0]),),
        )  # fmt: skip
    else:
        who, against = _nobody(last, len(rows), "rows")
        yield Sign(
            "imbalance", f"in {name} {who}, {share * 100:.3g} % of a step behind the median rank",
            share=share, evidence=(run.evidence(rows[0]),), against=(against,),
        )  # fmt: skip


def _is_named(times: int, of: int, ranks: int) -> bool:
    """Whether a rank is last so often that it is to blame."""
    return times >= _OFTEN * of and luck(times, of, ranks) <= _LUCK


def _nobody(last: Counter[int], of: int, what: str) -> tuple[str, str]:
    """What is said where no rank is named, and why not."""
    (_, times), *_ = last.most_common(1)
    if times < _OFTEN * of:
        return (f"another rank is the slowest each time ({len(last)} ranks in {of} {what})",
                f"no rank is last in most {what}, so that no machine is to blame")  # fmt: skip
    return (f"one rank is the slowest in {times} of {of} {what}",
            f"luck does that as well in so few {what}: no rank is named")  # fmt: skip


def _of_extremes(run: Run, name: str) -> Iterator[Sign]:
    low, high = f"timer/{name}.min", f"timer/{name}.max"
    if low not in run.series.columns or high not in run.series.columns:
        return
    gaps, rows = [], []
    for at in run.kept:
        least, most = run.series.values(low)[at], run.series.values(high)[at]
        if math.isfinite(least) and math.isfinite(most) and least > 0:
            gaps.append((most - least) / run.times.seconds[at])
            rows.append(at)
    share = median_of(gaps)
    if rows and share is not None and share >= _APART / 2 and name != _DATA:
        yield Sign(
            "imbalance", f"{name} differs by {share * 100:.3g} % of a step between the fastest and "
            f"the slowest rank (n = {len(rows):,})", share=share,
            evidence=(run.evidence(rows[0]),), confidence="low",
            against=("which rank it is, and whether always the same, is not in this log",),
            fix=("once more with --timing-log-option all: one rank each time is a machine, the "
                 "ranks of the last stage are the model's division",),
        )  # fmt: skip


def _of_detector(run: Run) -> Iterator[Sign]:
    """Lines with the slowest rank by name: MxRtt/Rnk."""
    events = [one for one in run.events("straggler") if "MxRtt/rank" in one.values]
    if len(events) < 3:
        return
    last = Counter(int(one.values["MxRtt/rank"]) for one in events)
    gaps = [
        (one.values["MxRtt"] - one.values["MnRtt"]) / one.values["MxRtt"] for one in events
        if one.values.get("MxRtt", 0) > 0 and "MnRtt" in one.values
    ]  # fmt: skip
    share = median_of(gaps)
    (rank, times), *_ = last.most_common(1)
    if share is None or share < _APART / 2:
        return
    evidence = tuple(_line(run, one) for one in events[:2])
    if not _is_named(times, len(events), _ranks_seen(events)):
        who, against = _nobody(last, len(events), "reports")
        yield Sign("imbalance", f"{who}, {share * 100:.3g} % behind the fastest", share=share,
                   evidence=evidence, against=(against,))  # fmt: skip
        return
    yield Sign(
        "straggler", f"rank {rank} is the slowest in {times} of {len(events)} reports, "
        f"{share * 100:.3g} % behind the fastest", share=share, subject=f"rank {rank}",
        confidence="high" if len(events) >= 5 else "medium", evidence=evidence,
    )  # fmt: skip
    yield from _clocks(run, events, rank)


def _ranks_seen(events: Sequence[LogEvent]) -> int:
    """How many ranks there are at least: by the highest that any report names."""
    named = [value for one in events for key, value in one.values.items() if key.endswith("/rank")]
    return int(max(named, default=0.0)) + 1


def _clocks(run: Run, events: list[LogEvent], rank: int) -> Iterator[Sign]:
    """The slow rank's clock, where it is the lowest of all."""
    low = [one for one in events if one.values.get("MnClk/rank") == rank]
    gaps = [
        1 - one.values["MnClk"] / one.values["MxClk"] for one in low
        if one.values.get("MxClk", 0) > 0 and "MnClk" in one.values
    ]  # fmt: skip
    share = median_of(gaps)
    if len(low) >= _OFTEN * len(events) and share is not None and share >= 0.03:
        yield Sign("throttled", f"its clock is {share * 100:.3g} % below the fastest in {len(low)} "
                   f"of {len(events)} reports", share=share, subject=f"rank {rank}",
                   confidence="high", evidence=(_line(run, low[0]),))  # fmt: skip


def _line(run: Run, event: LogEvent) -> Evidence:
    return Evidence("log", text=event.text, line=event.line, source=run.log.source)
