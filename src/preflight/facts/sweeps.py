"""What a sweep of the bundled training loop measured: the same few steps under several settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from preflight.model import NOT_IN_INPUT, Known


class Rounds(Struct, frozen=True):
    """One number of a setting over the rounds in which it was trained."""

    n: int
    median: float
    low: float
    high: float


class Setting(Struct, frozen=True):
    """One way to train. What a setting does not tell is missing; `limit` and `failed` say why
    nothing was measured."""

    name: str  # workers 2, prefetch 4
    values: dict[str, str | int | float | bool] = field(default_factory=dict)
    base: bool = False  # what was asked for, or is the default
    limit: str = ""  # memory ended, or the time for it
    met: bool = False  # the limit was met by training, and not foreseen
    failed: str = ""
    steps: int = 0  # timed, of all rounds
    tokens_per_s: Known[Rounds] = NOT_IN_INPUT
    step_s: Known[float] = NOT_IN_INPUT  # medians over the rounds
    data_percent: Known[float] = NOT_IN_INPUT
    shares: dict[str, float] = field(default_factory=dict)  # percent of the step by part
    peak_bytes: Known[int] = NOT_IN_INPUT  # the most of all rounds
    host_bytes: Known[int] = NOT_IN_INPUT
    shm_bytes: Known[int] = NOT_IN_INPUT
    sent_bytes: Known[int] = NOT_IN_INPUT  # by one rank in a step
    kv_cache_bytes: Known[int] = NOT_IN_INPUT  # of all tokens of a pass
    launches: Known[int] = NOT_IN_INPUT  # of kernels, in a step
    #: Of a step without its wait for data, in which no kernel ran.
    launch_bound_percent: Known[float] = NOT_IN_INPUT
    operators: Known[int] = NOT_IN_INPUT  # of a step on processors
    loss: Known[float] = NOT_IN_INPUT  # of the last steps
    loss_noise: Known[float] = NOT_IN_INPUT
    norm: Known[float] = NOT_IN_INPUT  # of the gradients, the median of the steps
    clipped_percent: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Sweep(Struct, frozen=True):
    """All settings of one axis, in their order."""

    name: str  # the axis: loader
    settings: tuple[Setting, ...] = ()
    #: Settings that ended otherwise than by a limit, with why; missing where none came to an end.
    broken: Known[tuple[str, ...]] = NOT_IN_INPUT
    left_out: str = ""  # what was not tried here, and why
    line: int = 0
    probe: str = ""


class Scaled(Struct, frozen=True):
    """One number of devices of a sweep over them, against one device."""

    name: str  # 4 devices
    efficiency: Known[float] = NOT_IN_INPUT  # tokens/s of a device over those of one alone
    when: str = ""  # which part of the step grew
    line: int = 0
    probe: str = ""


def options_of(axis: str, values: dict[str, Any]) -> str:
    """What to type for a setting by itself; "" where no option says it."""
    say = _OPTIONS.get(axis)
    return say(values) if say and values else ""


def _loader(values: dict[str, Any]) -> str:
    ahead = f" --prefetch {values['prefetch']}" if values["workers"] else ""
    return f"--workers {values['workers']}{ahead}"


def _recompute(values: dict[str, Any]) -> str:
    if "operators" in values:
        return ""
    return "--activation-checkpointing" if values["blocks"] == values["of"] else ""


_OPTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "loader": _loader,
    "length": lambda one: f"--length {one['length']} --batch {one['batch']}",
    "batch": lambda one: f"--batch {one['batch']}",
    "scaling": lambda one: f"--ranks {one['devices']}",
    "recompute": _recompute,
    "clip": lambda one: f"--clip {one['policy']}",
    "kv-heads": lambda one: f"--kv-heads {one['kv_heads']}",
    "comm-hook": lambda one: f"--comm-hook {one['hook']}",
}
