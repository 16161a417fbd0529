"""What the guard hands to the script's own functions, and what it raises."""

from __future__ import annotations

from typing import NamedTuple


class GuardError(RuntimeError):
    """The guard cannot be installed: what was tried, why not, what to do."""


class Save(NamedTuple):
    """A save that was asked for; the same `step` on every rank.

    `why`: the signal, or that another rank asked. `suspect`: why the weights may be bad by now ("":
    nothing says so): save beside the good checkpoints, and let none of them be rotated out.
    """

    step: int
    why: str
    suspect: str


class Event(NamedTuple):
    """Something in the figures of a step that is not noise.

    `kind`: nonfinite, spike, shift (a spike that stays), scale-collapse, scale-decline. `advice`:
    skip (this batch), stop, watch. `name`: loss, grad_norm or loss_scale. `usual`: the median of
    the steps before, in the unit of `value`; of a loss scale, where it began to fall.
    """

    kind: str
    advice: str
    step: int
    name: str
    value: float
    usual: float
    text: str
