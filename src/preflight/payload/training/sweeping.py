"""Sweeps: each setting is a launch of its own, in their order, in reverse, and from the middle on,
so that what changes meanwhile (heat, somebody else's work) meets all of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import mean, median, pstdev
from typing import Any

from ..host_memory import available_bytes
from ..ranks import Launch, Tell
from . import cannot, endings, fits
from .model import kv_cache_bytes
from .plan import SWEPT, Plan, PlanError
from .sweeps import AXES, Setting, left_out, settings
from .work import shape_of, work

Line = dict[str, Any]
#: Steps at the beginning that time nothing; and the least that are timed.
_WARM, _LEAST = 5, 3
#: A setting is ended after so long, and what it has told so far counts.
_SETTING_S = 60.0
_START_S, _COMPILED_S = 120.0, 400.0
#: Of the memory that is free on a host, what a batch on its processors may take.
_OF_FREE = 0.5
#: Of the last steps, whose losses are told as one.
_LAST = 5


def sweep(plan: Plan, gpus: list[dict[str, Any]], tell: Tell, current: list[Launch]) -> None:
    """All axes, one after the other. Raises PlanError before the first where one cannot be."""
    cores = len(os.sched_getaffinity(0))
    found = {axis: settings(plan, axis, cores) for axis in plan.sweep}
    for axis, each in found.items():
        _hold(axis, each, gpus)
    for axis, each in found.items():
        tell({"kind": "sweep", "axis": axis, "settings": [one.name for one in each],
              "left_out": left_out(plan, axis, cores)})  # fmt: skip
        _swept(axis, each, gpus, tell, current)


def _hold(axis: str, found: list[Setting], gpus: list[dict[str, Any]]) -> None:
    """Raises PlanError where one can never be trained, be there memory or not, and where there is
    nothing to compare."""
    for one in found:
        if why := cannot.never(one.plan, shape_of(one.plan), gpus):
            raise PlanError(f"--sweep {axis}: {one.name}: {why}")
    if len(found) < 2:
        raise PlanError(f"--sweep {axis}: {found[0].name} is what you have already, and nothing is "
                        f"there to compare it with: {AXES[axis].more}")  # fmt: skip


def _swept(
    axis: str, found: list[Setting], gpus: list[dict[str, Any]], tell: Tell, current: list[Launch]
) -> None:
    again: list[Setting] = []
    before: Line = {}
    for one in found:
        line = _beyond(axis, one, before) or _told(one, gpus, current)
        tell(_line(axis, one, 0, line))
        if "limit" not in line and "failed" not in line:
            # What a step launches is the same in each round.
            again.append(replace(one, plan=replace(one.plan, counts=False)))
        elif "limit" in line and AXES[axis].ends:
            break
        before = line
    half = len(again) // 2
    for number, order in enumerate((again[::-1], again[half:] + again[:half]), 1):
        for one in order:
            tell(_line(axis, one, number, _told(one, gpus, current)))


def _beyond(axis: str, setting: Setting, before: Line) -> Line:
    """Where an axis that is doubled until memory ends has to end sooner: on processors memory is
    everybody's, and twice as much may take longer than there is time. `before`: the last one."""
    shape = shape_of(setting.plan)
    if not AXES[axis].ends or "step_s" not in before:
        return {}
    free = available_bytes() if setting.plan.device == "cpu" else None
    takes = setting.plan.ranks * fits.needs(setting.plan, shape).peak
    if free is not None and takes > _OF_FREE * free:
        return {"limit": f"not tried: it takes at least {fits.size(takes)}, and half of what "
                         f"this host has free is {fits.size(_OF_FREE * free)}"}  # fmt: skip
    if 2.0 * before["step_s"] * shape.steps > _SETTING_S:
        return {"limit": f"not tried: {shape.steps} steps would take more than {_SETTING_S:g} s"}
    return {}


def _line(axis: str, setting: Setting, number: int, told: Line) -> Line:
    about = {"axis": axis, "setting": setting.name, "values": setting.values, "round": number}
    return {"kind": "setting", **about, **({"base": True} if setting.base else {}), **told}


def _told(setting: Setting, gpus: list[dict[str, Any]], current: list[Launch]) -> Line:
    """What one launch of a setting measured, or why it could not: a limit, or a failure."""
    shape = shape_of(setting.plan)
    reason = fits.reason(setting.plan, shape, gpus)  # of disk nothing: no checkpoint is written
    if reason:
        return {"limit": reason}
    one = Launch(setting.plan.ranks, lambda tell_it: work(setting.plan, SWEPT, tell_it),
                 silent_s=setting.plan.silent_s,
                 start_s=_COMPILED_S if setting.plan.compiled else _START_S)  # fmt: skip
    current[:] = [one]
    steps, held, ill = _heard(one)
    one.kill()
    ill = ill or endings.diverged(steps)
    if ill:
        return ill
    if not steps or min(map(len, steps.values())) < _LEAST:
        return {"failed": "it ended before its steps were told"}
    timed = _timed(setting.plan, steps)
    return {**timed, **_most(held), **_launched(timed, held)}


