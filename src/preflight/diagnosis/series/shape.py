"""Robust statistics of a series: the middle, what sticks out, what comes again, what changed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct

#: Of median absolute deviations, as a standard deviation of a normal distribution.
_SIGMA = 1.4826
#: Bins of a long series for what looks at all pairs of places.
_BINS = 240


class Spread(Struct, frozen=True):
    """Of what is finite. `noise`: a standard deviation that outliers do not move."""

    n: int
    median: float
    low: float  # 10th percentile
    high: float  # 90th
    noise: float


def spread(values: Sequence[float]) -> Spread | None:
    """None where there is nothing."""
    finite = sorted(one for one in values if math.isfinite(one))
    if not finite:
        return None
    middle = median(finite)
    last = len(finite) - 1
    noise = _SIGMA * median(abs(one - middle) for one in finite)
    return Spread(len(finite), middle, finite[round(0.1 * last)], finite[round(0.9 * last)], noise)


def slow(values: Sequence[float], *, factor: float = 1.3, sigmas: float = 6.0) -> list[int]:
    """Places that stick out upwards of what is usual around them. Noise is that of what lies below
    the usual: so half of all steps may be slow, and are still seen."""
    usual = running_usual(values)
    below = [two - one for one, two in zip(values, usual, strict=True) if one <= two]
    noise = _SIGMA * median(below) if below else 0.0
    return [
        at for at, (one, two) in enumerate(zip(values, usual, strict=True))
        if one > factor * two and one > two + sigmas * noise
    ]  # fmt: skip


def running_usual(values: Sequence[float], window: int = 101) -> list[float]:
    """The 40th percentile around each place; of long series by blocks, which costs less."""
    block = max(1, window // 4)
    found = []
    for begin in range(0, len(values), block):
        around = values[max(0, begin - window // 2) : begin + block + window // 2]
        finite = sorted(one for one in around if math.isfinite(one))
        usual = finite[int(0.4 * (len(finite) - 1))] if finite else math.nan
        found += [usual] * min(block, len(values) - begin)
    return found


class Period(Struct, frozen=True):
    """Slow steps that come every `every` steps. `hits`: of the slow steps those in the comb;
    `teeth`: places of the comb, in the span of the slow steps."""

    every: int
    hits: int
    teeth: int
    slow: int


def period(steps: Sequence[float], most: int = 1000) -> Period | None:
    """The period of steps that were slow; None where chance explains it as well.

    In a comb of `every`, four of five slow steps lie on one residue, and three of five of its
    teeth are slow. The chance that n random steps share a residue is every**(1 - n): five are
    enough for any period from 2 on, and multiples of a period fail by the slow steps they miss.
    """
    whole = sorted({int(one) for one in steps if math.isfinite(one)})
    if len(whole) < 5:
        return None
    span = whole[-1] - whole[0]
    best: Period | None = None
    for every in range(2, min(most, span // 3) + 1):
        found = _comb(whole, every, span)
        if found and (best is None or found.hits / found.teeth > best.hits / best.teeth * 1.05):
            best = found
    return best


def _comb(whole: Sequence[int], every: int, span: int) -> Period | None:
    counts: dict[int, int] = {}
    for one in whole:
        counts[one % every] = counts.get(one % every, 0) + 1
    hits = max(counts.values())
    teeth = span // every + 1
    chance = hits * math.log(every) > math.log(1000 * every) + 1
    if hits >= 0.8 * len(whole) and hits >= 0.6 * teeth and hits >= 5 and chance:
        return Period(every, hits, teeth, len(whole))
    return None


class Shift(Struct, frozen=True):
    """A change that stays. `at`: the row of the first later value; `gradual`: it grew over time,
    and `at` is where half of it was reached, `begin` where it began to."""

    at: int
    before: float
    after: float
    gradual: bool = False
    sigmas: float = 0.0
    begin: int = 0

    @property
    def ratio(self) -> float:
        return self.after / self.before


def shift(values: Sequence[float], *, least: float = 0.03, sigmas: float = 6.0) -> Shift | None:
    """The place that divides a series best into two levels, by sums of absolute deviations; None
    where the two differ by less than `least`, or by what noise makes (`sigmas` standard errors of
    medians), or where only a stretch in the middle differs."""
    rows = [at for at, one in enumerate(values) if math.isfinite(one)]
    if len(rows) < 20:
        return None
    size = max(1, math.ceil(len(rows) / _BINS))
    groups = [rows[at : at + size] for at in range(0, len(rows), size)]
    bins = [median(values[at] for at in group) for group in groups]
    at = _best(bins)
    if at is None:
        return None
    before, after = median(bins[:at]), median(bins[at:])
    noise = _rough(bins)
    error = noise * math.sqrt(1 / at + 1 / (len(bins) - at)) * 1.2533
    strength = abs(after - before) / error if error else math.inf
    last = median(bins[-max(3, len(bins) // 10) :])
    stays = (last - before) * (after - before) > 0 and abs(last - before) > abs(after - before) / 2
    if before <= 0 or abs(after / before - 1) < least or strength < sigmas or not stays:
        return None
    bend = _bend(bins)
    gradual = _grows(bins, at) or _bends(bins, at, bend)
    if gradual:
        tenth = max(2, len(bins) // 10)
        before, after = median(bins[:tenth]), last
    begin = groups[min(bend, at) if gradual else at][0]
    return Shift(groups[at][0], before, after, gradual, min(strength, 1e6), begin)


def _best(bins: Sequence[float]) -> int | None:
    """The split with the least sum of absolute deviations from the medians of both sides; at
    least three bins on each."""
    best, at = math.inf, None
    margin = max(3, len(bins) // 40)
    for split in range(margin, len(bins) - margin + 1):
        left, right = median(bins[:split]), median(bins[split:])
        cost = sum(abs(one - left) for one in bins[:split])
        cost += sum(abs(one - right) for one in bins[split:])
        if cost < best:
            best, at = cost, split
    return at


def _rough(bins: Sequence[float]) -> float:
    """Noise from neighbour to neighbour: a level or a drift does not count. Where neighbours hang
    together, more of them are needed, so that the error is doubled by what they share."""
    steps = [two - one for one, two in itertools.pairwise(bins)]
    wide = [two - one for one, two in zip(bins, bins[5:], strict=False)] or steps
    near = _SIGMA * median(map(abs, steps)) / math.sqrt(2)
    far = _SIGMA * median(map(abs, wide)) / math.sqrt(2)
    return max(near, far)


def _grows(bins: Sequence[float], at: int) -> bool:
    """Whether a line fits better than two levels."""
    n = len(bins)
    pairs = [
        (bins[two] - bins[one]) / (two - one)
        for one in range(0, n, max(1, n // 40)) for two in range(one + n // 4, n, max(1, n // 40))
    ]  # fmt: skip
    slope = median(pairs) if pairs else 0.0
    middle = median(value - slope * place for place, value in enumerate(bins))
    line = sum(abs(value - middle - slope * place) for place, value in enumerate(bins))
    left, right = median(bins[:at]), median(bins[at:])
    levels = sum(abs(one - left) for one in bins[:at]) + sum(abs(one - right) for one in bins[at:])
    return line < levels


def _bend(bins: Sequence[float]) -> int:
    """Where a level goes over into a slope: the place from which a straight line fits best."""
    smooth = _smooth(bins)
    return min(range(max(1, len(bins) - 3)), key=lambda bend: _misfit(smooth, bend))


def _bends(bins: Sequence[float], at: int, bend: int) -> bool:
    """Whether a level and then a slope fit clearly better than two levels."""
    smooth = _smooth(bins)
    sides = (smooth[:at], smooth[at:])
    levels = sum((one - fmean(side)) ** 2 for side in sides for one in side)
    return _misfit(smooth, bend) < levels / 2


def _smooth(bins: Sequence[float]) -> list[float]:
    """Medians of neighbours: outliers do not pull a line by them."""
    return [median(bins[max(0, one - 2) : one + 3]) for one in range(len(bins))]


def _misfit(values: Sequence[float], bend: int) -> float:
    """What is left of the sum of squares with a + b * max(0, place - bend)."""
    n, rises = len(values), range(1, len(values) - bend)
    mean_x, mean_y = sum(rises) / n, fmean(values)
    cross = sum(x * (y - mean_y) for x, y in zip(rises, values[bend + 1 :], strict=True))
    square = sum(x * x for x in rises) - n * mean_x * mean_x
    total = sum((y - mean_y) ** 2 for y in values)
    return total - cross * cross / square if square > 0 else total
