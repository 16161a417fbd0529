"""What a run says of warm-up and clipping, each with its rule."""

from __future__ import annotations

import math

from preflight.facts.training import Training
from preflight.model import Known, Missing

#: Percent of the steps that may be clipped: more of them say something else than clipping helps.
MOST_CLIPPED = 20.0
OFTEN = "above 20 % the learning rate is too high, or gradients are summed and not averaged"
#: A norm that is usual, and usually clipped to.
_USUAL = 1.0
#: Hooks that hold back a part of each gradient, and add it to the next ones.
_HOLD_BACK = ("topk", "powersgd", "onebit")
#: payload/training/clipping.py: the norms that a quantile has to know before it clips.
QUANTILE_FROM = 16
#: A layer is clipped where its gradient is so many times as large as usual.
_TIMES = 2.0


def warmup(run: Training) -> str:
    """Steps to warm up: AdamW's second moment is a mean over about 1 / (1 - beta2) steps, twice
    which it takes to forget its first ones (Ma and Yarats 2021); longer while the noise of the
    gradients still falls. "" where the run does not tell."""
    if isinstance(run.beta2, Missing) or not 0.0 < run.beta2 < 1.0:
        return ""
    # 1 - 0.95 is a little more than 0.05.
    floor = math.ceil(round(2.0 / (1.0 - run.beta2), 6))
    until = 0 if isinstance(run.noise_falls_until, Missing) else run.noise_falls_until
    told = f"{max(floor, until)} steps: 2 / (1 - beta2 {run.beta2:g}) = {floor}"
    told += f", and the noise of the gradients falls until step {until}" if until else ""
    return (
        f"{told}; 15 % of your run at most, and above 5 % is rarely needed; a rate that is then "
        "constant needs a decay at the end"
    )


def clipping(run: Training) -> str:
    """Whether a global norm clips too often, and by which norms layers could be clipped: twice the
    mean of each. "" where the run does not tell."""
    if isinstance(run.clip, Missing):
        return ""
    if isinstance(run.clipped_percent, Missing):
        return _of_quantile(run.clip, run.steps_asked)
    told = f"{run.clip} scaled {run.clipped_percent:.0f} % of the steps"
    if run.clipped_percent > MOST_CLIPPED:
        told += f": {why_often(run.clip, _norm(run), run.comm_hook)}"
    norms = {one.name: _TIMES * one.mean for one in run.layers}
    if len(norms) < 2:
        return told
    low, high = min(norms, key=norms.__getitem__), max(norms, key=norms.__getitem__)
    return (
        f"{told}; by layer at twice its mean norm: {norms[low]:.2g} ({low}) to "
        f"{norms[high]:.2g} ({high})"
    )


def why_often(policy: str, norm: float | None, hook: str = "none") -> str:
    """Why so many steps are clipped. `norm`: what gradients have usually."""
    name, _, most = policy.partition(":")
    if hook in _HOLD_BACK:
        return (f"with {hook} a gradient holds what was held back before, and its norm is larger "
                "by the hook: the learning rate may be well; a larger threshold, or no hook"
                )  # fmt: skip
    if name != "quantile" and norm is not None and float(most or _USUAL) < norm <= _USUAL:
        return f"the threshold is too low for norms of about {norm:.2g}: global:1, or quantile:0.9"
    return OFTEN


def _norm(run: Training) -> float | None:
    """Of the whole gradient, by the means of its layers."""
    return math.hypot(*(one.mean for one in run.layers)) if run.layers else None


def _of_quantile(policy: str, steps: Known[int]) -> str:
    if not policy.startswith("quantile") or isinstance(steps, Missing) or steps > QUANTILE_FROM:
        return ""
    return f"{policy} clipped nothing: it looks at {QUANTILE_FROM} steps first, of {steps}"
