"""What a run of the harness told, as steps: what each style of log is written from."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from preflight.payload.training.plan import KILLED, RESUMED, WHOLE

Seconds = dict[str, float]  # part of the step -> seconds


class Step(Struct):
    """One step over all ranks. `number` from 1; `at_s`: when it ended, since the log began."""

    number: int
    loss: float
    norm: float
    learning_rate: float
    scale: float
    ranks: list[Seconds]
    at_s: float = 0.0
    saves: bool = False
    first: bool = False  # of a launch
    skipped: bool = False

    @property
    def seconds(self) -> float:
        """Of the slowest rank."""
        return max(sum(one.values()) for one in self.ranks)

    def part(self, *names: str) -> float:
        """Of the rank that takes longest for these."""
        return max(self.by_rank(*names))

    def by_rank(self, *names: str) -> list[float]:
        return [sum(one.get(name, 0.0) for name in names) for one in self.ranks]


class Ran(Struct):
    """A run, launch after launch as in one log file."""

    steps: list[Step]
    ranks: int
    total: int  # steps that it was to have
    batch: int  # sequences of a step, all ranks
    length: int  # tokens
    killed: list[int] = field(default_factory=list)  # ranks that a signal ended


def ran(text: str) -> Ran:
    """The launches that stand for one job: the whole run, or one that is killed and resumed."""
    lines = [json.loads(one) for one in text.splitlines()]
    shape, world = lines[0]["shape"], int(lines[0]["world"])
    steps: list[Step] = []
    for launch in (KILLED, RESUMED):
        steps += _steps([one for one in lines if one.get("launch") == launch])
    if not steps:  # it was not to be resumed, or could not save
        steps += _steps([one for one in lines if one.get("launch") == WHOLE])
    now = 0.0
    for step in steps:
        now += step.seconds + (25.0 if step.first else 0.0)
        step.at_s = now
    killed = [int(one["rank"]) for one in lines
              if one.get("kind") == "died" and one["first"] and one["status"] == -9
              and one["launch"] == WHOLE]  # fmt: skip
    return Ran(steps, world, shape["steps"], shape["batch"] * world, shape["length"], killed)


def _steps(lines: list[dict[str, Any]]) -> Iterator[Step]:
    told = defaultdict[int, list[dict[str, Any]]](list)
    saves = {one["step_at"] for one in lines if one["kind"] == "saving"}
    for one in lines:
        if one["kind"] == "step":
            told[one["step"]].append(one)
    for at, number in enumerate(sorted(told)):
        ranks = sorted(told[number], key=lambda one: one["rank"])
        one = ranks[0]
        yield Step(
            number + 1, _number(one["loss"]), _number(one["norm"]), one["learning_rate"],
            _number(one["scale"]), [rank["seconds"] for rank in ranks],
            saves=number + 1 in saves, first=at == 0, skipped=bool(one["skipped"]),
        )  # fmt: skip


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
