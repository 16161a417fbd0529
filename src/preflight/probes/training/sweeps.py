"""The settings of a sweep, each over its rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from preflight.facts.sweeps import Rounds, Scaled, Setting, Sweep, options_of
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.training.lines import PROBE, Line, Told, finite

#: Several ranks on processors take cores, caches and memory from each other.
_SHARED = Missing(
    "not-applicable", "processors share their memory: scaling over them is shown only"
)
_NO_SCALING = Missing("not-asked", "needs --sweep scaling")
_ONE = Missing("not-applicable", "fewer than two numbers of devices were trained")
#: Of several rounds the middle counts; of memory the most.
_MIDDLE = ("step_s", "data_percent", "loss", "loss_noise", "norm", "clipped_percent",
           "launch_bound_percent")  # fmt: skip
_MOST = ("peak_bytes", "host_bytes", "shm_bytes", "sent_bytes", "kv_cache_bytes", "launches",
         "operators")  # fmt: skip


def sweeps(told: Told) -> tuple[Sweep, ...]:
    """One for each axis, those of which nothing was told among them."""
    asked = dict.fromkeys(map(str, told.plan.get("sweep") or ()))
    return tuple(_sweep(axis, told) for axis in asked)


def _sweep(axis: str, told: Told) -> Sweep:
    lines = told.where("setting", axis=axis)
    names = dict.fromkeys(str(one["setting"]) for one in lines)
    found = tuple(_setting([one for one in lines if one["setting"] == name]) for name in names)
    at = lines[0]["line"] if lines else 0
    left_out = _said(told.where("sweep", axis=axis), "left_out")
    return Sweep(axis, found, _broken(axis, found, told), left_out, at, PROBE)


def _setting(rounds: list[Line]) -> Setting:
    first = rounds[0]
    rates = _numbers(rounds, "tokens_per_s")
    return Setting(
        str(first["setting"]),
        {str(name): value for name, value in first["values"].items()},
        base=first.get("base") is True,
        limit=_said(rounds, "limit"),
        met=any(one.get("met") is True for one in rounds),
        failed=_said(rounds, "failed"),
        steps=sum(int(one["steps"]) for one in rounds if finite(one.get("steps"))),
        tokens_per_s=_rounds(rates),
        shares=_shares(rounds),
        **{name: _of(median, _numbers(rounds, name)) for name in _MIDDLE},
        **{name: _of(max, map(int, _numbers(rounds, name))) for name in _MOST},
        line=first["line"],
        probe=PROBE,
    )


def _rounds(rates: list[float]) -> Known[Rounds]:
    return Rounds(len(rates), median(rates), min(rates), max(rates)) if rates else NOT_IN_INPUT


def _numbers(rounds: Iterable[Line], name: str) -> list[float]:
    return [float(one[name]) for one in rounds if finite(one.get(name))]


def _of(choose: Any, numbers: Iterable[float]) -> Known[Any]:
    found = list(numbers)
    return choose(found) if found else NOT_IN_INPUT


def _said(rounds: Iterable[Mapping[str, Any]], name: str) -> str:
    return next((str(one[name]) for one in rounds if one.get(name)), "")


def _shares(rounds: list[Line]) -> dict[str, float]:
    """Percent of the step by part, the mean over the rounds."""
    told = [one["shares"] for one in rounds if isinstance(one.get("shares"), dict)]
    parts = dict.fromkeys(part for one in told for part in one)
    return {str(part): sum(float(one.get(part, 0.0)) for one in told) / len(told) for part in parts}


def scaling(told: Told, found: tuple[Sweep, ...]) -> Known[tuple[Scaled, ...]]:
    """Of a sweep over devices what each of several gives, against the fewest."""
    settings = next((one.settings for one in found if one.name == "scaling"), None)
    if settings is None:
        return _NO_SCALING
    if told.plan.get("device") == "cpu":
        return _SHARED
    fewest, *others = sorted(filter(_per_device, settings), key=_devices) or (None,)
    if fewest is None or not others:
        return _ONE
    alone = _per_device(fewest)
    return tuple(
        Scaled(one.name, round(_per_device(one) / alone, 3), _grown(fewest, one), one.line, PROBE)
        for one in others
    )


def _devices(setting: Setting) -> int:
    return int(setting.values["devices"])


def _per_device(setting: Setting) -> float:
    """Tokens a second of each; 0 where it was not trained."""
    told = setting.tokens_per_s
    return 0.0 if isinstance(told, Missing) else told.median / max(1, _devices(setting))


def _grown(before: Setting, after: Setting) -> str:
    """The part of a step that grew most, in seconds of it."""
    if isinstance(before.step_s, Missing) or isinstance(after.step_s, Missing):
        return ""
    grown = {
        part: share * after.step_s - before.shares.get(part, 0.0) * before.step_s
        for part, share in after.shares.items()
    }
    part = max(grown, key=lambda one: grown[one], default="")
    if not part or grown[part] <= 0:
        return ""
    first = before.shares.get(part, 0.0)
    return f"{part} is {after.shares[part]:.0f} % of the step, with {before.name} {first:.0f} %"


def _broken(axis: str, found: tuple[Setting, ...], told: Told) -> Known[tuple[str, ...]]:
    """Those that failed. A limit is an answer, where it was met or others can be compared."""
    if not found or not told.of["end"]:
        return told.unfinished()
    failed = tuple(
        f"{one.name}: {one.failed}{_by_itself(axis, one, told)}" for one in found if one.failed
    )
    trained = [one for one in found if not isinstance(one.tokens_per_s, Missing)]
    if failed or len(trained) > 1 or (trained and any(one.met for one in found)):
        return failed
    only = f"only {trained[0].name} was trained" if trained else "no setting could be trained"
    why = [f"{one.name}: {one.limit}" for one in found if one.limit]
    text = "; ".join([f"nothing to compare, {only}", *why[:1]])
    return Missing("exited", text[:400])


def _by_itself(axis: str, setting: Setting, told: Told) -> str:
    """What to type for a whole run with it: that names the rank and why."""
    values: dict[str, Any] = dict(setting.values)
    options = options_of(axis, values)
    if not options:
        return ""
    plan = told.plan
    asked = [f"--preset {plan['preset']}"] if plan.get("preset") else []
    asked += [f"--ranks {plan['ranks']}"] if plan.get("ranks") and axis != "scaling" else []
    return f"; by itself: `{' '.join(['preflight micro-train', *asked, options])}`"
