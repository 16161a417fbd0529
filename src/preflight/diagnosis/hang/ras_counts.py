"""Operations that ranks have launched, over answers of NCCL's service: who stays behind, and
whether anything moves. Launches of a running job differ between ranks all the time: one answer
tells no hang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from preflight.diagnosis.reading import Lack, Sign
from preflight.diagnosis.wording import duration
from preflight.facts.ras import Comm, Counted, RasReport
from preflight.model import Evidence

#: Answers nearer than this to each other confirm nothing; a step rarely takes so long. Where they
#: tell no time, so many of them in turn count as far apart.
_NEAR_S, _FAR_S, _MANY = 10.0, 60.0, 3
#: The same rank behind in so many answers of a job that moves is no luck.
_STRAGGLES = 4
_AGAIN = "ncclras -f json twice, a minute apart, both given (NCCL 2.28.7; ncclras -v before)"
_MOST = 8


class Answer(Struct, frozen=True):
    """One answer, and the file that it stands in."""

    source: str
    report: RasReport


class CountsTold(Struct):
    """`moves`: operations were launched between two answers."""

    signs: list[Sign]
    moves: bool = False


class _Behind(Struct, frozen=True):
    """Ranks of a communicator that have launched fewer operations than most."""

    comm: Comm
    operation: str
    most: int
    least: Counted
    behind: tuple[int, ...]  # ranks of the communicator, as far as they are named
    number: int
    of: int


def counts_told(answers: Sequence[Answer], lacks: list[Lack], *, hangs: bool) -> CountsTold:
    """`hangs`: something else in the answers says so already; then unlike counts are its echo."""
    first, last = answers[0], answers[-1]
    behind = list(_behind(last.report))
    if hangs:
        return CountsTold([])
    if _moves(answers):
        return CountsTold(list(_stragglers(answers)), moves=True)
    if len(answers) < 2 or not _common(answers):
        _lack(last, behind, lacks)
        return CountsTold([])
    apart = (last.report.time_s or 0) - (first.report.time_s or 0)
    known = first.report.time_s is not None and last.report.time_s is not None
    far = f", {duration(apart)} apart" if known else ""
    when = f"in {len(answers)} answers{far} no rank has launched another operation"
    near = known and apart < _NEAR_S
    sure = apart >= _FAR_S if known else len(answers) >= _MANY
    found = [_stands(one, last, when, sure=sure) for one in behind[:3] if not near]
    if not found and not near:
        found = [_all_alike(last, when)]
    if not found:
        _lack(last, behind, lacks)
    return CountsTold(found)


def _common(answers: Sequence[Answer]) -> bool:
    """Whether two answers have counts of one communicator."""
    keys = [set(_tops(one.report)) for one in answers]
    return bool(keys[0] & keys[-1])


def _tops(report: RasReport) -> dict[tuple[str, str], tuple[int, int]]:
    """Communicator and operation -> least and most launched."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for comm in report.comms:
        for one in comm.counts:
            key = (comm.hash, one.operation)
            low, high = found.get(key, (one.count, one.count))
            found[key] = min(low, one.count), max(high, one.count)
    return found


def _moves(answers: Sequence[Answer]) -> bool:
    """Whether a count has grown; or, as text has only those that differ, whether they differ no
    more."""
    tops = [_tops(one.report) for one in answers]
    return any(two[key] != one[key] for one, two in pairwise(tops)
               for key in set(one) & set(two)) or any(
        one.report.groups and two.report.groups and set(_tops(one.report)) != set(_tops(two.report))
        for one, two in pairwise(answers))  # fmt: skip


def _behind(report: RasReport) -> Iterator[_Behind]:
    """Of each communicator and operation with unlike counts; the largest gap first."""
    found = []
    for comm in report.comms:
        kinds: dict[str, list[Counted]] = {}
        for one in comm.counts:
            kinds.setdefault(one.operation, []).append(one)
        for operation, rows in kinds.items():
            most = max(one.count for one in rows)
            late = [one for one in rows if one.count < most]
            if not late:
                continue
            least = min(late, key=lambda one: one.count)
            ranks = tuple(sorted(rank.rank for one in late for rank in one.ranks))
            found.append(_Behind(comm, operation, most, least, ranks,
                                 sum(one.number for one in late),
                                 sum(one.number for one in rows)))  # fmt: skip
    yield from sorted(found, key=lambda one: one.least.count - one.most)


