"""Slow changes: a loss that rises again, gradients that grow, a loss that never left chance, one
that swings."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.event import Event
from preflight.diagnosis.divergence.track import Course, Track, bend_of, bins_of, sigma_of

_BINS = 20
#: Rows below which no trend is told, and bins that must all rise.
_LEAST_ROWS, _RISING = 100, 3
#: Times the lowest stretch: from there on it grows.
_BEGUN = 1.2


def trend_events(course: Course, bounds: Bounds) -> Iterator[Event]:
    """In each start of the run."""
    loss, norm = course.track("loss"), course.track("grad_norm")
    for begin, end in course.starts():
        mine = loss.part(begin, end)
        norms = norm.part(begin, end)
        for one in (
            _rises(course, mine, bounds), _at_chance(course, mine, bounds),
            _swings(course, mine, bounds), _grows(course, norms, bounds),
        ):  # fmt: skip
            if one is not None:
                yield one


def _rises(course: Course, track: Track, bounds: Bounds) -> Event | None:
    """From its lowest stretch on it rises, stretch by stretch, to the end."""
    if len(track.rows) < _LEAST_ROWS:
        return _climbs(course, track, bounds)
    bins = bins_of(track.values, _BINS)
    size = len(track.values) // len(bins) or 1
    low = min(range(len(bins)), key=lambda at: bins[at])
    later = bins[low:]
    noise = sigma_of([b - a for a, b in zip(track.values, track.values[1:], strict=False)])
    # Of a median of so many, were they independent; twice that, for neighbours are not.
    least = max(2 * noise / size**0.5, bend_of(bins)) * bounds.sigmas
    rise = later[-1] - later[0]
    rising = len(later) > _RISING and all(b > a - least / 4 for a, b in pairwise(later))
    if not rising or rise < max(bounds.slow_rise * abs(later[0]), least):
        return None
    if _rate_rose(course, track, low * size):
        return None
    begun = next(at for at, one in enumerate(later) if one > later[0] + rise * 0.1)
    row = track.rows[min((low + begun) * size, len(track.rows) - 1)]
    return Event(
        "slow-divergence", row, course.steps[row], course.line(row),
        f"loss rises from {later[0]:.4g} to {later[-1]:.4g} since about step "
        f"{course.steps[row]:,.0f}, in {len(later) - 1} stretches one after the other",
        value=later[-1], usual=later[0], recovery="never", rows=len(track.rows) - low * size,
    )  # fmt: skip


def _climbs(course: Course, track: Track, bounds: Bounds) -> Event | None:
    """A few lines, as people paste them: each above the one before."""
    values = track.values
    if len(values) < 4 or course.steps[track.rows[0]] < bounds.startup_steps or values[0] <= 0:
        return None
    if not all(a < b for a, b in pairwise(values)) or values[-1] < values[0] * (
        1 + bounds.few_rise
    ):
        return None
    row = next(row for row, value in zip(track.rows, values, strict=True)
               if value > values[0] * (1 + bounds.rise))  # fmt: skip
    return Event(
        "slow-divergence", row, course.steps[row], course.line(row),
        f"loss climbs from {values[0]:.4g} to {values[-1]:.4g} in {len(values)} lines, each above "
        "the one before", value=values[-1], usual=values[0], recovery="never", rows=len(values),
    )  # fmt: skip


def _rate_rose(course: Course, track: Track, at: int) -> bool:
    """A learning rate that is raised again raises the loss for a while: that was asked for."""
    rates = course.series.values("lr")
    before = rates[track.rows[at]]
    return any(rates[row] > 1.5 * before for row in track.rows[at:])


def _at_chance(course: Course, track: Track, bounds: Bounds) -> Event | None:
    """Flat from the start, at what guessing gives: the logarithm of a vocabulary."""
    if len(track.rows) < bounds.chance_rows:
        return None
    tail = track.values[-bounds.chance_rows :]
    level, half = median(tail), len(tail) // 2
    fell = median(track.values[: max(3, len(track.values) // 50)]) - level
    flat = abs(median(tail[:half]) - median(tail[half:])) < bounds.flat * level
    if level < bounds.chance_nats or not flat or fell > 0.2 * level:
        return None
    if min(track.values) < 0.8 * level:  # it had learned something
        return None
    row = track.rows[0]
    return Event(
        "at-chance", row, course.steps[row], course.line(row),
        f"loss stays at {level:.4g} for {len(track.rows):,} rows: guessing among "
        f"{2.718281828**level:,.0f} tokens gives as much", value=level, recovery="never",
        rows=len(track.rows),
    )  # fmt: skip


#: Rows in which a swing is looked for, and its longest period.
_SEEN, _LONGEST = 256, 32


def _swings(course: Course, track: Track, bounds: Bounds) -> Event | None:
    """Up and down in a period of a few rows, which noise has not."""
    tail = track.values[-_SEEN:]
    if len(tail) < _LEAST_ROWS or course.series.fold > 1:
        return None
    middle = median(tail)
    trend = [one - median(tail[max(0, at - _LONGEST) : at + _LONGEST])
             for at, one in enumerate(tail)]  # fmt: skip
    size = (sum(one * one for one in trend) / len(trend)) ** 0.5
    if middle <= 0 or size < bounds.rise * middle:
        return None
    share, every = _strongest(trend)
    if share < bounds.swing_share:
        return None
    begun = next(at for at in range(len(tail)) if abs(trend[at]) > 0.7 * size)
    begun += len(track.values) - len(tail)
    while begun >= _LONGEST and _spread(track.values[begun - _LONGEST : begun]) > 0.7 * size:
        begun -= _LONGEST
    row = track.rows[begun]
    return Event(
        "oscillation", row, course.steps[row], course.line(row),
        f"loss swings by {size / middle:.0%} around {middle:.4g}, every {every:.3g} rows",
        value=size, usual=middle, recovery="never", rows=len(track.rows) - begun,
    )  # fmt: skip


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return float((sum((one - middle) ** 2 for one in values) / len(values)) ** 0.5)


def _strongest(values: Sequence[float]) -> tuple[float, float]:
    """The period with most of the power (neighbours with it), and its share."""
    count = len(values)
    total = sum(one * one for one in values) * count / 2
    powers = [abs(sum(one * cmath.rect(1, -2 * math.pi * k * at / count)
                      for at, one in enumerate(values))) ** 2
              for k in range(count // _LONGEST, count // 2 + 1)]  # fmt: skip
    if count % 2 == 0:
        powers[-1] /= 2
    best = max(range(len(powers)), key=lambda at: powers[at])
    near = sum(powers[max(0, best - 1) : best + 2])
    return near / total if total else 0.0, count / (best + count // _LONGEST)


def _grows(course: Course, track: Track, bounds: Bounds) -> Event | None:
    """The gradient norm over the last stretches, each above the one before."""
    if len(track.rows) < _LEAST_ROWS:
        return None
    bins = bins_of(track.values, _BINS)
    size = len(track.values) // len(bins) or 1
    low = min(range(len(bins)), key=lambda at: bins[at])
    later = bins[low:]
    if len(later) <= _RISING + 1 or later[0] <= 0 or later[-1] < bounds.growth * later[0]:
        return None
    ups = sum(b > a for a, b in pairwise(later))
    if ups < 0.8 * (len(later) - 1) or low * size < bounds.startup_steps / 2:
        return None
    begun = next(at for at, one in enumerate(later) if one > _BEGUN * later[0])
    row = track.rows[(low + begun - 1) * size]
    return Event(
        "gradient-growth", row, course.steps[row], course.line(row),
        f"gradient norm grows from {later[0]:.3g} to {later[-1]:.3g} since about step "
        f"{course.steps[row]:,.0f}", column="grad_norm", value=later[-1], usual=later[0],
        recovery="never", rows=len(track.rows) - low * size,
    )  # fmt: skip
