"""What a report of micro-train tells of the steps that it measured itself."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Lack, Number, Part, RankParts, Reading, Sign
from preflight.diagnosis.wording import duration, percent
from preflight.facts.stored import StoredReport
from preflight.model import Evidence, Status

_MAKE = "preflight micro-train --save train.json"
_COVERS = frozenset({"data-wait", "h2d", "straggler", "python-gc", "checkpoint-stall", "crash",
                     "exposed-communication", "not-training", "irregular"})  # fmt: skip
#: On processors steps take milliseconds, and ranks share cores: what is less says nothing.
_LEAST_S = 0.010
#: checks/training.yaml, training.data.wait, on processors.
_DATA_ON_CPU = 0.50
#: checks/training.yaml, training.data.longest.
_LONG_WAIT_S = 2.0
_SENT = "exposed-communication"
Facts = dict[str, Any]


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """All reports; of those without a training run, what would have one."""
    stored: list[StoredReport] = facts.get("report", [])
    runs = [(one.source, host.host, told) for one in stored for host in one.report.hosts
            if isinstance(told := (host.facts or {}).get("training"), dict)]  # fmt: skip
    if not runs:
        lack = Lack(("data-wait", "straggler"), "no training run was measured in it", _MAKE)
        return Reading(stored[0].source, lacks=(lack,))
    signs = [sign for source, host, run in runs for sign in _signs(source, host, run)]
    source, _, first = runs[0]
    spread = first.get("step_s")
    told = spread if isinstance(spread, dict) and "median" in spread else {}
    return Reading(
        f"micro-train {source}", steps=int(told.get("n", 0)), step_s=told.get("median"),
        low_s=told.get("low"), high_s=told.get("high"), signs=tuple(signs),
        covers=_covers(first) if told else frozenset(), numbers=tuple(_numbers(first)),
        parts=_parts(first.get("shares"), told.get("median")),
        ranks=tuple(
            RankParts(str(rank["name"]), _parts(rank.get("shares"), _number(rank, "step_s")))
            for _, _, run in runs for rank in _ranks(run) if len(_ranks(run)) > 1
        ),
        notes=tuple(_failed(stored)),
        lacks=() if told else (Lack(("data-wait", "straggler"), "no step was told", _MAKE),),
    )  # fmt: skip


def _failed(stored: list[StoredReport]) -> Iterator[str]:
    """What the reports themselves fail: of checkpoints and numerics nothing is concluded here."""
    for one in stored:
        results = [result for host in one.report.hosts for result in host.results]
        names = dict.fromkeys(r.check for r in results if r.status is Status.FAIL)
        if names:
            yield f"{one.source} itself fails {', '.join(list(names)[:6])}: preflight report FILE"


def _covers(run: Facts) -> frozenset[str]:
    return _COVERS - {_SENT} if run.get("device") == "cpu" else _COVERS


def _ranks(run: Facts) -> list[Facts]:
    told = run.get("ranks")
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


def _number(of: Facts, name: str) -> float | None:
    value = of.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _parts(shares: object, step_s: float | None) -> tuple[Part, ...]:
    if not isinstance(shares, dict) or not step_s:
        return ()
    return tuple(Part(str(name), value / 100 * step_s) for name, value in shares.items()
                 if isinstance(value, (int, float)))  # fmt: skip


def _signs(source: str, host: str, run: Facts) -> Iterator[Sign]:
    evidence = (Evidence("report", source=source, text=f"training on {host}"),)
    spread = run.get("step_s")
    step = float(spread["median"]) if isinstance(spread, dict) and "median" in spread else 0.0
    ended = list(_ended(run, evidence))
    yield from ended
    if not step or ended:
        return
    on_cpu = run.get("device") == "cpu"
    for sign in _of_steps(run, step, evidence):
        if not on_cpu or _counts_on_cpu(sign):
            yield sign


def _counts_on_cpu(sign: Sign) -> bool:
    """Of ranks that share cores gloo's time is waiting for a core, and a loader's is too: the bound
    of micro-train's own check of it."""
    if sign.cause == _SENT or (sign.cause == "data-wait" and (sign.share or 0) < _DATA_ON_CPU):
        return False
    return sign.seconds is None or sign.seconds >= _LEAST_S


