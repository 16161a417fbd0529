"""Calls that took far longer than those about them: the median of a window does not see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_low

from msgspec.structs import replace

from preflight.facts.bench import Lasting, Stall, Window
from preflight.model import Known, Missing
from preflight.units import format_duration

#: Hiccups are shorter. A call that takes seconds anyhow stalls where it takes so many times that.
_LEAST_S, _TIMES = 1.0, 3.0
#: A window may be one call: what is usual is told by it and so many on either side.
_ABOUT = 2
_SHOWN = 8


def stalled(run: Lasting) -> Lasting:
    """The run with its stalls, the time that they and all other waiting took, its longest call;
    without a window nothing of it."""
    if not run.windows or run.lasted_s <= 0:
        return run
    usual_s = [one / 1e6 for one in _usual_us([each.median_us for each in run.windows])]
    found = tuple(stall for window, usual in zip(run.windows, usual_s, strict=True)
                  for stall in _stalls(window, usual))  # fmt: skip
    longest = max((call for one in run.windows for call in one.longest), key=lambda call: call[1],
                  default=None)  # fmt: skip
    return replace(
        run, stalls=found, stalled_s=round(sum(one.lasts_s for one in found), 2),
        lost_percent=_lost_percent(run, usual_s),
        longest=run.longest if longest is None else longest,
    )  # fmt: skip


def _usual_us(medians: Sequence[float]) -> list[float]:
    """Of each window the lower of its own median and that of the windows about it."""
    about = [medians[max(0, at - _ABOUT) : at + _ABOUT + 1] for at in range(len(medians))]
    return [min(one, median_low(near)) for one, near in zip(medians, about, strict=True)]


def _stalls(window: Window, usual_s: float) -> Iterator[Stall]:
    """In the order of their time."""
    for at_s, lasts_s in sorted(window.longest):
        if lasts_s - usual_s >= _LEAST_S and lasts_s >= _TIMES * usual_s:
            yield Stall(at_s, round(lasts_s - usual_s, 3))


def _lost_percent(run: Lasting, usual_s: Sequence[float]) -> Known[float]:
    lost_s = 0.0
    for window, usual in zip(run.windows, usual_s, strict=True):
        if isinstance(window.sum_s, Missing):
            return window.sum_s
        lost_s += max(0.0, window.sum_s - window.calls * usual)
    return round(100 * lost_s / run.lasted_s, 2)


def listed(stalls: Sequence[Stall]) -> str:
    """6 s after 12 s, 1.5 s after 3 min."""
    told = [
        f"{format_duration(one.lasts_s)} after {format_duration(one.at_s)}"
        for one in stalls[:_SHOWN]
    ]
    more = f" and {len(stalls) - _SHOWN} times more" if len(stalls) > _SHOWN else ""
    return f"{', '.join(told)}{more}"
