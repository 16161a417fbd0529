"""A run of the bundled training loop, from the JSON lines that it tells (payload/training)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

from preflight.errors import ParseError
from preflight.facts.training import (
    Proof,
    Resume,
    Spread,
    TrainFailure,
    Training,
    TrainRank,
)
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "micro-train"
#: Steps at the beginning that time nothing: kernels are chosen, memory is taken.
_WARM = 5
#: What a step holds beside computing.
_NO_COMPUTING = ("data", "communication", "checkpoint")
#: How far two ways to one gradient may be apart, relative, by what they are computed in: some tens
#: of roundings of fp32 (2^-24), bf16 (2^-9), fp16 (2^-12).
TOLERANCE = {"fp32": 1e-4, "bf16": 5e-2, "fp16": 1e-2}
_NOT_RUN = Missing("not-asked", "the run was not killed and resumed")
_NO_STEP = Missing("unreadable", "no step was told")

_Line = dict[str, Any]


@probe(_PROBE, ["preflight-train"], timeout_s=600)
def training(text: str) -> Training:
    """One run. Raises ParseError where a line is no JSON of ours, or none is there."""
    lines = [_line(line, at) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise ParseError("expected JSON lines of a training run", 1)
    begin = next((one for one in lines if one["kind"] == "begin"), {})
    cannot = next((one["text"] for one in lines if one["kind"] == "cannot"), "")
    return _Run(lines, begin).facts(cannot)


def _line(line: str, number: int) -> _Line:
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        raise ParseError(f"expected a JSON object with its kind, got {line[:60]!r}", number)
    return {**told, "line": number}


class _Run:
    """The lines by what they are about."""

    def __init__(self, lines: Sequence[_Line], begin: _Line) -> None:
        self.lines, self.begin = lines, begin
        self.plan, self.shape = begin.get("plan", {}), begin.get("shape", {})
        self.steps: dict[str, dict[int, list[_Line]]] = defaultdict(lambda: defaultdict(list))
        self.of: dict[str, list[_Line]] = defaultdict(list)
        for one in lines:
            if one["kind"] == "step":
                self.steps[one.get("launch", "")][one["rank"]].append(one)
            else:
                self.of[one["kind"]].append(one)

    def facts(self, cannot: str) -> Training:
        whole = self.steps.get("whole", {})
        ranks = tuple(self._rank(number, whole.get(number, [])) for number in self._numbers())
        slowest = max(whole.values(), key=lambda steps: sum(map(_total, steps)), default=[])
        told = whole.get(0) or slowest
        precision = self.shape.get("precision", NOT_IN_INPUT)
        return Training(
            cannot=cannot,
            preset=self.plan.get("preset", NOT_IN_INPUT),
            device=self.plan.get("device", NOT_IN_INPUT),
            sharding=self.plan.get("sharding", NOT_IN_INPUT),
            precision=precision,
            ranks_asked=self.plan.get("ranks", NOT_IN_INPUT),
            threads=self.plan.get("threads", NOT_IN_INPUT),
            torch=self.begin.get("torch", NOT_IN_INPUT),
            injected=tuple(sorted(self.plan.get("inject", {}))),
            ended=bool(self.of["end"]),
            steps_asked=self.shape.get("steps", NOT_IN_INPUT),
            **_times(slowest, self._tokens()),
            flops_per_token=self.begin.get("flops_per_token", NOT_IN_INPUT),
            **self._losses(told),
            **_norms(told, precision),
            **self._membership(),
            replicas_agree=self._replicas(),
            checkpoint_failed=self._checkpoint(),
            ranks=ranks or _NO_STEP,
            proofs=tuple(self._proofs(precision)) or _NO_STEP,
            failures=tuple(self._failures()),
            resume=self._resume(),
            probe=_PROBE,
        )

    def _numbers(self) -> list[int]:
        return sorted({one["rank"] for one in self.lines if "rank" in one})

    def _tokens(self) -> float:
        """Tokens of one step of all ranks."""
        names = ("batch", "length", "accumulation")
        each = math.prod(self.shape.get(name, 0) for name in names)
        return float(each * self.plan.get("ranks", 1))

    def _rank(self, number: int, steps: list[_Line]) -> TrainRank:
        warm = steps[_WARM:] or steps
        hashes = self._of_rank("proof", number, name="repeated").get("hashes")
        memory = self._of_rank("memory", number)
        reserved = memory.get("reserved_peak_bytes")
        return TrainRank(
            name=f"rank {number}",
            steps=len(steps),
            step_s=_median(map(_total, warm)),
            compute_s=_median(_total(one) - _spent(one, _NO_COMPUTING) for one in warm),
            data_s=_median(_spent(one, ("data",)) for one in warm),
            hashes=tuple(hashes[0]) if hashes else NOT_IN_INPUT,
            repeats=hashes[0] == hashes[1] if hashes else NOT_IN_INPUT,
            weights_bytes=memory.get("weights_bytes", NOT_IN_INPUT),
            optimizer_bytes=memory.get("optimizer_bytes", NOT_IN_INPUT),
            peak_bytes=memory.get("peak_bytes") or memory.get("host_peak_bytes") or NOT_IN_INPUT,
            inactive_split_percent=(
                100.0 * memory["inactive_split_peak_bytes"] / reserved if reserved else NOT_IN_INPUT
            ),
            alloc_retries=memory.get("retries", NOT_IN_INPUT),
            line=steps[0]["line"] if steps else 1,
            probe=_PROBE,
        )

    def _of_rank(self, kind: str, rank: int, **told: str) -> _Line:
        """The first line of a kind from a rank in which all that is told holds."""
        return next(
            (
                one
                for one in self.of[kind]
                if one.get("rank") == rank and told.items() <= one.items()
            ),
            {},
        )

    def _losses(self, steps: list[_Line]) -> dict[str, Any]:
        chance = math.log(self.shape["vocabulary"]) if self.shape.get("vocabulary") else None
        floor = self.begin.get("floor_nats")
        none = Missing("not-applicable", "the least loss of the user's own data is not known")
        told: dict[str, Any] = {
            "chance_loss": NOT_IN_INPUT if chance is None else chance,
            "floor_loss": none if floor is None else floor,
        }
        losses = [one["loss"] for one in steps if _finite(one["loss"])]
        if not losses:
            return told
        last = fmean(losses[-max(1, len(losses) // 10) :])
        told |= {"first_loss": losses[0], "last_loss": last}
        told["spike_step"] = _spike(steps)
        if chance is not None and floor is not None:
            told["learned_percent"] = 100.0 * (chance - last) / (chance - floor)
        return told

    def _membership(self) -> dict[str, Any]:
        found = [one for one in self.of["proof"] if one["name"] == "membership"]
        if not found:
            return {}
        return {
            "outside_optimizer": max(one["missing"] for one in found),
            "twice_in_optimizer": max(one["repeated"] for one in found),
        }

    def _replicas(self) -> Known[bool]:
        if self.plan.get("sharding") != "ddp":
            return Missing("not-applicable", "no two ranks hold the same parameters")
        at: dict[tuple[str, int], set[str]] = defaultdict(set)
        for one in self.of["replica"]:
            at[one["launch"], one["step_at"]].add(one["digest"])
        return all(len(found) == 1 for found in at.values()) if at else _NO_STEP

    def _checkpoint(self) -> Known[str]:
        done = self.of["done"]
        return next((one["failed"] for one in done if one["failed"]), "") if done else _NO_STEP

    def _proofs(self, precision: Known[str]) -> Iterable[Proof]:
        for name in ("accumulation", "attention", "compile"):
            found = [one for one in self.of["proof"] if one["name"] == name]
            if found:
                worst = max(found, key=lambda one: _size(one["gradient"]))
                yield Proof(
                    name, worst["loss"], worst["gradient"], worst["norm_ratio"],
                    TOLERANCE.get(str(precision), 0.0), worst["line"], _PROBE,
                )  # fmt: skip

    def _failures(self) -> Iterable[TrainFailure]:
        for one in self.lines:
            launch, line = one.get("launch", ""), one["line"]
            if one["kind"] == "failed":
                text = f"{one['error']}: {one['text']}"
                yield TrainFailure(_name(one), "failed", launch, text, line=line, probe=_PROBE)
            elif one["kind"] == "died" and one["status"] < 0:
                text = f"ended by signal {-one['status']} after step {one['step']}"
                yield TrainFailure(_name(one), "died", launch, text, one["step"], line, _PROBE)
            elif one["kind"] == "silent":
                for rank in one["suspects"]:
                    how = "stopped by a signal" if rank in one["stopped"] else "behind the others"
                    text = f"said nothing for {one['after_s']:g} s, {how}"
                    step = one["steps"].get(str(rank), -1)
                    yield TrainFailure(f"rank {rank}", "silent", launch, text, step, line, _PROBE)

    def _resume(self) -> Resume:
        if not self.plan.get("resume"):
            return _no_resume(_NOT_RUN)
        resumed = [one for one in self.of["resumed"] if one["launch"] == "resumed"]
        if not resumed:
            return _no_resume(Missing("unreadable", "the run did not come to its resume"))
        first = resumed[0]
        before = {one["step"]: one for one in self.steps["whole"].get(0, [])}
        after = self.steps["resumed"].get(0, [])
        both = [(before[one["step"]], one) for one in after if one["step"] in before]
        saved = {
            one["rank"]: one["digest"]
            for one in self.of["saved"]
            if one["launch"] == "whole" and one["step_at"] == first["step_from"]
        }
        done = {
            launch: {
                one["rank"]: one["digest"] for one in self.of["done"] if one["launch"] == launch
            }
            for launch in ("whole", "resumed")
        }
        launched = [one for one in self.of["launched"] if one["launch"] == "resumed"]
        return Resume(
            step=first["step_from"],
            elapsed_s=max(one["elapsed_s"] for one in resumed),
            loss_difference=max((abs(a["loss"] - b["loss"]) for a, b in both), default=_NO_STEP),
            same_parameters=done["whole"] == done["resumed"] if launched else _NO_STEP,
            same_samples=all(a["samples"] == b["samples"] for a, b in both) if both else _NO_STEP,
            snapshot_whole=saved == {one["rank"]: one["digest"] for one in resumed},
            damaged=tuple(first["wrong"]),
            line=first["line"],
            probe=_PROBE,
        )  # fmt: skip


def _no_resume(why: Missing) -> Resume:
    told: dict[str, Any] = dict.fromkeys(Resume.__struct_fields__[:-2], why)
    return Resume(**told)


def _name(one: _Line) -> str:
    return f"rank {one['rank']}" if "rank" in one else "all ranks"


def _total(step: _Line) -> float:
    return float(sum(step["seconds"].values()))


def _spent(step: _Line, parts: Iterable[str]) -> float:
    return float(sum(step["seconds"].get(part, 0.0) for part in parts))


def _median(values: Iterable[float]) -> Known[float]:
    found = list(values)
    return median(found) if found else _NO_STEP


def _times(steps: list[_Line], tokens: float) -> dict[str, Any]:
    """Of the rank that took longest: the others wait for it."""
    warm = steps[_WARM:] or steps
    if not warm:
        return {"step_s": _NO_STEP}
    each = sorted(map(_total, warm))
    low, high = each[len(each) // 10], each[min(len(each) - 1, len(each) * 9 // 10)]
    middle, whole = median(each), sum(each)
    parts = list(dict.fromkeys(part for one in warm for part in one["seconds"]))
    shares = {part: 100.0 * _sum(warm, part) / whole for part in parts} if whole else {}
    return {
        "step_s": Spread(len(each), middle, low, high),
        "jitter_percent": 100.0 * (high / middle - 1.0) if middle else _NO_STEP,
        "tokens_per_s": tokens * len(each) / whole if whole else _NO_STEP,
        "shares": shares,
        "data_percent": shares.get("data", 0.0),
    }


def _sum(steps: list[_Line], part: str) -> float:
    return sum(_spent(one, (part,)) for one in steps)


def _norms(steps: list[_Line], precision: Known[str]) -> dict[str, Any]:
    if not steps:
        return {}
    skipped = [one for one in steps if one["skipped"]]
    odd = [
        one
        for one in steps
        if not _finite(one["loss"]) or (not _finite(one["norm"]) and not one["skipped"])
    ]
    norms = [one["norm"] for one in steps if _finite(one["norm"])]
    scaled = precision == "fp16"
    none = Missing("not-applicable", "only fp16 scales the loss")
    return {
        "not_finite": len(odd),
        "skipped": len(skipped) if scaled else none,
        "scale_low": min(one["scale"] for one in steps) if scaled else none,
        "norm_first": norms[0] if norms else _NO_STEP,
        "norm_high": max(norms) if norms else _NO_STEP,
    }


def _spike(steps: list[_Line]) -> Known[int]:
    """The first step whose loss is above that of the ten before by more than ten times what these
    scatter, and by 0.5 at least; missing where there is none."""
    losses = [one["loss"] for one in steps]
    for at in range(10, len(losses)):
        before = losses[at - 10 : at]
        if not all(map(_finite, before)) or not _finite(losses[at]):
            continue
        middle = median(before)
        scatter = median(abs(one - middle) for one in before)
        if losses[at] - middle > max(0.5, 10.0 * scatter):
            return int(steps[at]["step"])
    return Missing("not-applicable", "no step's loss jumped")


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _size(value: Any) -> float:
    return float(value) if _finite(value) else math.inf
