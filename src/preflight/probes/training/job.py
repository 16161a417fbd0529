"""A run over several hosts: what no one of them can know of the others, as a line of its own.

Whoever started the job has the lines of all hosts. It sets them side by side and puts behind the
lines of each one more, of the kind `job`: then a host's lines tell all there is to judge it by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from preflight.errors import ParseError
from preflight.facts.training import Job, TrainFailure
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.training import failures
from preflight.probes.training.lines import WHOLE, Line, Told, read
from preflight.probes.training.timing import busy

_ALONE = Missing("not-applicable", "the run is of one host")
#: What the kernel ends an abort with: NCCL aborts a process whose peer is gone.
_ABORTED = "ended by signal 6 "


class Part(Struct, frozen=True):
    """What came of one host: its lines, and where they do not tell its end, what became of it."""

    text: str
    lost: str = ""


class _Cause(Struct, frozen=True):
    """`rank`: -1 where it is the whole host."""

    host: str
    text: str
    rank: int = -1

    def line(self) -> Line:
        return {"host": self.host, "rank": self.rank, "text": self.text}


def job_line(of: Mapping[str, Any], parts: Mapping[str, Part]) -> Line:
    """What all hosts of a job told, in one line. `of`: hosts, master, ranks, interface,
    without."""
    heard = [one for host, part in parts.items() if (one := _heard(host, part.text))]
    return {
        "kind": "job", **of,
        "busy_s": {rank: spent for one in heard for rank, spent in one.busy_s.items()},
        "causes": [one.line() for one in _causes(parts, heard)],
        "unmet": [text for one in heard for text in one.unmet],
    }  # fmt: skip


class _Heard(Struct):
    """What one host told that concerns the others."""

    busy_s: dict[str, float]
    unmet: list[str]
    causes: list[tuple[str, _Cause]]  # by their kind
    #: Of its ranks that said nothing the last step, and for how long.
    silent: dict[tuple[str, int], int]
    silent_s: float


def _heard(host: str, text: str) -> _Heard | None:
    """None where its lines are none of ours, or are not as they should be."""
    try:
        return _read(host, read(text))
    except (ParseError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _read(host: str, told: Told) -> _Heard:
    found = failures.causes(failures.failures(told), WHOLE)
    silent = told.where("silent", launch=WHOLE)
    spent = {rank: busy(told.steps[WHOLE].get(rank, [])) for rank in told.ranks()}
    return _Heard(
        {str(rank): one for rank, one in spent.items() if not isinstance(one, Missing)},
        [str(one["text"]) for one in told.of["unmet"] if one["own"]],
        [
            (_kind(one), _Cause(host, one.text, _number(one)))
            for one in found
            if failures.is_own(told, one)
        ],
        {(host, int(rank)): int(at) for one in silent for rank, at in one["steps"].items()},
        max((float(one["after_s"]) for one in silent), default=0.0),
    )


def _causes(parts: Mapping[str, Part], heard: Sequence[_Heard]) -> list[_Cause]:
    """A host that was lost, or could not begin, before an error of a rank's own, before a rank that
    is stopped, before one that was ended, before one that ended itself as its peer was gone."""
    lost = [_Cause(host, part.lost) for host, part in parts.items() if part.lost]
    if lost:
        return lost
    by_kind: dict[str, list[_Cause]] = {}
    for kind, cause in (each for one in heard for each in one.causes):
        by_kind.setdefault(kind, []).append(cause)
    return next((by_kind[kind] for kind in _WORST_FIRST if kind in by_kind), _behind(heard))


_WORST_FIRST = ("failed", "silent", "died", "aborted")


def _kind(one: TrainFailure) -> str:
    return "aborted" if one.text.startswith(_ABORTED) else one.kind


def _number(one: TrainFailure) -> int:
    last = one.name.rpartition(" ")[2]
    return int(last) if last.isdigit() else -1


def _behind(heard: Sequence[_Heard]) -> list[_Cause]:
    """Of ranks that all say nothing those that are behind: each host knows its own alone."""
    steps = {place: step for one in heard for place, step in one.silent.items()}
    after_s = max((one.silent_s for one in heard), default=0.0)
    least = min(steps.values(), default=0)
    behind = [place for place, step in steps.items() if step == least]
    if not behind or len(behind) == len(steps):
        return []
    text = f"said nothing for {after_s:g} s {failures.after(least)}, behind the others"
    return [_Cause(host, text, rank) for host, rank in behind]


def job_of(told: Told) -> Known[Job]:
    """The job that the lines are a part of."""
    line = told.job
    if not line:
        return NOT_IN_INPUT if told.hosts() > 1 else _ALONE
    return Job(
        host=str(line["host"]),
        hosts=tuple(map(str, line["hosts"])),
        ranks=int(line["ranks"]),
        meets=str(line["master"]),
        interface=str(line["interface"]),
        without=tuple(f"{one['host']}: {one['text']}" for one in line["without"]),
        causes=tuple(map(in_words, line["causes"])),
    )


def in_words(cause: Line) -> str:
    """A cause with its place."""
    rank = f", rank {cause['rank']}" if cause["rank"] >= 0 else ""
    return f"{cause['host']}{rank}: {cause['text']}"


def unmet(told: Told) -> Known[str]:
    """Why this host did not reach the others, or others not it; "" where all came together."""
    own = [str(one["text"]) for one in told.of["unmet"] if one["own"]]
    if own:
        return own[0]
    if told.apart():
        return Missing("not-applicable", told.apart())
    if told.hosts() < 2:
        return _ALONE
    return "" if told.of["met"] or told.of["step"] else told.unfinished()
