"""A run of the bundled training loop, from the JSON lines that it tells."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.training import Resume, TrainData, Training, TrainRank
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.training.failures import failures
from preflight.probes.training.job import job_of, unmet
from preflight.probes.training.lines import (
    NO_STEP,
    PROBE,
    WHOLE,
    Told,
    count_of,
    number_of,
    read,
    text_of,
)
from preflight.probes.training.numerics import losses, membership, norms, proofs
from preflight.probes.training.ranks import ranks
from preflight.probes.training.resume import resume
from preflight.probes.training.shown import locate
from preflight.probes.training.sweeps import scaling, sweeps
from preflight.probes.training.timing import loader_ratio, times

Of = TypeVar("Of", Training, TrainRank)


@probe(PROBE, ["python3", "-I", "-", "train"], timeout_s=3600, locate=locate)
def training(text: str) -> Training:
    """One run. Raises ParseError where a line is no JSON of ours, or none is there."""
    try:
        told = read(text)
        if told.plan.get("sweep"):
            return _swept(told)
        return _apart(told) if told.apart() else _explained(_facts(told), told)
    except (
        KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError,
    ) as error:  # fmt: skip
        raise ParseError(f"expected values as a training run tells them: {error}", 1) from error


def _apart(told: Told) -> Training:
    """Of hosts that did not come together there is nothing else to tell."""
    why = told.unfinished()
    none: dict[str, Any] = dict.fromkeys(_OF_RUN, why)
    of_resume: dict[str, Any] = dict.fromkeys(Resume.__struct_fields__[:-2], why)
    interrupted = bool(told.of["interrupted"])
    return Training(**none, interrupted=interrupted, resume=Resume(**of_resume), job=job_of(told),
                    unmet=unmet(told), probe=PROBE)  # fmt: skip


#: A sweep trains each setting for a few steps, and judges no run by them.
_SWEPT = Missing("not-asked", "a sweep trains each setting for a few steps; without --sweep the "
                 "run is judged")  # fmt: skip


def _swept(told: Told) -> Training:
    """The settings, and on what they were trained."""
    none: dict[str, Any] = dict.fromkeys(_OF_RUN, _SWEPT)
    of_resume: dict[str, Any] = dict.fromkeys(Resume.__struct_fields__[:-2], _SWEPT)
    found = sweeps(told)
    return Training(
        cannot=told.cannot(),
        busy=told.busy(),
        interrupted=bool(told.of["interrupted"]),
        **(none | _about(told)),
        resume=Resume(**of_resume),
        job=job_of(told),
        unmet=unmet(told),
        sweeps=found,
        scaling=scaling(told, found),
        probe=PROBE,
    )


def _explained(found: Training, told: Told) -> Training:
    """Where a rank or a host was lost before the first step, that is why nothing else is known."""
    why = told.unfinished()
    if why.kind != "not-applicable":
        return found
    ranks = found.ranks
    if not isinstance(ranks, Missing):
        ranks = tuple(_with_why(one, why, (NO_STEP,)) for one in ranks)
    untold = (NO_STEP,) if told.steps[WHOLE] else (NO_STEP, NOT_IN_INPUT)
    return replace(_with_why(found, why, untold), ranks=ranks, job=found.job, unmet=found.unmet)


def _with_why(found: Of, why: Missing, untold: tuple[Missing, ...]) -> Of:
    told = {name: getattr(found, name) for name in found.__struct_fields__}
    names = [name for name, one in told.items() if any(one is each for each in untold)]
    return replace(found, **dict.fromkeys(names, why))


#: What is known of a run once there is one.
_OF_RUN = [
    name
    for name, default in zip(Training.__struct_fields__, Training.__struct_defaults__, strict=True)
    if default is NOT_IN_INPUT and name not in ("job", "unmet")
]


def _facts(told: Told) -> Training:
    whole = told.steps[WHOLE]
    first = whole[min(whole)] if whole else []
    timed = times(whole.values(), _tokens(told))
    failed = failures(told)
    return Training(
        cannot=told.cannot(),
        lacks_torch=told.lacks_torch(),
        busy=told.busy(),
        interrupted=bool(told.of["interrupted"]),
        **_about(told),
        data=_data(told),
        **timed,
        loader_ratio=loader_ratio(told, timed.get("tokens_per_s", NO_STEP)),
        **losses(told, first),
        **norms(told, first),
        **membership(told),
        checkpoint_failed=_checkpoint(told),
        ranks=ranks(told, failed) or NO_STEP,
        proofs=proofs(told) or told.unfinished(),
        failures=failed,
        resume=resume(told, failed),
        job=job_of(told),
        unmet=unmet(told),
        probe=PROBE,
    )


def _about(told: Told) -> dict[str, Any]:
    """What was asked for, and on what it ran."""
    begin, plan, shape = told.begin, told.plan, told.shape
    devices = begin.get("devices")
    names = [one["name"] for one in devices if "name" in one] if isinstance(devices, list) else []
    return {
        **{name: text_of(plan, name) for name in ("preset", "device", "sharding")},
        "sharding_asked": _other(begin.get("sharding_asked"), plan.get("sharding")),
        "mesh": str(plan.get("mesh") or ""),
        "comm_hook": str(plan.get("comm_hook") or "none"),
        "accumulation": count_of(shape, "accumulation"),
        "recompute": bool(plan.get("recompute")),
        "products": tuple(dict.fromkeys(map(str, names))),
        "precision": text_of(shape, "precision"),
        "compiled": plan.get("compiled") is True,
        "hosts": told.hosts(),
        "world": told.world(),
        "ranks_asked": count_of(plan, "ranks"),
        "threads": count_of(plan, "threads"),
        "cores": count_of(begin, "cores"),
        "torch": text_of(begin, "torch"),
        "injected": _injected(plan),
        "beta2": number_of(begin, "beta2"),
        "clip": text_of(plan, "clip"),
        "steps_asked": count_of(shape, "steps"),
        "flops_per_token": number_of(begin, "flops_per_token"),
        "parameters": count_of(begin, "parameters"),
    }


def _data(told: Told) -> Known[TrainData]:
    lines = told.of["data"]
    if not lines:
        begun = told.of["step"] or told.of["end"] or not told.begin
        return NOT_IN_INPUT if begun else told.unfinished()
    counts = {name: lines[0][name] for name in _OF_DATA}
    return TrainData(bool(told.plan.get("data")), **counts, line=lines[0]["line"], probe=PROBE)


_OF_DATA = TrainData.__struct_fields__[1:-2]


def _other(asked: Any, done: Any) -> str:
    return str(asked) if asked and asked != done else ""


def _injected(plan: dict[str, Any]) -> tuple[str, ...]:
    """Faults as they were asked for: kill:1."""
    asked = plan.get("inject")
    told = asked.items() if isinstance(asked, dict) else ()
    return tuple(sorted(f"{name}:{at}" if at else str(name) for name, at in told))


def _tokens(told: Told) -> float:
    """Tokens of one step of all ranks."""
    each = math.prod(told.shape.get(name, 0) for name in ("batch", "length", "accumulation"))
    return float(each * told.world())


def _checkpoint(told: Told) -> Known[str]:
    """Why a checkpoint could not be written; "" where all could."""
    done = told.where("done", launch=WHOLE)
    if not done:
        return told.unfinished() if told.begin else NOT_IN_INPUT
    return next((str(one["failed"]) for one in done if one["failed"]), "")
