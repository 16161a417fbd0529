"""A run over several hosts: what no one of them can know of the others, as a line of its own.

Whoever started the job has the lines of all hosts. It sets them side by side and puts behind the
lines of each one more, of the kind `job`: then a host's lines tell all there is to judge it by.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    told = {host: _told(part.text) for host, part in parts.items()}
    known = {host: one for host, one in told.items() if one is not None}
    return {
        "kind": "job", **of,
        "busy_s": {
            str(rank): spent
            for one in known.values()
            for rank in one.ranks()
            if not isinstance(spent := busy(one.steps[WHOLE].get(rank, [])), Missing)
        },
        "causes": [one.line() for one in _causes(parts, known)],
        "unmet": [one["text"] for each in known.values() for one in each.of["unmet"] if one["own"]],
    }  # fmt: skip


def _told(text: str) -> Told | None:
    try:
        return read(text)
    except ParseError:
        return None


def _causes(parts: Mapping[str, Part], told: Mapping[str, Told]) -> list[_Cause]:
    """A host that was lost, or could not begin, before an error of a rank's own, before a rank that
    is stopped, before one that was ended, before one that ended itself as its peer was gone."""
    lost = [_Cause(host, part.lost) for host, part in parts.items() if part.lost]
    if lost:
        return lost
    by_kind: dict[str, list[_Cause]] = {}
    for host, one in told.items():
        found = failures.failures(one)
        for each in failures.causes(found, WHOLE):
            if failures.is_own(one, each):
                cause = _Cause(host, each.text, _number(each))
                by_kind.setdefault(_kind(each), []).append(cause)
    return next((by_kind[kind] for kind in _WORST_FIRST if kind in by_kind), _behind(told))


_WORST_FIRST = ("failed", "silent", "died", "aborted")


def _kind(one: TrainFailure) -> str:
    return "aborted" if one.text.startswith(_ABORTED) else one.kind


def _number(one: TrainFailure) -> int:
    last = one.name.rpartition(" ")[2]
    return int(last) if last.isdigit() else -1


def _behind(told: Mapping[str, Told]) -> list[_Cause]:
    """Of ranks that all say nothing those that are behind: each host knows its own alone."""
    steps: dict[tuple[str, int], int] = {}
    after_s = 0.0
    for host, one in told.items():
        for line in one.where("silent", launch=WHOLE):
            after_s = max(after_s, float(line["after_s"]))
            steps |= {(host, int(rank)): int(step) for rank, step in line["steps"].items()}
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
