"""What a run says of warm-up and clipping, each with its rule."""

from __future__ import annotations

import math

from preflight.facts.training import Training
from preflight.model import Missing

#: Percent of the steps that may be clipped: more of them say something else than clipping helps.
MOST_CLIPPED = 20.0
OFTEN = "above 20 % the learning rate is too high, or gradients are summed and not averaged"
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
    if isinstance(run.clipped_percent, Missing) or isinstance(run.clip, Missing):
        return ""
    told = f"{run.clip} scaled {run.clipped_percent:.0f} % of the steps"
    told += f": {OFTEN}" if run.clipped_percent > MOST_CLIPPED else ""
    norms = {one.name: _TIMES * one.mean for one in run.layers}
    if len(norms) < 2:
        return told
    low, high = min(norms, key=norms.__getitem__), max(norms, key=norms.__getitem__)
    return (
        f"{told}; by layer at twice its mean norm: {norms[low]:.2g} ({low}) to "
        f"{norms[high]:.2g} ({high})"
    )
