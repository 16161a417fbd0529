"""Which value of a variable of NCCL, gloo or torch is faster: each in fresh processes, in turns.

A value that fails or comes to no end is told with its error, and the others go on without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from . import paired
from .bench import TEST_S, TROUBLE, Bench
from .plan import Plan

Line = dict[str, Any]
#: What is compared where no sizes are asked for: latency, and bandwidth.
_SIZES = {"cuda": (1 << 16, 1 << 28), "cpu": (1 << 12, 1 << 22)}
#: A variable takes so many seconds at most, but for what its last turn takes.
VARIABLE_S = 600.0
#: Of the time that a value took in its trial, and at least: longer, and it hangs.
_TIMES, _LEAST_S = 5.0, 20.0


def settings(bench: Bench) -> None:
    """Each variable of the plan by itself, the others as they are."""
    for name, *values in bench.plan.sweep:
        if len(bench.hosts) > 1 or not bench.plan.hosts:
            bench.tell(_Variable(bench, name, values).compared())


class _Variable:
    """One variable, its values ("" where it is not set), and what was measured of each."""

    def __init__(self, bench: Bench, name: str, values: Sequence[str]) -> None:
        self.bench, self.name, self.values = bench, name, list(values)
        self.hosts = bench.hosts
        self.collective = (bench.plan.collectives or ["all_reduce"])[0]
        self.sizes = sizes_of(bench.plan)
        self.failed: dict[str, Line] = {}
        self.us: dict[str, list[dict[int, float]]] = {one: [] for one in values}
        self.limit_s: dict[str, float] = {}

    def compared(self) -> Line:
        """The line that ends it."""
        began = time.monotonic()
        for value in self.values:  # a trial, which counts for nothing but whether it works
            self._measure(value, -1)
        turns = self._turns(began + VARIABLE_S)
        lost = sorted(set(self.hosts) - set(self.bench.hosts))
        return {
            "kind": "swept", "name": self.name, "values": self.values, "turns": turns,
            "collective": self.collective, "sizes": self.sizes, "gains": list(self._gains()),
            "failed": list(self.failed.values()), "lost": [self.bench.name(at) for at in lost],
            "elapsed_s": round(time.monotonic() - began, 1), "most_turns": paired.LOOKS[-1],
            "least": paired.LEAST, "sure": paired.SURE, "false_winners": paired.FALSE_WINNERS,
        }  # fmt: skip

    def _turns(self, until_s: float) -> int:
        """As many as it takes; how many that were."""
        turn = 0
        while self._goes_on() and turn < paired.LOOKS[-1] and time.monotonic() < until_s:
            for at in paired.order(turn, len(self.values)):
                if self.values[at] in self.alive and self._goes_on():
                    self._measure(self.values[at], turn)
            turn += 1
            if turn in paired.LOOKS and all(one["verdict"] != "open" for one in self._gains()):
                break
        return turn

    def _goes_on(self) -> bool:
        """Whether there is anything to hold against what is usual, on the same hosts."""
        usual = self.values[0] in self.alive and len(self.alive) > 1
        return usual and self.bench.hosts == self.hosts

    @property
    def alive(self) -> list[str]:
        return [one for one in self.values if one not in self.failed]

    def _measure(self, value: str, turn: int) -> None:
        """One launch of all ranks with the value; told, and kept where it counts."""
        order = self.bench.order(
            "setting", self.hosts, self.limit_s.get(value, TEST_S), collective=self.collective,
            sizes=self.sizes, unset=self.name, environment={self.name: value} if value else {},
        )  # fmt: skip
        began = time.monotonic()
        (lines,) = self.bench.told([order]).values()
        took_s = time.monotonic() - began
        told: Line = {"name": self.name, "value": value, "turn": turn}
        found = {int(one["bytes"]): float(one["median_us"])
                 for one in lines if one["kind"] == "size"}  # fmt: skip
        if len(found) < len(self.sizes):
            text = _why(lines, ended=took_s >= order["limit_s"], limit_s=order["limit_s"])
            self.failed[value] = {"value": value, "turn": turn, "text": text}
            self.bench.tell({"kind": "setting", **told, "failed": text})
            return
        self.limit_s.setdefault(value, min(TEST_S, max(_LEAST_S, _TIMES * took_s)))
        if turn >= 0:
            self.us[value].append(found)
        us = {str(size): one for size, one in found.items()}
        self.bench.tell({"kind": "setting", **told, "us": us})

    def _gains(self) -> Iterator[Line]:
        """Each value in each size, held against what is usual."""
        usual, *others = self.values
        count = len(others) * len(self.sizes)
        for value in others:
            turns = min(len(self.us[value]), len(self.us[usual]))
            compared = turns and {usual, value} <= set(self.alive)
            for size in self.sizes if compared else ():
                mine, theirs = ([one[size] for one in self.us[each][:turns]]
                                for each in (value, usual))  # fmt: skip
                gain = paired.gain(theirs, mine, count)
                yield {"value": value, "bytes": size, **_rounded(gain._asdict()),
                       "usual_us": round(median(theirs), 2),
                       "median_us": round(median(mine), 2)}  # fmt: skip


def _rounded(gain: Line) -> Line:
    return {name: round(one, 5) if isinstance(one, float) else one for name, one in gain.items()}


def _why(lines: Sequence[Line], *, ended: bool, limit_s: float) -> str:
    """The error of a launch: a rank's own words, where it had any."""
    if ended:
        return f"it came to no end within {limit_s:.0f} s"
    troubles = [one for one in lines if one["kind"] in TROUBLE]
    troubles.sort(key=lambda one: TROUBLE.index(one["kind"]))
    if not troubles:
        return "it told nothing"
    one = troubles[0]
    text = str(one.get("text") or f"ended with {one.get('status')}").splitlines()[0]
    silent = f"its ranks said nothing for {one.get('after_s')} s"
    told = silent if one["kind"] == "silent" else text
    return (f"{one['of']}: " if one.get("of") else "") + told[:400]


def sizes_of(plan: Plan) -> list[int]:
    """One or two sizes, the smaller one first."""
    small, large = _SIZES[plan.device]
    begin, end = plan.begin_bytes or small, plan.end_bytes or large
    if plan.begin_bytes and not plan.end_bytes:
        end = max(begin, end)
    return sorted({min(begin, end), end})
