"""One process of the run after the other."""

from __future__ import annotations

from statistics import median
from typing import Any

from preflight.facts.training import DeviceLoad, RankMemory, TrainFailure, TrainRank
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.training.failures import ended
from preflight.probes.training.lines import (
    PROBE,
    WHOLE,
    Line,
    Told,
    count_of,
    finite,
    middle,
    text_of,
)
from preflight.probes.training.timing import behind, busy, length, spent, total, warm

_NO_REPLICA = Missing("not-applicable", "no two ranks hold the same parameters")
_NO_GPU = Missing("not-applicable", "it runs on processors")
_LOADS = ("power_w", "sm_clock_mhz", "sm_percent", "memory_percent")


def ranks(told: Told, failures: tuple[TrainFailure, ...]) -> tuple[TrainRank, ...]:
    """All ranks of this host."""
    numbers = told.ranks()
    of = {number: busy(told.steps[WHOLE].get(number, [])) for number in numbers}
    return tuple(
        TrainRank(
            name=f"rank {number}",
            device=_device(told, local),
            behind_percent=behind(of, number),
            busy_s=of[number],
            load=_load(told, local),
            **_end(told, number, failures),
            **_of_steps(told, number),
            **_hashes(told, number),
            replica=_replica(told, number),
            memory=_memory(told, number),
            probe=PROBE,
        )
        for local, number in enumerate(numbers)
    )


def _device(told: Told, local: int) -> Known[str]:
    devices = told.begin.get("devices")
    if not isinstance(devices, list) or local >= len(devices):
        return "cpu" if told.plan.get("device") == "cpu" else NOT_IN_INPUT
    return text_of(devices[local], "name")


def _end(told: Told, number: int, failures: tuple[TrainFailure, ...]) -> dict[str, Any]:
    came, trouble = ended(told, number, failures)
    steps = told.steps[WHOLE].get(number, [])
    mine = [one.line for one in failures if one.name == f"rank {number}"]
    first = steps[0]["line"] if steps else 1
    return {"ended": came, "trouble": trouble, "line": mine[0] if mine else first}


def _of_steps(told: Told, number: int) -> dict[str, Any]:
    steps = told.steps[WHOLE].get(number, [])
    collected = next(iter(told.where("gc", launch=WHOLE, rank=number)), {})
    whole = sum(map(total, steps))
    known = finite(collected.get("seconds")) and whole > 0
    return {
        "steps": len(steps),
        "step_s": middle(map(length, warm(steps))),
        "data_s": middle(spent(one, ("data",)) for one in warm(steps)),
        "gc_percent": 100.0 * collected["seconds"] / whole if known else NOT_IN_INPUT,
        "gc_longest_s": collected.get("longest_s", NOT_IN_INPUT),
    }


def _hashes(told: Told, number: int) -> dict[str, Any]:
    lines = told.where("proof", name="repeated", rank=number)
    if not lines:
        return dict.fromkeys(("hashes", "repeats"), told.unfinished())
    first, second = lines[0]["hashes"][:2]
    return {"hashes": tuple(map(str, first)), "repeats": first == second}


def _replica(told: Told, number: int) -> Known[str]:
    """The digest where those of the ranks first differ; where they never do the last."""
    if told.plan.get("sharding") != "ddp" or told.world() < 2:
        return _NO_REPLICA
    at: dict[int, dict[int, str]] = {}
    for one in told.where("replica", launch=WHOLE):
        at.setdefault(one["step_at"], {})[one["rank"]] = one["digest"]
    mine = [found for _, found in sorted(at.items()) if number in found]
    if not mine:
        return told.unfinished()
    odd = [found for found in mine if len(set(found.values())) > 1]
    return str((odd or mine[-1:])[0][number])


def _memory(told: Told, number: int) -> RankMemory:
    line: Line = next(iter(told.where("memory", launch=WHOLE, rank=number)), {})
    gpu = told.plan.get("device") == "cuda"
    unknown = told.unfinished() if gpu else _NO_GPU
    counted = [one for one in RankMemory.__struct_fields__ if one.endswith("_bytes")]
    return RankMemory(
        **{one: count_of(line, one) for one in counted},
        inactive_split_percent=_split_percent(line, unknown),
        alloc_retries=count_of(line, "retries") if "retries" in line else unknown,
    )


def _split_percent(line: Line, unknown: Missing) -> Known[float]:
    reserved, split = line.get("reserved_peak_bytes"), line.get("inactive_split_peak_bytes")
    if not finite(reserved) or not finite(split) or not reserved:
        return unknown
    return 100.0 * split / reserved


def _load(told: Told, local: int) -> Known[DeviceLoad]:
    lines = told.where("device", local_rank=local)
    if not lines:
        return NOT_IN_INPUT if told.plan.get("device") == "cuda" else _NO_GPU
    seen = {
        name: median(found)
        for name in _LOADS
        if (found := [float(one[name]) for one in lines if finite(one.get(name))])
    }
    return DeviceLoad(len(lines), **seen)
