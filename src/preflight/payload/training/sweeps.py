"""The axes of a sweep as a table: which settings each has here, and the plan with one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

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


def _count(text: str, least: int = 1) -> int:
    if not text.isdigit() or int(text) < least:
        raise ValueError(f"{text!r} is no number from {least} on")
    return int(text)


AXES: dict[str, Axis] = {
    "loader": Axis(_loader, _loader_read, _loader_of, _loader_base, _loader_name),
}
