"""The JSON lines of a stress run by what they are about (payload/stress writes them)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.training import Spread
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.training.lines import finite

PROBE = "stress"
FORM = "stress/1"
#: The device of what copies between all GPUs.
BETWEEN = -1
#: No host has more.
_MOST_DEVICES = 1024
#: Each of our lines has all its fields.
_UNTOLD = Missing("unreadable", "its line does not tell it")
_PROCESSORS = Missing("not-applicable", "processors are shared with the rest of the host")

Line = dict[str, Any]


class Told:
    """All lines of one run, in their order, each with its number as `line`. `watch`: those that
    NVML's watch told beside the tests, at the numbers that they have."""

    def __init__(self, lines: Sequence[Line], watch: str) -> None:
        self.lines, self.watch = list(lines), watch
        self.of: dict[str, list[Line]] = defaultdict(list)
        self.by_device: dict[int, list[Line]] = defaultdict(list)
        for one in self.lines:
            self.of[one["kind"]].append(one)
            if isinstance(one.get("device"), int):
                self.by_device[one["device"]].append(one)
        self.begin = next(iter(self.of["begin"]), {})
        self.plan: Line = dict(self.begin.get("plan", {}))

    @property
    def gpu(self) -> bool:
        return bool(self.plan.get("device") == "cuda")

    def text(self, kind: str) -> str:
        """What the line of a kind says, such as why nothing could be done; "" without one."""
        return next((str(one["text"]) for one in self.of[kind]), "")

    def numbers(self) -> list[int]:
        """The devices that were asked for, or told something."""
        asked = self.plan.get("devices", 0)
        count = min(int(asked), _MOST_DEVICES) if finite(asked) else 0
        told = {number for number in self.by_device if number >= 0}
        return sorted(told | set(range(count)))

    def name(self, number: int) -> str:
        """`gpu3` by torch's number; `processors`, or a part of them where they are several."""
        if number == BETWEEN:
            return "copies between GPUs"
        if self.gpu:
            return f"gpu{number}"
        return "processors" if len(self.numbers()) < 2 else f"processors {number}"

    def where(self, kind: str, number: int) -> list[Line]:
        """The lines of a kind about a device."""
        return [one for one in self.by_device.get(number, ()) if one["kind"] == kind]

    def about(self, number: int) -> Line:
        """What the device is, by its own word, else by torch's list."""
        own = next(iter(self.where("device", number)), {})
        listed = self.begin.get("gpus")
        known = listed[number] if isinstance(listed, list) and 0 <= number < len(listed) else {}
        return {**known, **own}

    def product(self, number: int) -> Known[str]:
        """Its model."""
        if not self.gpu:
            return _PROCESSORS
        name = self.about(number).get("name")
        return name if isinstance(name, str) and name else NOT_IN_INPUT

    def lost(self, number: int) -> bool:
        """Whether the device did not come to its end by a fault of its own."""
        return any(self.where(kind, number) for kind in ("wedged", "died", "failed"))

    def absent(self, number: int, kind: str, key: str, wanted: Iterable[str]) -> list[str]:
        """What of it a device was to tell, and did not. Of one that was lost nothing more."""
        there = {str(one.get(key)) for one in self.where(kind, number)}
        return [] if self.lost(number) else [one for one in wanted if one not in there]

    def unfinished(self, number: int) -> Missing:
        """Why a device did not tell something that comes later in a run."""
        if self.lost(number):
            return Missing("not-applicable", f"{self.name(number)} was lost before it")
        if self.of["interrupted"]:
            return Missing("exited", "the run was interrupted")
        if self.where("done", number):
            return Missing("unreadable", f"{self.name(number)} ended and told nothing of it")
        if self.of["end"]:
            return Missing("exited", "the run ended before it")
        return Missing("unreadable", "the recording is cut short: it lacks its end")


def read(text: str) -> Told:
    """The whole lines of a text; a last line that is cut short is left out.

    Raises ParseError where a line is no JSON object, or none is ours.
    """
    whole, newline, _ = text.rpartition("\n")
    lines: list[Line] = []
    watch: list[str] = []
    for number, line in enumerate(whole.split("\n") if newline else (), 1):
        told = _object(line, number) if line.strip() else {}
        ours = isinstance(told.get("kind"), str)
        lines += [{**told, "line": number}] if ours else []
        watch.append("" if ours else line)
    if not lines:
        raise ParseError("expected JSON lines of a stress run", 1)
    begins = [one["line"] for one in lines if one["kind"] == "begin"]
    if len(begins) > 1:
        raise ParseError("a second stress run begins: give each its own file", begins[1])
    return Told(lines, "".join(f"{line}\n" for line in watch))


def _object(text: str, number: int) -> Line:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ParseError(f"expected a JSON object, got {text[:60]!r}", number)
    return told


def distance_of(told: Mapping[str, Any], name: str) -> Known[float]:
    """How far from right something is. What is no number is as far as can be."""
    value = told.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
        return _UNTOLD
    return float(value) if finite(value) else math.inf


def count_of(told: Mapping[str, Any], name: str) -> Known[int]:
    """A whole number, not below zero."""
    value = told.get(name)
    if value is None or not finite(value) or value < 0 or value != int(value):
        return _UNTOLD
    return int(value)


def bool_of(told: Mapping[str, Any], name: str) -> Known[bool]:
    """Yes or no."""
    value = told.get(name)
    return value if isinstance(value, bool) else _UNTOLD


def spread_of(told: Mapping[str, Any], name: str, unit: float) -> Known[Spread]:
    """Several measurements of one rate, in units of so many."""
    found = told.get(name)
    numbers = [found.get(key) for key in ("n", "median", "low", "high")] if found else []
    known = [float(one) for one in numbers if finite(one)]
    if len(known) != len(Spread.__struct_fields__):
        return _UNTOLD
    n, half, low, high = known
    if n < 1 or half <= 0:  # nothing takes no time, and nothing is measured by no run
        return _UNTOLD
    return Spread(int(n), half / unit, low / unit, high / unit)


def median_of(spread: Known[Spread]) -> Known[float]:
    """What is held against a bound."""
    return spread if isinstance(spread, Missing) else spread.median
