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
from preflight.probes.training import failures, ways
from preflight.probes.training.lines import WHOLE, Line, Told, read
from preflight.probes.training.timing import busy

_ALONE = Missing("not-applicable", "the run is of one host")
#: What the kernel ends an abort with: NCCL aborts a process whose peer is gone.
_ABORTED = "ended by signal 6 "
#: payload/training/layout.py: a rank that did not join the others.
_NOT_JOINED = "JoinError"


class Part(Struct, frozen=True):
    """What came of one host: its lines, and where they do not tell its end, what became of it."""

    text: str
    lost: str = ""


class _Cause(Struct, frozen=True):
    """`rank`: -1 where it is the whole host. `of_host`: whose ranks have failed with it."""

    host: str
    text: str
    rank: int = -1
    of_host: bool = False

    def line(self) -> Line:
        told = {"host": self.host, "rank": self.rank, "text": self.text}
        return {**told, **({"of_host": True} if self.of_host else {})}


def job_line(of: Mapping[str, Any], parts: Mapping[str, Part]) -> Line:
    """What all hosts of a job told, in one line. `of`: hosts, master, ranks, interface,
    without."""
    heard = [one for host, part in parts.items() if (one := _heard(host, part.text))]
    places, many = of.get("places", {}), len(of["hosts"])
    told = {name: one for name, one in of.items() if name != "places"}
    return {
        "kind": "job", **told,
        "busy_s": {rank: spent for one in heard for rank, spent in one.busy_s.items()},
        "causes": [one.line() for one in _causes(of, parts, heard)],
        "unmet": _unmet(heard, places),
        "ways": [sum(len(one.met.ways) for one in heard if one.met), many * (many - 1)],
    }  # fmt: skip


class _Heard(Struct):
    """What one host told that concerns the others."""

    host: str
    busy_s: dict[str, float]
    unmet: list[str]
    met: ways.Row | None  # before the first launch
    left: ways.Row | None  # once all said nothing
    joined: set[int]  # its ranks that came to the rendezvous
    words: dict[int, str]  # the last of its ranks that failed
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
    whole = told.where("ways", launch=WHOLE)
    return _Heard(
        host,
        {str(rank): one for rank, one in spent.items() if not isinstance(one, Missing)},
        [str(one["text"]) for one in told.of["unmet"] if one["own"]],
        ways.row(host, [one for one in told.of["ways"] if one not in whole]),
        ways.row(host, whole),
        {int(one["rank"]) for one in told.where("joined", launch=WHOLE)},
        {
            int(one["rank"]): f"{one['error']}: {one['text']}"
            for one in told.where("failed", launch=WHOLE)
            if "rank" in one
        },
        [
            (_kind(one), _Cause(host, one.text, _number(one)))
            for one in found
            if failures.is_own(told, one)
        ],
        {(host, int(rank)): int(at) for one in silent for rank, at in one["steps"].items()},
        max((float(one["after_s"]) for one in silent), default=0.0),
    )


def _unmet(heard: Sequence[_Heard], places: Mapping[str, Any]) -> list[Line]:
    """Why the hosts did not come together: one that cannot listen, before ways that are closed."""
    deaf = [{"hosts": [one.host], "text": text, "type": ""} for one in heard for text in one.unmet]
    return deaf or ways.faults([one.met for one in heard if one.met], places)


def _causes(
    of: Mapping[str, Any], parts: Mapping[str, Part], heard: Sequence[_Heard]
) -> list[_Cause]:
    """A host that was lost, or could not begin, before an error of a rank's own, before a rank that
    is stopped, before one that was ended, before one that ended itself as its peer was gone; then
    a host that never came, a way that is closed by now, and a rank that is behind."""
    lost = [_Cause(host, part.lost) for host, part in parts.items() if part.lost]
    if lost:
        return lost
    by_kind: dict[str, list[_Cause]] = {}
    for kind, cause in (each for one in heard for each in one.causes):
        by_kind.setdefault(kind, []).append(cause)
    known = next((by_kind[kind] for kind in _WORST_FIRST if kind in by_kind), [])
    return known or _never_came(of, heard) or _cut_off(of, heard) or _behind(heard)