def _of_steps(run: Facts, step: float, evidence: tuple[Evidence, ...]) -> Iterator[Sign]:
    yield from _slow_rank(run, step, evidence)
    yield from _one_wait(run, step, evidence)
    for cause, value, text in (
        ("data-wait", _number(run, "data_percent"), "the step waits for its data"),
        ("h2d", _number(run, "copy_percent"), "copies to the device"),
        ("checkpoint-stall", _share(run, "checkpoint"), "saving"),
        ("python-gc", max((_number(one, "gc_percent") or 0 for one in _ranks(run)), default=None),
         "Python's garbage collector on one rank"),
        (_SENT, _least_waiting(run), "communication of the rank that has least"),
    ):  # fmt: skip
        if value is not None:
            yield Sign(
                cause, f"{text}: {percent(value / 100)} of a step of {duration(step)}",
                share=value / 100, seconds=value / 100 * step, confidence="high", evidence=evidence,
            )  # fmt: skip
    if _number(run, "not_finite"):
        yield Sign("not-training", f"{run['not_finite']} steps whose loss or norm is no number",
                   confidence="high", evidence=evidence)  # fmt: skip


def _one_wait(run: Facts, step: float, evidence: tuple[Evidence, ...]) -> Iterator[Sign]:
    """A single wait for data, by what it took of the whole run: no median shows it."""
    longest, spread = _number(run, "data_longest_s"), run.get("step_s")
    steps = float(spread.get("n", 0)) if isinstance(spread, dict) else 0.0
    if longest is not None and longest > _LONG_WAIT_S and steps:
        share = longest / (longest + steps * step)
        yield Sign("irregular", f"one step waited {duration(longest)} for its data, "
                   f"{percent(share)} of the run; a step is {duration(step)}", share=share,
                   seconds=longest, confidence="high", evidence=evidence)  # fmt: skip


def _share(run: Facts, name: str) -> float | None:
    shares = run.get("shares")
    return _number(shares, name) if isinstance(shares, dict) else None


def _least_waiting(run: Facts) -> float | None:
    shares = [_share(one, "communication") for one in _ranks(run)]
    known = [one for one in shares if one is not None]
    return min(known) if len(known) > 1 else None


def _slow_rank(run: Facts, step: float, evidence: tuple[Evidence, ...]) -> Iterator[Sign]:
    """By what each rank does itself, without data, communication and saving."""
    busy = {str(one["name"]): value for one in _ranks(run)
            if (value := _number(one, "busy_s")) is not None}  # fmt: skip
    if len(busy) < 2:
        return
    name = max(busy, key=lambda one: busy[one])
    others = median(value for other, value in busy.items() if other != name)
    share = (busy[name] - others) / step
    yield Sign(
        "straggler", f"{name} works {duration(busy[name])} of a step itself, the others "
        f"{duration(others)}", share=max(0.0, min(1.0, share)), seconds=busy[name] - others,
        subject=name, confidence="high", evidence=evidence,
        against=("measured without communication and waiting",),
    )  # fmt: skip


def _ended(run: Facts, evidence: tuple[Evidence, ...]) -> Iterator[Sign]:
    """Ranks that died or fell silent; what others failed with then is the echo."""
    told = run.get("failures")
    failures = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    # A rank that is silent is ended with all others: their ends come of that.
    kinds = ("silent", "died", "failed")
    first = min((kinds.index(one["kind"]) for one in failures if one.get("kind") in kinds),
                default=0)  # fmt: skip
    roots = [one for one in failures if one.get("kind") == kinds[first]] or failures
    names = {one.get("name") for one in roots}
    echoes = [str(one["name"]) for one in failures if one.get("name", "") not in names]
    for one in roots:
        cause = "hang" if one.get("kind") == "silent" else "crash"
        yield Sign(
            cause, f"{one.get('name')}: {one.get('text')}", subject=str(one.get("name")),
            confidence="high", evidence=evidence,
            against=(f"what {', '.join(echoes[:4])} failed with then is its echo",) if echoes else
            (),
        )  # fmt: skip


def _numbers(run: Facts) -> Iterator[Number]:
    rate = _number(run, "tokens_per_s")
    if rate:
        yield Number("speed", rate, "tokens/s")
