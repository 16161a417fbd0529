"""What --sweep asks for, and what is told of it meanwhile."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from preflight.cli.drills import has_no_gpu, world
from preflight.cli.options import Options
from preflight.errors import UsageError


class Axis(Struct, frozen=True):
    """`settings`: how many there are about, where no values are named; `value`: the form of one;
    `are`: what the values are, with an example. `steps` of a setting, and about how long each is
    with a preset that fits its device."""

    settings: int
    value: str
    are: str
    example: str
    steps: int = 20
    step_s: float = 0.05


_WHOLE = r"[1-9]\d{0,6}"
#: As --clip takes it.
CLIP = r"none|(global|layer):(?!0*\.?0*$)\d{1,6}(\.\d{1,6})?|quantile:0?\.\d{1,6}"
HOOKS = ("none", "bf16", "fp16", "powersgd", "topk", "onebit")
#: Those of payload/training/sweeps.py.
AXES = {
    "loader": Axis(5, r"\d{1,3}(x[1-9]\d{0,3})?", "workers of a rank, or workers x batches ahead",
                   "0,2,4x2"),
    "length": Axis(5, _WHOLE, "tokens of a sequence, 8 or more", "512,1024"),
    "batch": Axis(8, _WHOLE, "sequences of a pass", "8,16,32", step_s=0.4),
    "scaling": Axis(3, _WHOLE, "devices", "1,2,4"),
    "recompute": Axis(5, r"0|1|[01]\.0*|0?\.\d{1,6}|(?!0)\d{1,3}/[1-9]\d{0,2}|operators",
                      "shares of the blocks, 0 to 1, or operators", "0,0.5,operators"),
    "clip": Axis(6, CLIP, "policies as --clip takes them", "none,global:1,quantile:0.9", 60),
    "kv-heads": Axis(3, _WHOLE, "key and value heads, which divide the heads", "1,4"),
    "comm-hook": Axis(5, "|".join(HOOKS), f"{', '.join(HOOKS[:-1])} or {HOOKS[-1]}",
                      "none,topk", 60),
}  # fmt: skip
#: Heads by preset, those of payload/training/presets.py; a test holds them together.
HEADS = {"cpu-tiny": 4, "gpu-small": 12, "gpu-1b": 32, "gpu-7b-slice": 32}
_VALUES = re.compile(r"[\w.:/-]{1,32}(,[\w.:/-]{1,32}){0,63}")
#: Faults that `training.sweep` sees, each as a setting that failed; and one that its table shows.
_SEEN, _SHOWN = ("kill", "stop", "nan"), ("slow-loader", "loader")


def sweeps_of(options: Options) -> dict[str, list[str]]:
    """Axes and the values that the user names; an empty list leaves them open. Raises
    UsageError."""
    found: dict[str, list[str]] = {}
    for one in options.sweep:
        axis, equals, values = one.partition("=")
        if axis not in AXES:
            raise UsageError(f"--sweep {axis!r} is no axis", f"one of {', '.join(AXES)}")
        if axis in found:
            raise UsageError(f"--sweep {axis} is there twice", "all values of it behind one `=`")
        if equals and not _VALUES.fullmatch(values):
            raise UsageError(f"--sweep {one}: {values!r} are no values", _typed(axis))
        found[axis] = values.split(",") if equals else []
        _hold(options, axis, found[axis])
    _hold_faults(options, found)
    return found


def _typed(axis: str) -> str:
    return f"--sweep {axis}={AXES[axis].example}, or --sweep {axis}: {AXES[axis].are}"


def _hold(options: Options, axis: str, values: list[str]) -> None:
    """Refuse what can never be a setting here, as far as it is known before anything is asked."""
    for value in values:
        if not re.fullmatch(AXES[axis].value, value):
            raise UsageError(f"--sweep {axis}: {value!r} is no value of it", _typed(axis))
        _hold_value(options, axis, value)
    if axis in ("scaling", "comm-hook") and world(options) == 1 and _alone(axis, values):
        raise UsageError(f"--sweep {axis} compares several ranks, and there is one",
                         f"--ranks 2 --sweep {axis}")  # fmt: skip
    if axis == "comm-hook" and options.sharding in ("fsdp", "single"):
        raise UsageError(f"--sweep comm-hook is of DDP, and --sharding is {options.sharding}",
                         "leave --sharding out")  # fmt: skip


def _alone(axis: str, values: list[str]) -> bool:
    return axis == "comm-hook" or not any(int(one) > 1 for one in values)


def _hold_value(options: Options, axis: str, value: str) -> None:
    if axis == "length" and int(value) < _SHORTEST:
        raise UsageError(f"--sweep length: {value} is too short", f"{_SHORTEST} or more")
    if axis == "recompute" and "/" in value:
        above, below = map(int, value.split("/"))
        if above > below:
            raise UsageError(f"--sweep recompute: {value} is more than all blocks", _typed(axis))
    if axis == "comm-hook" and value == "bf16" and has_no_gpu(options):
        raise UsageError(f"--sweep comm-hook: {BF16}", "--sweep comm-hook=none,fp16")
    if axis == "kv-heads":
        hold_kv_heads(options, int(value), "--sweep kv-heads")
    most = max(options.ranks or 1, len(os.sched_getaffinity(0)))
    if axis == "scaling" and has_no_gpu(options) and int(value) > most:
        raise UsageError(
            f"--sweep scaling: {value} devices are more than this machine has: {most} processors",
            f"--sweep scaling={most}",
        )


_SHORTEST = 8
#: Why there is no such hook on processors.
BF16 = "torch has a communication hook of bf16 for NCCL only, and this machine has no GPU"


def hold_kv_heads(options: Options, count: int, flag: str) -> None:
    """Refuse heads for keys and values that do not divide the preset's, where it is known."""
    preset = options.preset or ("cpu-tiny" if has_no_gpu(options) else "")
    heads = HEADS.get(preset)
    if heads and heads % count:
        take = [str(one) for one in range(1, heads + 1) if not heads % one]
        raise UsageError(f"{flag}: {count} does not divide the {heads} heads of {preset}",
                         f"one of {', '.join(take)}")  # fmt: skip