def _never_came(of: Mapping[str, Any], heard: Sequence[_Heard]) -> list[_Cause]:
    """Ranks that did not come to the rendezvous, where others waited for them. The first rank is
    where they meet: it came where anybody else did, or where it counts who is there."""
    words = {rank: text for one in heard for rank, text in one.words.items()}
    if not any(text.startswith(_NOT_JOINED) for text in words.values()):
        return []
    came = {rank for one in heard for rank in one.joined}
    came |= {0} if came or "clients joined" in words.get(0, "") else set()
    text = f"never came to the rendezvous ({of['master']}), where the others waited for it"
    missing = [
        _Cause(host, text, rank)
        for at, host in enumerate(of["hosts"])
        for rank in range(at * int(of["ranks"]), (at + 1) * int(of["ranks"]))
        if rank not in came
    ]
    # Lines of a payload that does not tell who came say nothing of who did not.
    return missing if came else missing[:1]


def _cut_off(of: Mapping[str, Any], heard: Sequence[_Heard]) -> list[_Cause]:
    """Where ranks of several hosts say nothing: which ways between them are closed by now."""
    rows = [one.left for one in heard if one.left]
    found = ways.faults(rows, of.get("places", {}))
    return [
        _Cause(host, f"{one['text']}, in the middle of the run", of_host=True)
        for one in found
        for host in one["hosts"]
    ]


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
    if not behind or len({one.host for one in heard if one.silent}) < 2:
        return []
    if len(behind) < len(steps):
        text = f"said nothing for {after_s:g} s {failures.after(least)}, behind the others"
        return [_Cause(host, text, rank) for host, rank in behind]
    # One that is held up between two steps, or within one, cannot be told from those that wait.
    hosts = list(dict.fromkeys(host for host, _ in behind))
    text = (
        f"all ranks said nothing for {after_s:g} s {failures.after(least)}; none is behind, none "
        f"is stopped: the way between {' and '.join(hosts)}, or a rank that hangs in its step"
    )
    return [_Cause(host, text, of_host=True) for host in hosts]


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
        causes=_in_words(line["causes"]),
        ways=tuple(map(int, line.get("ways", (0, 0)))),
    )


def _in_words(causes: Sequence[Line]) -> tuple[str, ...]:
    """The causes with their places; what is true of several hosts once."""
    told: dict[str, list[str]] = {}
    for one in causes:
        rank = f", rank {one['rank']}" if one["rank"] >= 0 else ""
        told.setdefault(str(one["text"]), []).append(f"{one['host']}{rank}")
    return tuple(f"{'; '.join(where)}: {text}" for text, where in told.items())


def _of_itself(unmet: Line) -> str:
    """A host's own row has its name already: h2 (10.0.0.2) cannot, its address cannot."""
    text, hosts = str(unmet["text"]), unmet["hosts"]
    alone = f"{hosts[0]} (" if len(hosts) == 1 else ""
    return (
        text.removeprefix(alone).replace(")", "", 1) if alone and text.startswith(alone) else text
    )


def unmet(told: Told) -> Known[str]:
    """Why this host is not reached, or reaches nobody; "" where all came together."""
    mine = [one for one in told.job.get("unmet", ()) if told.job["host"] in one["hosts"]]
    mine += [{**one, "hosts": [], "type": ""} for one in told.of["unmet"] if one["own"]]
    if mine:
        return "; ".join(filter(None, (_of_itself(mine[0]), mine[0]["type"])))
    if told.apart():
        return Missing("not-applicable", told.apart())
    if told.hosts() < 2:
        return _ALONE
    return "" if told.of["met"] or told.of["step"] else told.unfinished()
