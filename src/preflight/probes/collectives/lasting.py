"""One collective for a long time, in windows, as the bundled bench told it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from msgspec.structs import replace

from preflight.facts.bench import Lasting, LevelChange, Window
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.levels import slope, spread, starts
from preflight.probes.collectives.lines import PROBE, Line, Told
from preflight.probes.collectives.stalls import listed, stalled
from preflight.units import format_bytes, format_duration

_NOT_ASKED = Missing("not-asked", "needs a time: preflight nccl-bench --duration 5m")
_PROCESSORS = Missing(
    "not-applicable", "processors of one host are shared with the rest of it: shown only"
)
#: Fewer windows tell no level.
_LEAST = 8
#: A level differs by so much of its time, a window that stands out by so much.
_STEP, _FAR = math.log(1.1), math.log(1.2)
_FAR_SPREADS = 5.0
#: Whoever takes the network or the machine for a moment is gone before a level counts for as much
#: of the time, and for so many seconds.
_LASTS, _LASTS_S = 0.2, 3.0


def lasting(told: Told) -> Known[tuple[Lasting, ...]]:
    """On the host that led; one run, or none where it never began."""
    if not told.plan.get("lasting_s"):
        return _NOT_ASKED
    begun = next(iter(told.of["lasting"]), None)
    if begun is None:
        why = told.text("gone") or ("interrupted" if told.of["interrupted"] else "it was cut short")
        return Missing("exited", f"--duration did not begin: {why}")
    return (_run(told, begun),)


def _run(told: Told, begun: Line) -> Lasting:
    windows = tuple(map(_window, told.of["window"]))
    ended = any(one["ended"] for one in told.of["lasted"])
    name, size = str(begun["collective"]), int(begun["bytes"])
    about = Lasting(
        f"{name}, {format_bytes(size)}", name, size, int(begun["ranks"]),
        float(begun["lasting_s"]), windows, sum(one.calls for one in windows),
        windows[-1].at_s + windows[-1].lasts_s if windows else 0.0, ended=ended,
        device=str(told.plan.get("device", "")),
        line=begun["line"], probe=PROBE,
    )  # fmt: skip
    about = stalled(about)
    about = _levelled(told, about) if len(windows) >= _LEAST else _short(told, about)
    return replace(about, when="; ".join(_when(about)))


def _when(run: Lasting) -> Iterator[str]:
    if isinstance(run.dropped_at_s, float):
        yield f"from {format_duration(run.dropped_at_s)} on it was slower"
    if run.stalls:
        yield f"stood still {listed(run.stalls)}"


def _window(one: Line) -> Window:
    found = Window(
        float(one["at_s"]), float(one["lasts_s"]), int(one["n"]), float(one["median_us"]),
        float(one["mad_us"]), float(one["most_us"]), _sum(one), _longest(one), one["line"],
    )  # fmt: skip
    numbers = [found.at_s, *(number for pair in found.longest for number in pair)]
    if not (0 < found.median_us < math.inf and all(0 <= number < math.inf for number in numbers)):
        raise ValueError(f"window {one['window']}: no numbers")
    return found


def _sum(one: Line) -> Known[float]:
    return float(one["sum_s"]) if "sum_s" in one else NOT_IN_INPUT


def _longest(one: Line) -> tuple[tuple[float, float], ...]:
    """Of a bench that tells but the longest: it began with the window or later."""
    alone = ((one["at_s"], 1e-6 * one["most_us"]),)
    return tuple((float(at_s), float(lasts_s)) for at_s, lasts_s in one.get("longest", alone))


def _short(told: Told, run: Lasting) -> Lasting:
    interrupted = "interrupted" if told.of["interrupted"] else "its end is not there"
    cut = "" if run.ended else f"; {told.text('failed') or told.text('gone') or interrupted}"
    text = f"{len(run.windows)} windows tell no level, it takes {_LEAST}{cut}"
    missing = Missing("not-asked" if run.ended else "exited", text)
    return replace(run, spread_percent=missing, drop_percent=missing)


def _levelled(told: Told, run: Lasting) -> Lasting:
    times = [one.at_s for one in run.windows]
    logs = [math.log(one.median_us) for one in run.windows]
    at = starts(logs, _STEP)
    levels = [median(logs[a:b]) for a, b in pairwise([*at, len(logs)])]
    of_each = [level for level, (a, b) in zip(levels, pairwise([*at, len(logs)]), strict=True)
               for _ in range(a, b)]  # fmt: skip
    rest = [one - level for one, level in zip(logs, of_each, strict=True)]
    around, tenth = spread(rest), max(1, len(logs) // 10)
    far = max(_FAR, _FAR_SPREADS * around)
    ends_s = [*(times[one] for one in at[1:]), run.lasted_s]
    last = [end_s - times[one] >= max(_LASTS_S, _LASTS * run.lasted_s)
            for one, end_s in zip(at, ends_s, strict=True)]  # fmt: skip
    drop, dropped = _drop(levels, last)
    alone = told.plan.get("device") == "cpu" and not told.plan.get("hosts")
    return replace(
        run, median_us=_us(median(logs)),
        spread_percent=100 * math.expm1(around),
        trend_percent=100 * math.expm1(slope(times, logs) * (times[-1] - times[0])),
        first_us=_us(median(logs[:tenth])), last_us=_us(median(logs[-tenth:])),
        changes=tuple(LevelChange(times[at[n]], _us(levels[n - 1]), _us(levels[n]))
                      for n in range(1, len(at))),
        outliers=tuple(time for time, one in zip(times, rest, strict=True) if abs(one) > far),
        drop_percent=_PROCESSORS if alone else round(drop, 2),
        dropped_at_s=times[at[dropped]] if dropped else Missing("not-applicable", "it did not"),
    )  # fmt: skip


def _us(log: float) -> float:
    return round(math.exp(log), 2)


def _drop(levels: list[float], last: list[bool]) -> tuple[float, int]:
    """By how many percent of bandwidth a level that lasts is below the best one before it, the
    worst; and which that is, 0 where none is."""
    found = [(100 * -math.expm1(min(levels[:at]) - level), at)
             for at, level in enumerate(levels) if at and last[at]]  # fmt: skip
    worst, at = max(found, default=(0.0, 0))
    return (worst, at) if worst > 0 else (0.0, 0)
