"""The JSON lines of a training run by what they are about (payload/training writes them)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, TypeGuard

from preflight.errors import ParseError
from preflight.model import NOT_IN_INPUT, Known, Missing

PROBE = "micro-train"
#: The launches, as payload/training/plan.py names them.
WHOLE, RESUMED = "whole", "resumed"
NO_STEP = Missing("unreadable", "no step was told")

Line = dict[str, Any]


#: What the lines of a kind are counted by.
_COUNTED = {"step": ("rank", "step"), "done": ("rank",), "replica": ("rank", "step_at")}


class Told:
    """All lines of one run, in their order, each with its number as `line`."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        self.steps: dict[str, dict[int, list[Line]]] = defaultdict(lambda: defaultdict(list))
        self.of: dict[str, list[Line]] = defaultdict(list)
        for one in self.lines:
            self.of[one["kind"]].append(one)
            if one["kind"] == "step":
                self.steps[str(one["launch"])][int(one["rank"])].append(one)
        self.begin = next(iter(self.of["begin"]), {})
        self.plan: Line = dict(self.begin.get("plan", {}))
        self.shape: Line = dict(self.begin.get("shape", {}))
        #: What whoever started the job knows of it (job.py); empty where it is of one host.
        self.job: Line = next(iter(self.of["job"]), {})

    def cannot(self) -> str:
        """Why nothing could be trained; "" where it could."""
        return next((str(one["text"]) for one in self.of["cannot"]), "")

    def lacks_torch(self) -> bool:
        """Whether that is because torch is not there, or cannot be imported."""
        return any(one.get("why") == "no-torch" for one in self.of["cannot"])

    def busy(self) -> str:
        """Whose work it did not disturb; "" where nobody's was there."""
        return next((str(one["text"]) for one in self.of["busy"]), "")

    def apart(self) -> str:
        """Why the hosts did not come together; "" where they did, or nobody says."""
        told = [*self.job.get("unmet", ()), *self.of["unmet"]]
        alone = [self._not_reached()] if told and not self.job else []
        return next(filter(None, (*alone, *(str(one["text"]) for one in told))), "")

    def _not_reached(self) -> str:
        """Whom this host did not reach, where nobody has heard the others."""
        closed = [way for one in self.of["ways"] for way in one["ways"] if way["why"]]
        hosts = ", ".join(str(one["host"]) for one in closed)
        return f"this host does not reach {hosts}: {closed[0]['why']}" if closed else ""

    def unfinished(self) -> Missing:
        """Why something that comes later in a run was not told."""
        lost = self.of["died"] + self.of["silent"] + self.of["failed"]
        if any(one.get("launch") == WHOLE for one in lost):
            return Missing("not-applicable", "a rank was lost before it")
        if self.apart():
            return Missing("not-applicable", f"the hosts did not come together: {self.apart()}")
        if self.job.get("causes"):
            return Missing("not-applicable", f"{self.job['causes'][0]['host']} was lost before it")
        if any(one.get("by") == "job" for one in self.of["interrupted"]):
            text = "it was ended before it, as another host of the job had come to its end"
            return Missing("not-applicable", text)
        if self.of["interrupted"] or self.job.get("interrupted"):
            return Missing("exited", "the run was interrupted")
        if self.of["end"]:
            return Missing("exited", "the run ended before it")
        if self.of["ended_by"]:
            return Missing("exited", str(self.of["ended_by"][0]["text"]))
        return Missing(
            "unreadable", "no end was told: the run was killed, or its recording is cut short"
        )

    def told_nothing(self, rank: int) -> bool:
        """Whether a whole run has no line of a rank: none is lost in silence."""
        return bool(self.of["end"]) and not any(one.get("rank") == rank for one in self.lines)

    def whole(self) -> bool:
        """Whether it is there to its last line; the launches behind the whole run have theirs."""
        others = any(one.get("by") == "job" for one in self.of["interrupted"])
        return bool(self.of["end"]) or bool(self.plan.get("resume")) or others

    def ranks(self) -> list[int]:
        """The numbers of this host's ranks, of all hosts' ranks: those that told something, and
        on one host those that were asked for."""
        # Whom the harness has killed is told on every host.
        own = (one for one in self.lines if one["kind"] != "killed")
        told = {rank for one in own if isinstance(rank := one.get("rank"), int)}
        if self.hosts() > 1 and self.job:
            each = min(int(self.job["ranks"]), 1024)
            first = self.job["hosts"].index(self.job["host"]) * each
            return sorted(told | set(range(first, first + each)))
        asked = self.plan.get("ranks", 0) if self.hosts() == 1 and self.begin else 0
        return sorted(told | set(range(min(int(asked), 1024))))

    def hosts(self) -> int:
        return max(1, len(self.plan.get("hosts") or self.job.get("hosts") or ()))

    def world(self) -> int:
        """Ranks on all hosts."""
        return int(self.plan.get("ranks", 1)) * self.hosts()

    def busy_elsewhere(self) -> dict[int, float]:
        """Seconds of a step that ranks of the whole job were at work, by their numbers."""
        return {int(rank): float(one) for rank, one in self.job.get("busy_s", {}).items()}

    def where(self, kind: str, **told: Any) -> list[Line]:
        """The lines of a kind in which all that is told holds."""
        return [
            one for one in self.of[kind] if all(one.get(key) == each for key, each in told.items())
        ]


def read(text: str) -> Told:
    """The whole lines of a text; a last line that is cut short is left out.

    Raises ParseError where a line is no JSON object of ours, or none is there.
    """
    whole = text.rpartition("\n")[0].split("\n")
    lines = [_line(line, number) for number, line in enumerate(whole, 1) if line.strip()]
    if not lines:
        raise ParseError("expected JSON lines of a training run", 1)
    begins = [one["line"] for one in lines if one["kind"] == "begin"]
    if len(begins) > 1:
        raise ParseError("two runs in one file: give each a file of its own", begins[1])
    first = next((one["line"] for one in lines if "launch" in one), None)
    if first and not begins:
        raise ParseError("its beginning is missing: no line of the kind begin", first)
    return Told(lines)


def ended_by(text: str, why: str) -> str:
    """The whole lines of a run that did not come to its end, and one that says why."""
    line = json.dumps({"kind": "ended_by", "text": why})
    return f"{text[: text.rfind(chr(10)) + 1]}{line}\n"


def _line(text: str, number: int) -> Line:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        raise ParseError(f"expected a JSON object with its kind, got {text[:60]!r}", number)
    for name in _COUNTED.get(told["kind"], ()):
        if type(told.get(name)) is not int or told[name] < 0:
            raise ParseError(f"expected a {name} of 0 or more, got {told.get(name)!r}", number)
    return {**told, "line": number}


def text_of(told: Mapping[str, Any], name: str) -> Known[str]:
    value = told.get(name)
    return value if isinstance(value, str) and value else NOT_IN_INPUT


def number_of(told: Mapping[str, Any], name: str) -> Known[float]:
    value = told.get(name)
    return float(value) if finite(value) else NOT_IN_INPUT


def count_of(told: Mapping[str, Any], name: str) -> Known[int]:
    value = told.get(name)
    return int(value) if finite(value) else NOT_IN_INPUT


def finite(value: Any) -> TypeGuard[float]:
    """Whether it is a number that can be computed with."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) < 1e300 and math.isfinite(value)


def middle(values: Iterable[float]) -> Known[float]:
    """The median; missing of nothing."""
    found = list(values)
    return median(found) if found else NO_STEP
