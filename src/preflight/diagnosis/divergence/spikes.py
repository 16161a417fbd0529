"""Values far above what is usual: points, stretches that end, and changes that stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.track import LEAST, Track, Usual


class Spike(Struct):
    """Places in a track: where it begins, where it is back; None where it is not. `usual`, `top`:
    values. `lone`: it passed, and is no farther than noise of this run may be."""

    at: int
    usual: float
    top: float
    back: int | None = None
    lone: bool = False


class _Open(Struct):
    """A spike that is not over. `below`: the level at which it is; `since`: from where on values
    are below it."""

    spike: Spike
    level: float
    sigma: float
    farthest: float
    rise: float
    below: float
    since: int | None = None


def spikes(track: Track, bounds: Bounds, before: Sequence[float] = ()) -> list[Spike]:
    """In one start of a run; `before`: the last values of the start before it. On the logarithm,
    where all is above zero: noise of a loss is in proportion to it."""
    watch = _Watch(track, bounds)
    for one in before:
        if one > 0 or not watch.scaled:
            watch.usual.add(watch.to(one))
    for at, top in enumerate(track.tops):
        if top > 0 if watch.scaled else top != 0:
            watch.see(at, watch.to(top))
    for left in watch.open:
        if left.since is not None:
            _close(left, watch.usual, bounds)
    return watch.found


class _Watch:
    """Goes through a track once. `current`: the newest spike, until it is over or the usual."""

    def __init__(self, track: Track, bounds: Bounds) -> None:
        self.tops, self.bounds = track.tops, bounds
        self.scaled = sum(one <= 0 for one in track.tops) <= _FEW_ZEROS * len(track.tops)
        self.to: Callable[[float], float] = math.log if self.scaled else float
        self.few = len(track.tops) < 2 * LEAST
        self.usual, self.found = Usual(), list[Spike]()
        self.open: list[_Open] = []
        self.current: _Open | None = None
        self.doubtful: list[float] = []  # the last values, in a row; no spike yet, and not usual

    def see(self, at: int, value: float) -> None:
        self._close_what_is_over(at, value)
        if len(self.usual) < (1 if self.few else LEAST):
            self.usual.add(value)
            return
        if not self.scaled and self.usual.sigma == 0:  # nothing to measure by
            self.usual.add(value)
            return
        sigma, rise = self._sigma(), value - self.usual.level
        current = self.current
        odd = rise > self.bounds.back_sigmas * sigma
        if current is not None:
            if self._is_high(rise, sigma):
                current.rise = max(current.rise, value - current.level)
                current.spike.top = max(current.spike.top, self.tops[at])
            elif not odd:  # between the two it belongs to a spike that is not over yet
                self.usual.add(value)
            if at - current.spike.at >= self.bounds.stays_rows:
                self._take_for_usual(current, at)
        elif self._is_high(rise, sigma):
            self._begin(at, rise, sigma)
        elif odd and not self.few and len(self.doubtful) < _DOUBTFUL:
            self.doubtful.append(value)
        else:
            self._settle()
            self.usual.add(value)

    def _settle(self) -> None:
        """What was doubtful was noise."""
        for one in self.doubtful:
            self.usual.add(one)
        self.doubtful.clear()

    def _sigma(self) -> float:
        """Of fewer than eight it is none."""
        told = self.usual.sigma if len(self.usual) >= LEAST // 2 else 0.0
        scale = 1.0 if self.scaled else abs(self.usual.level)
        return max(told, self.bounds.least_sigma * scale)

    def _is_high(self, rise: float, sigma: float) -> bool:
        least = self.bounds.rise if len(self.usual) >= LEAST else self.bounds.few_rise
        least = math.log1p(least) if self.scaled else least * abs(self.usual.level)
        sigmas = self.bounds.sigmas * (1 if self.scaled else _SIGNED)
        return rise > max(sigmas * sigma, least)

    def _begin(self, at: int, rise: float, sigma: float) -> None:
        level = self.usual.level
        first = at - len(self.doubtful)  # of a rise it is the first step
        top = max(self.tops[first : at + 1])
        spike = Spike(first, math.exp(level) if self.scaled else level, top)
        below = level + self.bounds.back_sigmas * sigma
        self.current = _Open(spike, level, sigma, self.usual.farthest, rise, below)
        self.doubtful.clear()
        self.found.append(spike)
        self.open.append(self.current)

    def _close_what_is_over(self, at: int, value: float) -> None:
        kept = []
        for one in self.open:
            if value > one.below:
                one.since = None
            elif one.since is None:
                one.since = at
            over = one.since is not None and at - one.since >= _BACK - 1
            if over:
                _close(one, self.usual, self.bounds)
                self.current = None if one is self.current else self.current
            elif at - one.spike.at < self.bounds.back_rows:
                kept.append(one)
        self.open = kept

    def _take_for_usual(self, one: _Open, at: int) -> None:
        """Values that stay. Where they do not come down meanwhile, no fall of the whole run is
        taken for their return: they have to come back to the level itself."""
        self.current = None
        tops = self.tops[one.spike.at : at + 1]
        values = [self.to(top) for top in tops if not self.scaled or top > 0]
        quarter = max(1, len(values) // 4)
        first, last = median(values[:quarter]) - one.level, median(values[-quarter:]) - one.level
        if last > _COMES_DOWN * first:
            one.below, one.since = one.level + one.sigma, None
        for value in values:
            self.usual.add(value)


#: Of a loss that has a logarithm: some are printed as 0.
_FEW_ZEROS = 0.1
#: A loss of either sign is one of reinforcement learning, and seldom quiet.
_SIGNED = 2
#: Values that may be the first of a rise.
_DOUBTFUL = 3
#: Values in a row that are usual again; and what is left of a rise that comes down.
_BACK, _COMES_DOWN = 3, 0.7


def _close(one: _Open, usual: Usual, bounds: Bounds) -> None:
    """What passes and is no farther than some times what was usual tells how far noise goes."""
    one.spike.back = one.since
    passed = one.since is not None and one.since - one.spike.at < bounds.alone_steps
    if passed and one.rise <= bounds.beyond * one.farthest:
        one.spike.lone = True
        usual.reach(one.rise)
