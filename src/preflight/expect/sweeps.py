"""Which setting of a sweep to take, by rules that are told with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from preflight.facts.sweeps import Rounds, Setting, Sweep
from preflight.model import Missing


class Recommended(Struct, frozen=True):
    """`name` is empty where nothing is better than what is there; `why` says it either way."""

    name: str
    why: str
    gain_percent: float = 0.0
    spread_percent: float = 0.0


class Rule(Struct, frozen=True):
    """How an axis is decided. Of settings that are as good as the best within the spread, the one
    that costs least. `cost`: what a setting takes beside time; `fit`: whether it may be taken at
    all, with the base beside it; `less`: what is asked for is little of it."""

    cost: Callable[[Setting], float] = lambda _: 0.0
    fit: Callable[[Setting, Setting | None], bool] = lambda _, __: True
    note: str = ""


def recommended(sweep: Sweep) -> Recommended:
    """The setting to take, where it is faster than what is there by more than rounds differ."""
    rule = RULES.get(sweep.name, Rule())
    base = next((one for one in sweep.settings if one.base), None)
    found = [one for one in sweep.settings if rate(one) and rule.fit(one, base)]
    if not found:
        return Recommended("", "no setting could be trained")
    spread = spread_percent(sweep.settings)
    best = max(found, key=rate)
    close = [one for one in found if rate(one) >= rate(best) * (1.0 - spread / 100.0)]
    taken = min(close, key=rule.cost)
    return _against(base, taken, spread, rule.note)


def _against(base: Setting | None, taken: Setting, spread: float, note: str) -> Recommended:
    if base is None or not rate(base):
        why = (base.limit or base.failed) if base else ""
        told = f"what is there cannot be trained ({why})" if why else "there is no other to compare"
        return Recommended(taken.name, told, spread_percent=spread)
    gain = 100.0 * (rate(taken) / rate(base) - 1.0)
    if gain <= spread:
        told = f"no setting is faster than {base.name} beyond the spread of {spread:.1f} %"
        return Recommended("", told, gain, spread)
    told = f"{gain:+.1f} % tokens/s against {base.name}, spread of the rounds {spread:.1f} %"
    return Recommended(taken.name, f"{told}{note}", gain, spread)


def rate(setting: Setting) -> float:
    """Tokens a second, the median of its rounds; 0 where it was not trained."""
    told = setting.tokens_per_s
    return 0.0 if isinstance(told, Missing) else told.median


def spread_percent(settings: Sequence[Setting]) -> float:
    """How far rounds of one setting are apart, in percent of their median: the most of all
    settings, for the best of many is the luckiest too."""
    told = [one.tokens_per_s for one in settings if isinstance(one.tokens_per_s, Rounds)]
    found = [100.0 * (one.high - one.low) / one.median for one in told if one.median > 0]
    return max(found, default=0.0)


def _host_bytes(setting: Setting) -> float:
    told = setting.host_bytes
    return float("inf") if isinstance(told, Missing) else float(told)


RULES: dict[str, Rule] = {
    "loader": Rule(cost=_host_bytes),
}
