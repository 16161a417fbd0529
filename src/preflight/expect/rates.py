"""How fast settings of a sweep are, and how far two of them are apart."""

from __future__ import annotations

from statistics import median

from preflight.facts.sweeps import Setting, Sweep
from preflight.model import Known, Missing

#: By one round nothing is known of how far rounds are apart.
LEAST_ROUNDS = 2


def rate(setting: Setting) -> float:
    """Tokens a second, the median of its rounds; 0 where it was not trained."""
    told = setting.tokens_per_s
    return 0.0 if isinstance(told, Missing) else told.median


def base_of(sweep: Sweep) -> Setting | None:
    """What was asked for, or is the default."""
    return next((one for one in sweep.settings if one.base), None)


def gain_percent(one: Setting, other: Setting) -> float:
    """How much faster one is than the other."""
    return 100.0 * (rate(one) / rate(other) - 1.0)


def faster(one: Setting, other: Setting, sweep: Sweep) -> bool:
    """Whether one is faster than the other by more than rounds of either differ, and in each of
    its rounds: the best of many is the luckiest too."""
    first, second = one.tokens_per_s, other.tokens_per_s
    if isinstance(first, Missing) or isinstance(second, Missing):
        return False
    if min(first.n, second.n) < LEAST_ROUNDS:
        return False
    apart = gain_percent(one, other) > spread_percent(one, other, sweep)
    return apart and first.low > second.high


def spread_percent(one: Setting, other: Setting, sweep: Sweep) -> float:
    """How far rounds of one setting are apart, in percent of their median: the more of the two,
    and no less than is usual in the sweep."""
    usual = [_apart(each) for each in sweep.settings if rate(each)]
    return max(_apart(one), _apart(other), median(usual) if usual else 0.0)


def _apart(one: Setting) -> float:
    told = one.tokens_per_s
    return 0.0 if isinstance(told, Missing) else 100.0 * (told.high - told.low) / told.median


def known(value: Known[float]) -> float | None:
    """None where it is missing."""
    return None if isinstance(value, Missing) else value
