"""What one input, or several of a kind together, tell about a run: signs of causes, where the time
goes, and what they cannot tell. Readings are judged together by decide.py."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from preflight.model import Evidence

Confidence = Literal["high", "medium", "low"]


class Sign(Struct, frozen=True):
    """One thing that speaks for a cause.

    `share`: of the step, 0 to 1, or of the wall time for what stands beside steps; None where the
    cause has no share (a hang). `certain`: the signal would not be there under any other cause.
    """

    cause: str  # a row of checks/data/causes.yaml
    text: str  # what was seen, with numbers: "waits for data 410 ms of 1.02 s a step (n = 200)"
    share: float | None = None
    seconds: float | None = None  # of a step
    subject: str = ""  # rank 3, node-07 gpu2, last stage; "" is all
    confidence: Confidence = "medium"
    evidence: tuple[Evidence, ...] = ()
    #: Counter-evidence that was looked for, and what was found: "no device work under it".
    against: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()  # what to do first, where the row's own is too general
    since: str = ""  # when it began: "step 1,240 (03:04:05)"
    #: What would be a failure if it lasts, and was seen at one moment: a warning.
    suspected: bool = False


class Lack(Struct, frozen=True):
    """A signal that is not there: which causes cannot be told without it, and what supplies it."""

    causes: tuple[str, ...]
    text: str  # "per-rank times are not in this log"
    supply: str  # the flag or command, literally


class Number(Struct, frozen=True):
    """A figure, with what is good for this hardware where that is known."""

    name: str  # MFU
    value: float
    unit: str
    n: int = 0
    low: float | None = None
    high: float | None = None
    good: str = ""  # "35 to 50 % is good for a dense model in bf16 on H100"
    source: str = ""  # formula, peak, where both come from
    #: Whether it is good: None where there is nothing to hold it against.
    is_good: bool | None = None


class Part(Struct, frozen=True):
    """A part of the step, median seconds; the parts of a step together are the step."""

    name: str  # data | h2d | forward | backward | communication | optimizer | save | host | other
    seconds: float


class RankParts(Struct, frozen=True):
    """The parts of one rank, for the map of ranks."""

    rank: str  # rank 3
    parts: tuple[Part, ...]


class Mark(Struct, frozen=True):
    """A place in a series worth a mark: where a cause began, a save, a restart."""

    step: float
    label: str


class Curve(Struct, frozen=True):
    """A series to be drawn. At most some thousand points."""

    name: str  # step time
    unit: str
    steps: tuple[float, ...]
    values: tuple[float, ...]
    marks: tuple[Mark, ...] = ()
    count: int = 0  # of values that it was thinned from, extremes kept


class Share(Struct, frozen=True):
    """A part of the wall time of a run: trained, loaded, saved, evaluated, restarted, repeated,
    stood-still, unknown."""

    name: str
    seconds: float
    share: float


class Reading(Struct, frozen=True):
    """What inputs of one kind tell. `covers`: the causes that they can prove *and* rule out: where
    none of their signs reaches a bound, those are not the cause. `input`: what was read."""

    input: str  # "trace of 4 ranks"
    steps: int = 0
    step_s: float | None = None  # median
    low_s: float | None = None  # 10th and 90th percentile
    high_s: float | None = None
    signs: tuple[Sign, ...] = ()
    covers: frozenset[str] = frozenset()
    lacks: tuple[Lack, ...] = ()
    numbers: tuple[Number, ...] = ()
    parts: tuple[Part, ...] = ()
    ranks: tuple[RankParts, ...] = ()
    curves: tuple[Curve, ...] = ()
    goodput: tuple[Share, ...] = ()
    notes: tuple[str, ...] = ()  # damage, what was left out: shown once
    #: What could not be read at all, and why; each is a finding with status ERROR.
    unread: tuple[str, ...] = ()
