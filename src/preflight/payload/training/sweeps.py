"""The axes of a sweep as a table: which settings each has here, and the plan with one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from . import recomputing
from .cannot import dividers
from .clipping import policy
from .comm_hooks import HOOKS
from .model import kv_cache_bytes
from .plan import Plan, PlanError
from .presets import Preset
from .work import shape_of

Values = dict[str, Any]
#: Steps of a setting, those that warm up among them; of axes whose loss is looked at more.
STEPS, STEPS_OF_LOSS = 20, 60
#: Twice as much each time: memory ends long before.
_DOUBLINGS = 14
#: Workers of a rank beyond which more of them were never faster.
_WORKERS = (0, 1, 2, 4, 8)
_PREFETCH = (2, 4)


@dataclass(frozen=True)
class Setting:
    """One way to train: what it is called, what was set, the plan with it. `base`: it is the plan
    as it was asked for."""

    name: str
    values: Values
    plan: Plan
    base: bool = False


@dataclass(frozen=True)
class Axis:
    """`own`: the values where the user names none, from the plan and the cores of this host;
    `read`: the values of one that the user names; `of`: the plan with them; `base`: those that the
    plan has already."""

    own: Callable[[Plan, Preset, int], list[Values]]
    read: Callable[[str, Plan], list[Values]]
    of: Callable[[Plan, Values], Plan]
    base: Callable[[Plan, Preset], Values]
    name: Callable[[Values], str]
    steps: int = STEPS
    ends: bool = field(default=False)  # what comes after one that does not fit does not fit
    more: str = "name other values"  # where there is one setting alone
    without: Callable[[Plan, int], str] = lambda plan, cores: (
        ""
    )  # what its own values lack, and why


def left_out(plan: Plan, axis: str, cores: int) -> str:
    """What nobody has asked for, and is not tried here; with why. "" where there is nothing."""
    return "" if plan.sweep[axis] else AXES[axis].without(plan, cores)


def settings(plan: Plan, axis: str, cores: int) -> list[Setting]:
    """Those of an axis in their order, what is there already among them. Raises PlanError."""
    one = AXES.get(axis)
    if one is None:
        raise PlanError(f"no sweep of {axis}: there are {', '.join(AXES)}")
    shape, asked = shape_of(plan), plan.sweep[axis]
    try:
        found = [each for text in asked for each in one.read(str(text), plan)]
    except ValueError as error:
        raise PlanError(f"--sweep {axis}={','.join(map(str, asked))}: {error}") from error
    found = found or one.own(plan, shape, cores)
    found = [each for at, each in enumerate(found) if each not in found[:at]]
    base = one.base(plan, shape)
    if base not in found:
        found = sorted([*found, base], key=_order) if _sortable(found) else [base, *found]
    steps = plan.changes.get("steps", one.steps)
    return [
        Setting(one.name(each), each, _with_steps(one.of(plan, each), steps), each == base)
        for each in found
    ]


def _with_steps(plan: Plan, steps: int) -> Plan:
    return replace(plan, changes={**plan.changes, "steps": steps}, sweep={}, resume=False)


def _order(values: Values) -> tuple[Any, ...]:
    return tuple(values.values())


def _sortable(found: list[Values]) -> bool:
    return all(isinstance(one, (int, float)) for values in found for one in values.values())


# Loader: processes of a rank, batches that each has ready, whether they are pinned.


def _loader(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    most = max(1, cores // plan.ranks)
    pins = (True, False) if plan.device == "cuda" else (False,)
    return [
        {"workers": workers, "prefetch": prefetch if workers else 0, "pin": pin}
        for workers in _WORKERS
        if workers <= most
        for prefetch in (_PREFETCH if workers else (0,))
        for pin in pins
    ]


def _loader_without(plan: Plan, cores: int) -> str:
    most = max(1, cores // plan.ranks)
    more = [str(one) for one in _WORKERS if one > most]
    if not more:
        return ""
    has = f"{cores} core{'' if cores == 1 else 's'} for {plan.ranks} rank"
    return (f"not tried: {', '.join(more)} workers of a rank, this host has {has}"
            f"{'' if plan.ranks == 1 else 's'}; --sweep loader={','.join(map(str, _WORKERS))} does"
            )  # fmt: skip


def _loader_read(text: str, plan: Plan) -> list[Values]:
    """`4` workers, or `4x2`: of two batches each."""
    workers, _, prefetch = text.partition("x")
    count = _count(workers, least=0)
    each = [_count(prefetch)] if prefetch else list(_PREFETCH) if count else [0]
    pin = plan.device == "cuda"
    return [{"workers": count, "prefetch": one if count else 0, "pin": pin} for one in each]


def _loader_of(plan: Plan, values: Values) -> Plan:
    prefetch = values["prefetch"] or plan.prefetch
    return replace(plan, workers=values["workers"], prefetch=prefetch, pin=values["pin"])


def _loader_base(plan: Plan, shape: Preset) -> Values:
    pin = plan.device == "cuda" if plan.pin is None else plan.pin
    return {"workers": plan.workers, "prefetch": plan.prefetch if plan.workers else 0, "pin": pin}


def _loader_name(values: Values) -> str:
    ahead = f", prefetch {values['prefetch']}" if values["workers"] else ""
    return f"workers {values['workers']}{ahead}{', pinned' if values['pin'] else ''}"


# Sequence length: as many tokens in a pass, so that what changes is attention.


def _lengths(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    found = [shape.length * share // 4 for share in (1, 2, 4, 8, 16)]
    return [_length(one, shape) for one in found if one >= 8]


def _length(length: int, shape: Preset) -> Values:
    return {"length": length, "batch": max(1, shape.batch * shape.length // length)}


def _of_shape(plan: Plan, values: Values) -> Plan:
    return replace(plan, changes={**plan.changes, **values})


def _with_counts(plan: Plan, values: Values) -> Plan:
    return replace(_of_shape(plan, values), counts=True)


# Micro-batch: doubled until memory ends.


def _batches(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    return [{"batch": 1 << power} for power in range(_DOUBLINGS)]


# Devices: each does what one alone does.


def _devices(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    powers = [1 << power for power in range(plan.ranks.bit_length())]
    return [{"devices": one} for one in powers if one <= plan.ranks]


def _devices_of(plan: Plan, values: Values) -> Plan:
    several = "ddp" if plan.sharding == "single" else plan.sharding
    sharding = several if values["devices"] > 1 else "single"
    hook = plan.comm_hook if sharding == "ddp" else "none"
    return replace(plan, ranks=values["devices"], sharding=sharding, mesh="", comm_hook=hook)


# Clipping, by policies of clipping.py.


def _policies(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    names = ("none", "global:0.5", "global:1", "global:2", "layer:1", "quantile:0.9")
    return [{"policy": one} for one in names]


def _policy(text: str, plan: Plan) -> list[Values]:
    policy(text)
    return [{"policy": text}]


# Key and value heads: those that divide the heads. A cache of one token in bytes beside them.
# Of these and of the length is counted what a step launches.


def _kv_heads(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    return [_kv_head(one, shape) for one in dividers(shape.heads)]


def _kv_head(count: int, shape: Preset) -> Values:
    if shape.heads % count:
        take = " or ".join(map(str, dividers(shape.heads)))
        raise ValueError(f"{count} does not divide the {shape.heads} heads: take {take}")
    token = replace(shape, kv_heads=count, batch=1, length=1)
    return {"kv_heads": count, "cache_bytes": kv_cache_bytes(token)}


# What DDP makes of gradients on their way.


def _hooks(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    if plan.sharding != "ddp":
        raise PlanError(
            "a sweep of comm-hook is of DDP between several ranks: --sharding ddp --ranks 2"
        )
    return [{"hook": one} for one in HOOKS if (one, plan.device) != ("bf16", "cpu")]


def _hooks_without(plan: Plan, cores: int) -> str:
    return "not tried: bf16, torch has that hook for NCCL only" if plan.device == "cpu" else ""


def _hook(text: str, plan: Plan) -> list[Values]:
    if text not in HOOKS:
        raise ValueError(f"{text!r} is no hook: {', '.join(HOOKS)}")
    return [{"hook": text}]


def _count(text: str, least: int = 1) -> int:
    if not text.isdigit() or int(text) < least:
        raise ValueError(f"{text!r} is no number from {least} on")
    return int(text)


def _counted(make: Callable[[int, Preset], Values]) -> Callable[[str, Plan], list[Values]]:
    return lambda text, plan: [make(_count(text), shape_of(plan))]


AXES: dict[str, Axis] = {
    "loader": Axis(_loader, _loader_read, _loader_of, _loader_base, _loader_name,
                   without=_loader_without),
    "length": Axis(
        _lengths, _counted(_length), _with_counts,
        lambda plan, shape: {"length": shape.length, "batch": shape.batch},
        lambda one: f"length {one['length']} x batch {one['batch']}",
    ),
    "batch": Axis(
        _batches, _counted(lambda count, _: {"batch": count}), _of_shape,
        lambda plan, shape: {"batch": shape.batch}, lambda one: f"batch {one['batch']}", ends=True,
    ),
    "scaling": Axis(
        _devices, _counted(lambda count, _: {"devices": count}), _devices_of,
        lambda plan, shape: {"devices": plan.ranks},
        lambda one: f"{one['devices']} device{'' if one['devices'] == 1 else 's'}",
        more="--ranks 2",
    ),
    "recompute": Axis(recomputing.own, recomputing.read, recomputing.of, recomputing.base,
                      recomputing.name, without=recomputing.without),
    "clip": Axis(
        _policies, _policy, lambda plan, one: replace(plan, clip=one["policy"]),
        lambda plan, shape: {"policy": plan.clip}, lambda one: str(one["policy"]), STEPS_OF_LOSS,
    ),
    "kv-heads": Axis(
        _kv_heads, _counted(_kv_head),
        lambda plan, one: _with_counts(plan, {"kv_heads": one["kv_heads"]}),
        lambda plan, shape: _kv_head(shape.kv_heads, shape),
        lambda one: f"{one['kv_heads']} KV heads",
    ),
    "comm-hook": Axis(
        _hooks, _hook, lambda plan, one: replace(plan, comm_hook=one["hook"]),
        lambda plan, shape: {"hook": plan.comm_hook}, lambda one: str(one["hook"]), STEPS_OF_LOSS,
        without=_hooks_without,
    ),
}  # fmt: skip