def _heard(launch: Launch) -> tuple[dict[int, list[Line]], list[Line], Line]:
    """Steps by rank, what memory held, and what went wrong; until the end, or for long enough."""
    steps: dict[int, list[Line]] = {}
    held: list[Line] = []
    ills: list[Line] = []
    first_s = 0.0
    for line in launch.lines():
        if line["kind"] == "step":
            first_s = first_s or time.monotonic()
            steps.setdefault(line["rank"], []).append(line)
            enough = min(map(len, steps.values())) >= _WARM + _LEAST
            if enough and held and time.monotonic() > first_s + _SETTING_S:
                break
        elif line["kind"] == "held":
            held.append(line)
        elif line["kind"] == "counted":
            held.append({"counted": line})
        elif line["kind"] == "clipped":
            held.append({"clipped": line["steps"]})
        else:
            ills += filter(None, (endings.waits_for(line, launch), line))
    return steps, held, endings.why(ills)


def _timed(plan: Plan, steps: dict[int, list[Line]]) -> Line:
    """Of the rank that takes longest: the others wait for it."""
    shape = shape_of(plan)
    counted = {rank: _counted(told) for rank, told in steps.items()}
    slowest = max(counted.values(), key=lambda told: median(map(_whole, told)))
    step_s = median(map(_whole, slowest))
    spent = sum(map(_whole, slowest))
    tokens = shape.batch * shape.length * shape.accumulation * plan.ranks
    shares = {
        part: round(100.0 * sum(one["seconds"][part] for one in slowest) / spent, 2)
        for part in slowest[0]["seconds"]
        if part != "checkpoint"
    }
    return {
        "steps": len(slowest),
        "step_s": round(step_s, 6),
        "tokens_per_s": round(tokens / step_s, 1),
        "data_percent": shares["data"],
        "kv_cache_bytes": kv_cache_bytes(shape),
        "shares": shares,
        **_losses(steps[min(steps)]),
        **_norm(steps[min(steps)]),
    }


def _counted(steps: list[Line]) -> list[Line]:
    return steps[_WARM:] if len(steps) >= _WARM + _LEAST else steps[-_LEAST:]


def _whole(step: Line) -> float:
    """Without the part in which memory is looked at: there is no checkpoint."""
    return float(sum(step["seconds"].values())) - step["seconds"]["checkpoint"]


def _losses(steps: list[Line]) -> Line:
    """The mean of the last, and how much they jump about from step to step once it has warmed up:
    the standard deviation of differences, over the root of two, so that their fall counts not."""
    losses = [float(one["loss"]) for one in steps]
    late = losses[len(losses) // 2 :]
    jumps = [after - before for before, after in zip(late, late[1:])]  # noqa: B905, RUF007
    told = {"loss": round(mean(losses[-_LAST:]), 5)}
    return told | ({"loss_noise": round(pstdev(jumps) / 2**0.5, 5)} if len(jumps) > 1 else {})


def _norm(steps: list[Line]) -> Line:
    """Of the gradients, where the scaler left no step out."""
    found = [float(one["norm"]) for one in steps if math.isfinite(one["norm"])]
    return {"norm": round(median(found), 6)} if found else {}


def _launched(timed: Line, held: list[Line]) -> Line:
    """What the rank that has most of them asks of its device in a step; and in which share of a
    step, but for its wait for data, nothing ran there, for nothing was launched yet."""
    counts = [one["counted"] for one in held if "counted" in one]
    told: Line = {}
    for name in ("launches", "operators"):
        if found := [int(one[name]) for one in counts if name in one]:
            told[name] = max(found)
    if busy := [float(one["busy_s"]) for one in counts if "busy_s" in one]:
        step_s = timed["step_s"] * (1.0 - timed["data_percent"] / 100.0)
        told["launch_bound_percent"] = round(max(0.0, 100.0 * (1.0 - max(busy) / step_s)), 2)
    return told


def _most(held: list[Line]) -> Line:
    """Of the rank that has most of each; and in which share of the steps gradients were clipped."""
    clipped: list[bool] = next((one["clipped"][_WARM:] for one in held if "clipped" in one), [])
    share = {"clipped_percent": round(100.0 * mean(clipped), 2)} if clipped else {}
    names = dict.fromkeys(name for one in held for name in one if name.endswith("_bytes"))
    told: Iterator[tuple[str, int]] = (
        (name, max(int(one[name]) for one in held if name in one)) for name in names
    )
    return {**dict(told), **share}
