"""Which setting of a sweep to take, by rules that are told with it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from preflight.expect.advised import MOST_CLIPPED, why_often
from preflight.expect.rates import (
    LEAST_ROUNDS,
    base_of,
    faster,
    gain_percent,
    known,
    rate,
    spread_percent,
)
from preflight.facts.sweeps import Setting, Sweep
from preflight.model import Known, Missing

#: Tokens/s of a device beside others, against one alone, from which on more of them are worth it.
_EFFICIENT = 0.90
#: Percent. A noise is the standard deviation of some 30 steps, known to 1 / sqrt(2 x 30) = 13 %:
#: one that is lower by twice that is lower.
_NOISE = 26.0
#: Percent by which rounds may differ: beyond it no gain that matters can be seen.
_TELLS = 20.0
#: Percent of the tokens/s that are no cost.
_NO_COST = 5.0
#: Of the loss, what a hook on gradients may add beyond the noise.
_LOSS = 0.005
_WORSE = 1.0 + _LOSS


class Recommended(Struct, frozen=True):
    """`name` is empty where nothing is better than what is there; `why` says it either way.
    `untold`: the rounds differ too much for anything to be told."""

    name: str
    why: str
    gain_percent: float = 0.0
    spread_percent: float = 0.0
    untold: bool = False


_UNFINISHED = Recommended("", "the sweep ended before your present setting was trained")
_ONCE = Recommended("", "the sweep ended before its second round: how far rounds differ is unknown")
Choice = Callable[[Sweep], Recommended]


def recommended(sweep: Sweep) -> Recommended:
    """The setting to take, by the rule of its axis."""
    if not any(map(rate, sweep.settings)):
        return Recommended("", "no setting could be trained")
    return RULES.get(sweep.name, fastest())(sweep)


def fastest(
    cost: Callable[[Setting], float] = lambda _: 0.0,
    fit: Callable[[Setting, Sweep], bool] = lambda _, __: True,
    note: str = "",
) -> Choice:
    """Of the settings that are faster than what is there, and no slower than the fastest, the one
    that costs least. `fit`: whether one may be taken."""

    def choose(sweep: Sweep) -> Recommended:
        found = [one for one in sweep.settings if rate(one) and fit(one, sweep)]
        if not found:
            return Recommended("", "no setting may be taken")
        base, best = base_of(sweep), max(found, key=rate)
        close = [one for one in found if not faster(best, one, sweep)]
        if base is None:
            return _UNFINISHED
        if not rate(base):
            told = f"what is there cannot be trained ({base.limit or base.failed})"
            return Recommended(min(close, key=cost).name, f"{told}{note}")
        if _once(base):
            return _ONCE
        better = [one for one in close if faster(one, base, sweep)]
        if not better:
            spread = spread_percent(best, base, sweep)
            unclear = [one for one in found if one is not base and not faster(base, one, sweep)]
            apart = max((spread_percent(one, base, sweep) for one in unclear), default=0.0)
            if apart > _TELLS:
                return _untold(apart)
            told = f"no setting is faster than {base.name} beyond the spread of {spread:.1f} %"
            return Recommended("", told, gain_percent(best, base), spread)
        taken = min(better, key=cost)
        gain, spread = gain_percent(taken, base), spread_percent(taken, base, sweep)
        told = f"{gain:+.1f} % tokens/s against {base.name}, spread of the rounds {spread:.1f} %"
        return Recommended(taken.name, f"{told}{note}", gain, spread)

    return choose


def _longest(sweep: Sweep) -> Recommended:
    """Length is what the model sees, and no matter of speed: how far it costs nothing."""
    base = base_of(sweep)
    if base is None:
        return _UNFINISHED
    if not rate(base):
        return fastest()(sweep)
    if _once(base):
        return _ONCE
    longer = [one for one in sweep.settings if _length(one) > _length(base)]
    trained = [one for one in longer if rate(one)]
    if not trained:
        why = [f"{one.name}: {one.limit or one.failed}" for one in longer]
        return Recommended("", "; ".join(["no longer one was trained", *why[:1]]))
    told = [one for one in trained
            if spread_percent(one, base, sweep) <= _TELLS or faster(base, one, sweep)]  # fmt: skip
    if not told:
        return _untold(min(spread_percent(one, base, sweep) for one in trained))
    free = [one for one in told if not faster(base, one, sweep)
            and gain_percent(one, base) > -_NO_COST]  # fmt: skip
    last = max(free or told, key=_length if free else rate)
    spread, gain = spread_percent(last, base, sweep), gain_percent(last, base)
    if not free:
        slower = f"every longer one is slower: {last.name} by {-gain:.1f} %, spread {spread:.1f} %"
        return Recommended("", slower, 0.0, spread)
    within = f"the longest that costs nothing: {gain:+.1f} % tokens/s, spread {spread:.1f} %"
    return Recommended(last.name, within, gain, spread)


def _once(base: Setting) -> bool:
    return not isinstance(base.tokens_per_s, Missing) and base.tokens_per_s.n < LEAST_ROUNDS


def _untold(spread: float) -> Recommended:
    told = (f"the rounds differ by {spread:.0f} %: nothing can be told, not even a gain of "
            f"{_TELLS:g} %; an idle machine, more --steps")  # fmt: skip
    return Recommended("", told, spread_percent=spread, untold=True)


def _devices(sweep: Sweep) -> Recommended:
    """How many devices are worth it; between ranks on processors it is only shown."""
    found = sorted((one for one in sweep.settings if rate(one)), key=devices)
    one = rate(found[0]) / devices(found[0])
    spread = max(spread_percent(each, each, sweep) for each in found)
    if spread > _TELLS:
        return _untold(spread)
    shares = {each.name: rate(each) / devices(each) / one for each in found}
    told = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    worth = [each for each in found if shares[each.name] >= _EFFICIENT]
    why = f"tokens/s of a device against {found[0].name}: {told}"
    return Recommended(worth[-1].name, why)


def _steadiest(sweep: Sweep) -> Recommended:
    """The policy under which the loss jumps least, where few steps are clipped."""
    base = base_of(sweep)
    often = _often(base)
    found = [one for one in sweep.settings if _may_clip(one, base)]
    best = min(found, key=_noise, default=None)
    if base is None or best is None or not _noise(base) < float("inf"):
        return Recommended("", f"no policy can be compared{often}")
    gain = 100.0 * (1.0 - _noise(best) / _noise(base)) if _noise(base) else 0.0
    if gain <= _NOISE:
        told = (
            f"under no policy is the noise of the loss lower than under {base.name} by {_NOISE:g} %"
        )
        return Recommended("", f"{told}, as far as so few steps tell it{often}", gain, _NOISE)
    told = f"the noise of the loss is lower by {gain:.0f} % than under {base.name}{often}"
    return Recommended(best.name, told, gain, _NOISE)


def _often(base: Setting | None) -> str:
    clipped = None if base is None else known(base.clipped_percent)
    if base is None or clipped is None or clipped <= MOST_CLIPPED:
        return ""
    why = why_often(str(base.values.get("policy", base.name)), known(base.norm))
    return f"; {clipped:.0f} % of the steps are clipped now: {why}"


def _may_clip(one: Setting, base: Setting | None) -> bool:
    return bool(rate(one)) and not _against(one, base)


def _against(one: Setting, base: Setting | None) -> str:
    """Why a policy may not be taken: it clips more than few steps, or the loss is worse."""
    clipped, loss = known(one.clipped_percent), known(one.loss)
    least = None if base is None else known(base.loss)
    if clipped is None or loss is None or least is None:
        return "not known"
    if not clipped and one.name.startswith("quantile"):
        return "clipped nothing in so few steps"
    return ", ".join(
        told
        for told, holds in (
            ("clips often", clipped > MOST_CLIPPED), ("the loss is worse", loss > least * _WORSE),
        )
        if holds
    )  # fmt: skip


def _same_loss(one: Setting, sweep: Sweep) -> bool:
    """The loss came as far as without a hook, but for its noise."""
    plain = next((each for each in sweep.settings if each.name == "none"), None)
    if plain is None or plain is one:
        return True
    loss, least, noise = known(one.loss), known(plain.loss), known(plain.loss_noise)
    if loss is None or least is None:
        return False
    return loss <= least * (1.0 + _LOSS) + 2.0 * (noise or 0.0)


def unfit(sweep: Sweep) -> dict[str, str]:
    """Settings that may not be taken however fast they are, and why."""
    base = base_of(sweep)
    told = [one for one in sweep.settings if rate(one)]
    if sweep.name == "comm-hook":
        return {one.name: "the loss is worse" for one in told if not _same_loss(one, sweep)}
    if sweep.name == "clip":
        return {one.name: why for one in told if (why := _against(one, base))}
    return {}


def pareto(sweep: Sweep) -> set[str]:
    """The settings to which no other is at once faster and smaller at its peak."""
    found = [one for one in sweep.settings if rate(one) and known(one.peak_bytes) is not None]
    return {
        one.name
        for one in found
        if not any(
            rate(each) >= rate(one) and _peak(each) <= _peak(one)
            and (rate(each), -_peak(each)) != (rate(one), -_peak(one))
            for each in found
        )
    }  # fmt: skip


def devices(setting: Setting) -> int:
    """Of a setting of a sweep over them."""
    return int(setting.values.get("devices", 1))


def _number(value: Known[float]) -> float:
    return float("inf") if isinstance(value, Missing) else float(value)


def _length(setting: Setting) -> float:
    return float(setting.values.get("length", 0))


def _noise(setting: Setting) -> float:
    return _number(setting.loss_noise)


def _peak(setting: Setting) -> float:
    return _number(setting.peak_bytes)


def _host(setting: Setting) -> float:
    return _number(setting.host_bytes)


RULES: dict[str, Choice] = {
    "loader": fastest(_host),
    "length": _longest,
    "batch": fastest(lambda one: float(one.values.get("batch", 0)),
                     note="; a larger batch needs another learning rate"),
    "scaling": _devices,
    "recompute": fastest(_peak),
    "clip": _steadiest,
    "kv-heads": fastest(lambda one: float(one.values.get("kv_heads", 0)),
                        note="; what fewer heads cost in quality is not measured"),
    "comm-hook": fastest(lambda one: _number(one.sent_bytes), _same_loss,
                         note=", with the loss of none"),
}  # fmt: skip
