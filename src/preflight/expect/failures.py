"""How often something fails, as far as so many tries tell: bounds of 95 %, by Poisson's law."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, lgamma, log, sqrt

#: What is left out at each end.
_DOUBT = 0.05
#: From here on the normal law is as good.
_MANY = 500


def most_share(tries: int, failed: int) -> float:
    """The share that it is below, with 95 % certainty: of 3,000 tries without a failure 1 in 1,000
    ("rule of three": ln 20 = 3.0 of the tries)."""
    if not tries:
        return 1.0
    return min(1.0, _mean(failed, lambda mean: _up_to(failed, mean) > _DOUBT) / tries)


def least_share(tries: int, failed: int) -> float:
    """The share that it is above, with the same certainty."""
    if not tries or not failed:
        return 0.0
    return _mean(failed, lambda mean: 1 - _up_to(failed - 1, mean) < _DOUBT) / tries


def _mean(failed: int, is_low: Callable[[float], bool]) -> float:
    """The mean number of failures at which a condition that holds of low ones ends."""
    low, high = 0.0, failed + 10.0 * sqrt(failed + 1) + 10
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low


def _up_to(most: int, mean: float) -> float:
    """How likely no more than so many are."""
    if mean <= 0:
        return 1.0
    if most >= _MANY:
        return (1 + erf((most + 0.5 - mean) / sqrt(2 * mean))) / 2
    return sum(exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(most + 1))