def _who(one: _Behind) -> str:
    shown = ", ".join(map(str, one.behind[:_MOST]))
    more = f" and {one.number - len(one.behind[:_MOST])} more" if one.number > _MOST else ""
    return f"rank {shown}{more}" if one.behind else f"{one.number} ranks"


def _text(one: _Behind) -> str:
    at = one.least.ranks[0] if one.least.ranks else None
    on = f" (process {at.pid} on {at.host}, GPU {at.gpu})" if at and at.pid is not None else ""
    have = "has" if one.number == 1 else "have"
    kind = "operation" if one.operation in ("collective", "") else one.operation
    return (f"{_who(one)}{on} of communicator {one.comm.name} {have} launched {one.least.count:,} "
            f"of {kind}, {one.of - one.number} others {one.most:,}")  # fmt: skip


def _evidence(answer: Answer, one: _Behind) -> tuple[Evidence, ...]:
    line = one.least.line or one.comm.line
    return (Evidence("ras", text=_text(one), line=line or None, source=answer.source),)


def _stands(one: _Behind, answer: Answer, when: str, *, sure: bool) -> Sign:
    """Unlike counts that stay: those behind are awaited, where they are few."""
    few = one.number <= one.of / 2
    alone = few and len(one.behind) == one.number == 1 and _is_whole(one, answer.report)
    at = one.least.ranks[0] if one.least.ranks else None
    place = f"{at.pid} on {at.host}" if at and at.pid is not None else "PID on its host"
    why = "" if few else "; most are behind: who calls alone is to be looked at first"
    return Sign(
        "hang", f"{_text(one)}; {when}{why}", subject=f"rank {one.behind[0]}" if alone else "",
        confidence="high" if sure and few else "medium", suspected=not sure,
        evidence=_evidence(answer, one),
        against=("others have launched what it has not: they wait for it",) if few else (),
        fix=(f"{_who(one)}: py-spy dump --pid {place}: what it does instead", _AGAIN),
    )  # fmt: skip


def _is_whole(one: _Behind, report: RasReport) -> bool:
    """Whether the communicator has all GPUs of the job: then its ranks are those of the job."""
    comms = sum(row.comms for row in report.groups) or len(report.comms)
    return one.of == report.gpus or (report.gpus is None and comms == 1)


def _all_alike(answer: Answer, when: str) -> Sign:
    return Sign(
        "hang", f"{when}, and all have launched as many; unconfirmed: a save, an evaluation or a "
        "long step launches none either", confidence="low", suspected=True,
        evidence=(Evidence("ras", text="equal counts", line=answer.report.line,
                           source=answer.source),),
        fix=("stacks of all ranks: py-spy dump --pid PID > rank0.txt; flight-recorder dumps",),
    )  # fmt: skip


def _stragglers(answers: Sequence[Answer]) -> Iterator[Sign]:
    """The same one rank of a communicator behind in each of many answers, while all moves."""
    if len(answers) < _STRAGGLES:
        return
    each = [{one.comm.hash: one for one in _behind(answer.report)} for answer in answers]
    for key, one in each[-1].items():
        rows = [found.get(key) for found in each]
        same = all(row is not None and row.number == 1 and row.behind == one.behind for row in rows)
        if same and one.behind and one.of > 2:
            whole = _is_whole(one, answers[-1].report)
            yield Sign(
                "straggler", f"{_text(one)}; it was behind in each of {len(answers)} answers, "
                "while all go on", confidence="low",
                subject=f"rank {one.behind[0]}" if whole else "",
                evidence=_evidence(answers[-1], one),
                against=("counts are of launches by the host: how much time it costs they do not "
                         "tell",),
            )  # fmt: skip


def _lack(last: Answer, behind: Sequence[_Behind], lacks: list[Lack]) -> None:
    text = _text(behind[0]) if behind else "no process is missing, and no rank is behind"
    lacks.append(Lack(("hang",), f"{text}; one answer of NCCL's service does not tell whether "
                      "operations go on", _AGAIN))  # fmt: skip
