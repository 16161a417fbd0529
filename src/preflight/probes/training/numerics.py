"""Losses, norms, the scale of the loss: what the numbers of a run did."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, median, pstdev
from typing import Any

from preflight.facts.training import Jump, Layer, Proof
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.training.lines import NO_STEP, PROBE, WHOLE, Line, Told, finite

#: Steps before one that its loss is held against, and the fewest of them at the beginning.
_BEFORE, _LEAST_BEFORE = 10, 3
#: Steps whose noise is one number, and how many such numbers it takes to see them fall.
_WINDOW, _PIECES = 10, 4
_OF_LOSSES = ("first_loss", "start_off_nats", "learned_percent", "jumps")
_NO_SCALE = Missing("not-applicable", "only fp16 scales the loss")
_NO_FLOOR = Missing("not-applicable", "the least loss of the user's own data is not known")
_NO_COMPILE = Missing("not-asked", "needs --compile")


def losses(told: Told, steps: list[Line]) -> dict[str, Any]:
    """From where the loss came, where it went, and how far that is of what can be learned."""
    vocabulary, floor = told.shape.get("vocabulary"), told.begin.get("floor_nats")
    chance = math.log(vocabulary) if finite(vocabulary) and vocabulary > 1 else None
    found: dict[str, Any] = {
        "chance_loss": NOT_IN_INPUT if chance is None else chance,
        "floor_loss": float(floor) if finite(floor) else _NO_FLOOR,
    }
    known = [one["loss"] for one in steps if finite(one["loss"])]
    if not known:
        return dict.fromkeys(_OF_LOSSES, NO_STEP) | found
    last = fmean(known[-max(1, len(known) // 10) :])
    found |= {"first_loss": known[0], "last_loss": last, **_jump(steps)}
    if chance is not None:
        found["start_off_nats"] = abs(known[0] - chance)
    found["learned_percent"] = _learned(told, steps, chance, last, found["floor_loss"])
    return found


def _learned(
    told: Told, steps: list[Line], chance: float | None, last: float, floor: Known[float]
) -> Known[float]:
    """How far the loss came on its way from chance to the floor, in percent."""
    if isinstance(floor, Missing) or chance is None or chance <= floor:
        return floor if isinstance(floor, Missing) else NOT_IN_INPUT
    asked = told.shape.get("steps")
    if not finite(asked) or len(steps) < asked:
        return told.unfinished()
    return 100.0 * (chance - last) / (chance - floor)


def _jump(steps: list[Line]) -> dict[str, Any]:
    """By how much the loss of a step was at most above the median of the ten before; of the first
    steps above those that there are. A run of no more than ten has nothing to tell it by."""
    told = [one["loss"] for one in steps]
    rises = {
        at: told[at] - median(before)
        for at in range(_LEAST_BEFORE, len(steps) if len(steps) > _BEFORE else 0)
        if all(map(finite, [*(before := told[max(0, at - _BEFORE) : at]), told[at]]))
    }
    if not rises:
        few = f"{len(steps)} steps are too few to tell a jump: more than {_BEFORE} are needed"
        return {"jumps": Missing("not-applicable", few)}
    at = max(rises, key=lambda one: rises[one])
    step = steps[at]
    when = f"at step {step['step']}"
    return {"jumps": (Jump("loss", max(0.0, rises[at]), when, step["line"], PROBE),)}


def norms(told: Told, steps: list[Line]) -> dict[str, Any]:
    """Gradient norms, steps without numbers, and what the scaler of fp16 did."""
    if not steps:
        return {"not_finite": NO_STEP, "norm_first": NO_STEP}
    odd = [
        one
        for one in steps
        if not finite(one["loss"]) or (not finite(one["norm"]) and not one["skipped"])
    ]
    known = [one["norm"] for one in steps if finite(one["norm"])]
    return {
        "not_finite": len(odd),
        "norm_first": known[0] if known else NO_STEP,
        "norm_high": max(known) if known else NO_STEP,
        "layers": tuple(_layers(told)),
        "clipped_percent": _clipped(str(told.plan.get("clip", "")), known),
        "noise_falls_until": _falls_until(known),
        **_scale(told, steps),
    }


def _clipped(policy: str, known: list[float]) -> Known[float]:
    """Percent of the steps whose norm is above the most that a global policy leaves."""
    name, _, most = policy.partition(":")
    if name != "global" or not known:
        return Missing("not-applicable", "the steps tell it of a global policy alone")
    return 100.0 * sum(one > float(most or 1) for one in known) / len(known)


def _falls_until(known: list[float]) -> Known[int]:
    """The step from which the relative noise of the norms is no larger than later, but for a
    quarter: that of each ten steps, against the median of the second half."""
    pieces = [known[at : at + _WINDOW] for at in range(0, len(known) - _WINDOW + 1, _WINDOW)]
    if len(pieces) < _PIECES or not all(fmean(one) > 0 for one in pieces):
        return Missing("not-applicable", "too few steps to tell whether their noise falls")
    noise = [pstdev(one) / fmean(one) for one in pieces]
    later = median(noise[len(noise) // 2 :])
    return next(at for at, one in enumerate(noise) if one <= 1.25 * later) * _WINDOW


def _scale(told: Told, steps: list[Line]) -> dict[str, Any]:
    if told.shape.get("precision") != "fp16":
        return dict.fromkeys(("skipped_percent", "scale_low", "scale_changes"), _NO_SCALE)
    return {
        "skipped_percent": 100.0 * sum(bool(one["skipped"]) for one in steps) / len(steps),
        "scale_low": float(min(one["scale"] for one in steps)),
        "scale_changes": len({one["step"] for one in told.where("scale", launch=WHOLE)}),
    }


def _layers(told: Told) -> Iterable[Layer]:
    found: dict[str, list[float]] = defaultdict(list)
    lines = told.where("norms", launch=WHOLE)
    for one in (one for one in lines if one.get("rank") == lines[0].get("rank")):
        for name, norm in one["layers"].items():
            found[str(name)] += [float(norm)] if finite(norm) else []
    return (Layer(name, fmean(each), max(each)) for name, each in found.items() if each)


def proofs(told: Told) -> tuple[Proof, ...]:
    """What was proved before training, each as the rank told it that is worst."""
    found = []
    for name in ("accumulation", "attention", "compile"):
        lines = told.where("proof", name=name)
        if lines:
            worst = max(lines, key=lambda one: _size(one["gradient"]))
            # Of three numbers none is left out: one that is none is as far apart as can be.
            sizes = {key: _size(worst[key]) for key in ("loss", "gradient", "norm_ratio")}
            found.append(Proof(name, **sizes, line=worst["line"], probe=PROBE))
        elif name == "compile" and not told.plan.get("compiled"):
            found.append(Proof(name, _NO_COMPILE, _NO_COMPILE, _NO_COMPILE))
    return tuple(found)


def membership(told: Told) -> dict[str, Any]:
    """Trainable parameters that the optimizer lacks, or has twice."""
    lines = told.where("proof", name="membership")
    if not lines:
        return dict.fromkeys(("outside_optimizer", "twice_in_optimizer"), told.unfinished())
    return {
        "outside_optimizer": max(int(one["missing"]) for one in lines),
        "twice_in_optimizer": max(int(one["repeated"]) for one in lines),
    }


def _size(value: Any) -> float:
    return float(value) if finite(value) else math.inf
