"""Levels of a loss that change for good where no single value stands out: by medians of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from preflight.diagnosis.divergence.bounds import Bounds
from preflight.diagnosis.divergence.spikes import Spike
from preflight.diagnosis.divergence.track import WINDOW, Track, bend_of

#: Rows of a block; blocks on either side are two.
_BLOCK = WINDOW // 2
#: Of the change, so much is there at once; and is left of it in all that follows.
_AT_ONCE, _STAYS = 0.7, 0.3


def risen(track: Track, bounds: Bounds) -> list[Spike]:
    """The largest rise that stays to the end and came at once, in noise that hides its first rows.
    None where blocks differ as much anyhow, or the loss takes many rows to rise."""
    count = len(track.values) // _BLOCK
    if count < 6 or min(track.values) <= 0:
        return []
    values = [math.log(one) for one in track.values[: count * _BLOCK]]
    blocks = [median(values[at : at + _BLOCK]) for at in range(0, len(values), _BLOCK)]
    changes = {at: fmean(blocks[at : at + 2]) - fmean(blocks[at - 2 : at])
               for at in range(2, count - 1)}  # fmt: skip
    noise = bend_of(blocks)
    best = max(changes, key=lambda at: changes[at])
    change = changes[best]
    if change < max(math.log1p(bounds.rise), bounds.sigmas * noise):
        return []
    at = _begun(values, (best - 2) * _BLOCK, (best + 2) * _BLOCK)
    before = median(values[max(0, at - 16) : at])
    if median(values[at : at + 16]) - before < _AT_ONCE * change:
        return []
    later = blocks[at // _BLOCK + 1 :]
    if not later or min(later) < before + _STAYS * change:
        return []
    if later[-1] - later[0] > (1 - _AT_ONCE) * change:  # it goes on rising
        return []
    return [Spike(at, math.exp(before), max(track.tops[at:]))]


def began(track: Track, at: int) -> int:
    """Where a rise that stays began, if that was a few rows before it stood out."""
    around = range(max(0, at - _BLOCK), min(at + _BLOCK, len(track.values)))
    values = [math.log(max(track.values[row], 1e-9)) for row in around]
    found = around[0] + _begun(values, 0, len(values))
    return found if at - _BLOCK // 4 <= found < at else at


def _begun(values: Sequence[float], first: int, last: int) -> int:
    """Where two levels part best."""
    part = values[first:last]
    total, left = sum(part), 0.0
    best, found = -math.inf, first
    for at in range(1, len(part)):
        left += part[at - 1]
        right = total - left
        apart = right / (len(part) - at) - left / at
        if at >= 16 and len(part) - at >= 16 and (
            told := apart * at * (len(part) - at) * abs(apart)
        ) > best:  # fmt: skip
            best, found = told, first + at
    return found


def early(track: Track, bounds: Bounds) -> list[Spike]:
    """A run that never again comes down to what it had in its first rows: where there was no time
    to learn what is usual."""
    if len(track.tops) < 3 * WINDOW or min(track.tops) <= 0:
        return []

    def smooth_at(at: int) -> float:
        return median(track.values[at : at + _SMOOTH])

    smooth = [smooth_at(at) for at in range(WINDOW)]
    low = min(range(WINDOW), key=lambda at: smooth[at])
    least = smooth[low] * (1 + bounds.early_rise)
    rest = range(2 * WINDOW, len(track.values) - _SMOOTH, _SMOOTH)
    if any(smooth_at(at) < least for at in rest):
        return []
    begun = next(at for at in range(low, 2 * WINDOW + 1) if smooth_at(at) >= least)
    return [Spike(begun, smooth[low], max(track.tops[begun:]))]


_SMOOTH = 5
