"""One collective over a long time: what it was at first and in the end, when its level changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from preflight.facts.bench import Lasting
from preflight.facts.host import Host
from preflight.model import Known, Missing
from preflight.units import format_duration

Row = dict[str, Any]
#: Columns of the picture.
_COLUMNS = 60
_SHOWN = 8


def lasting_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """A table of each run that has a window."""
    runs = () if isinstance(host.lasting, Missing) else host.lasting
    return tuple(
        {"table": f"{one.name}, for {format_duration(one.lasted_s)}", "host": host.name,
         "rows": list(_rows(one)), "notes": [_picture(one)], "numbers": _numbers(one)}
        for one in runs if one.windows
    )  # fmt: skip


def _rows(run: Lasting) -> Iterator[Row]:
    asked = "" if run.ended else f"; {format_duration(run.asked_s)} were asked for"
    yield _row("calls", f"{run.calls:,} of {run.ranks} ranks, {len(run.windows)} windows{asked}")
    yield from _waiting(run)
    if isinstance(run.median_us, Missing):
        return
    yield _row(
        "median", f"{run.median_us:,.0f} us; windows {_percent(run.spread_percent)} about it"
    )
    yield _row("tenths", f"the first {_us(run.first_us)}, the last {_us(run.last_us)}")
    yield _row("trend", f"{_percent(run.trend_percent, '+')} of its time over the run (Theil-Sen)")
    for one in run.changes:
        yield _row("level", f"from {one.before_us:,.0f} to {one.after_us:,.0f} us "
                   f"after {format_duration(one.at_s)}")  # fmt: skip
    if run.outliers:
        when = ", ".join(format_duration(one) for one in run.outliers[:_SHOWN])
        more = ", ..." if len(run.outliers) > _SHOWN else ""
        yield _row("far off", f"{len(run.outliers)} windows, after {when}{more}")


def _waiting(run: Lasting) -> Iterator[Row]:
    """What medians do not see."""
    if not isinstance(run.longest, Missing):
        at_s, lasts_s = run.longest
        yield _row("longest", f"a call of {format_duration(lasts_s)} after {format_duration(at_s)}")
    if not isinstance(run.lost_percent, Missing):
        yield _row(
            "lost", f"{_percent(run.lost_percent)} of the time, beyond what calls usually take"
        )
    if run.stalls:
        yield _row("stalls", f"{len(run.stalls)}: {run.when.partition('stood still ')[2]}")


def _row(name: str, value: str) -> Row:
    return {"measure": name, "value": value}


def _us(value: Known[float]) -> str:
    return "?" if isinstance(value, Missing) else f"{value:,.0f} us"


def _percent(value: Known[float], sign: str = "") -> str:
    return "?" if isinstance(value, Missing) else f"{value:{sign}.1f} %"


def _picture(run: Lasting) -> str:
    """A digit for each part of the time: 9 as fast as the fastest tenth, 5 half as fast."""
    shown = _columns([one.median_us for one in run.windows])
    best = sorted(shown)[len(shown) // 10]
    digits = "".join(str(min(9, int(10 * best / one))) for one in shown)
    return f"bandwidth over time, in tenths of the best tenth of it: {digits}"


def _columns(values: Sequence[float]) -> list[float]:
    """As many as there is room for, each the median of its windows."""
    count = min(_COLUMNS, len(values))
    cuts = [len(values) * at // count for at in range(count + 1)]
    return [median(values[a:b]) for a, b in pairwise(cuts)]


def _numbers(run: Lasting) -> dict[str, float]:
    told = {
        "calls": run.calls, "lasted_s": run.lasted_s, "median_us": run.median_us,
        "spread_percent": run.spread_percent, "trend_percent": run.trend_percent,
        "first_us": run.first_us, "last_us": run.last_us, "drop_percent": run.drop_percent,
        "lost_percent": run.lost_percent, "stalled_s": run.stalled_s,
    }  # fmt: skip
    return {name: round(one, 3) for name, one in told.items() if isinstance(one, (int, float))}