def _hold_faults(options: Options, found: dict[str, list[str]]) -> None:
    """Refuse a fault that nothing in a sweep would show."""
    for one in options.inject if found else ():
        name = one.partition(":")[0]
        if name not in _SEEN and not (name == _SHOWN[0] and _SHOWN[1] in found):
            raise UsageError(
                f"--inject {one} would not be seen: a sweep judges no run",
                f"without --sweep; with it {', '.join(_SEEN)}, or {_SHOWN[0]} of "
                f"--sweep {_SHOWN[1]}",
            )


def seconds(plan: dict[str, Any]) -> int:
    """What the sweep of a plan takes, about: each setting is started and trained in each round."""
    return round(sum(_seconds(plan, axis, values) for axis, values in plan["sweep"].items()))


def _seconds(plan: dict[str, Any], axis: str, values: list[str]) -> float:
    of = AXES[axis]
    steps = int(plan.get("changes", {}).get("steps", of.steps))
    # What is there already is one more setting.
    return _ROUNDS * (len(values) + 1 if values else of.settings) * (_START_S + steps * of.step_s)


#: How often each setting is trained, and seconds until its first step.
_ROUNDS, _START_S = 3, 2.0


def _setting(told: dict[str, Any]) -> str:
    where = f"{told['axis']}, {told['setting']}"
    if "tokens_per_s" in told:
        return f"{where}: {float(told['tokens_per_s']):,.0f} tokens/s"
    return f"{where}: {told.get('limit') or told['failed']}"


NEWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "sweep": lambda told: f"{told['axis']}: {len(told['settings'])} settings, three times each",
    "setting": _setting,
}
