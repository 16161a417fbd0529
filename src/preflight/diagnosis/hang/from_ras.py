"""What NCCL's RAS service says of a job: processes that are dead or do not answer, communicators
with an error, and ranks that have launched fewer operations than others and launch no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.hang.ras_counts import Answer, counts_told
from preflight.diagnosis.reading import Lack, Reading, Sign
from preflight.facts.process import HostLook
from preflight.facts.ras import Comm, Failed, Peer, RasFile, RasReport
from preflight.model import Evidence, Missing

_MOST = 8
_LOOK = "on the host {host}: its log, `dmesg -T | tail`, py-spy dump --pid {pid}"
_DEAD = (_LOOK, "preflight gpu-health --hosts HOST: whether its GPU or host fell")
_AGAIN = "ask again after a minute: ncclras -v, and give both answers"
#: What others report when one of them fails.
_ECHO = "Remote process error"


class _Where(Struct, frozen=True):
    source: str
    probe: str

    def evidence(self, line: int, text: str) -> tuple[Evidence, ...]:
        known = line if line and self.probe == "ras" else None
        return (Evidence(self.probe, text=text, line=known, source=self.source),)


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """Of saved answers all that they tell; of a look at a running job only what is wrong."""
    files: list[RasFile] = facts.get("ras", [])
    signs: list[Sign] = []
    kept = (look for one in facts.get("kept-looks", []) for look in one.hosts)
    for look in (*facts.get("look", []), *kept):
        signs += _of_look(look)
    if not files and not signs:
        return None
    if not files:
        return Reading("NCCL's RAS service", signs=tuple(signs))
    answers = _in_turn(files)
    lacks: list[Lack] = []
    last = answers[-1]
    again = _still_missing(answers)
    signs += _signs(last.report, _Where(last.source, "ras"), again=again)
    counts = counts_told(answers, lacks, hangs=any(one.cause == "hang" for one in signs))
    signs += counts.signs
    notes = [f"{one.source}: not understood: {one.unread[0][:120]}" for one in files if one.unread]
    return Reading(
        f"{len(answers)} answer(s) of NCCL's RAS service", signs=tuple(signs),
        lacks=tuple(lacks) if not signs else (), notes=tuple(notes),
        covers=frozenset({"hang"}) if counts.moves and not signs else frozenset(),
    )  # fmt: skip


def _in_turn(files: Sequence[RasFile]) -> list[Answer]:
    """By their times where all tell one, else as they were given."""
    answers = [Answer(one.source, report) for one in files for report in one.reports]
    if all(one.report.time_s is not None for one in answers):
        answers.sort(key=lambda one: one.report.time_s or 0.0)
    return answers


def _of_look(look: HostLook) -> Iterator[Sign]:
    from preflight.logs.hangs.ras import of_lines

    if isinstance(look.ras, Missing):
        return
    for report in of_lines(look.ras.splitlines())[0][-1:]:
        yield from _signs(report, _Where(look.host, "look"), again=frozenset())


def _still_missing(answers: Sequence[Answer]) -> frozenset[tuple[str, int | None]]:
    """Processes that did not answer in the one before the last either."""
    if len(answers) < 2:
        return frozenset()
    return frozenset((one.host, one.pid) for one in answers[-2].report.peers)


def _signs(
    report: RasReport, where: _Where, *, again: frozenset[tuple[str, int | None]]
) -> Iterator[Sign]:
    dead = [one for one in report.peers if one.dead]
    silent = [one for one in report.peers if not one.dead]
    yield from (_dead(one, report, where) for one in dead[:_MOST])
    yield from (_silent(one, report, where, again=(one.host, one.pid) in again)
                for one in silent[:_MOST])  # fmt: skip
    unnamed = max(report.dead - len(dead), 0) + max(report.missing - len(silent), 0)
    if unnamed:
        yield Sign(
            "hang", f"{unnamed} more processes are dead or do not answer NCCL's service, and are "
            "not named", confidence="medium", suspected=not report.dead,
            evidence=where.evidence(report.line, f"{report.dead} dead, {report.missing} missing"),
            fix=("ncclras -v names them: echo verbose status | nc localhost 28028",),
        )  # fmt: skip
    for comm in report.comms:
        yield from (_failed(one, comm, where) for one in _firsts(comm.failed))


def _dead(peer: Peer, report: RasReport, where: _Where) -> Sign:
    name = name_of(peer, report)
    return Sign(
        "hang", f"{name} is the root: {_process(peer, name)} is dead, as NCCL's service says: it "
        "could not be reached for a minute", subject=name,
        confidence="high", evidence=where.evidence(peer.line, _words(peer)),
        against=("ranks that wait for it answer: they are its echo",),
        fix=tuple(one.format(host=peer.host, pid=peer.pid) for one in _DEAD),
    )  # fmt: skip


def _silent(peer: Peer, report: RasReport, where: _Where, *, again: bool) -> Sign:
    name = name_of(peer, report)
    when = "twice in turn" if again else "at this one moment"
    return Sign(
        "hang", f"{name} does not answer NCCL's service {when}: {_process(peer, name)} is "
        "stopped, has ended or cannot be reached", subject=name, confidence="medium",
        suspected=not again,
        evidence=where.evidence(peer.line, _words(peer)),
        against=() if again else ("a busy network delays answers: one alone is no proof",),
        fix=(*(() if again else (_AGAIN,)), _LOOK.format(host=peer.host, pid=peer.pid)),
    )  # fmt: skip


def _process(peer: Peer, name: str) -> str:
    if name.startswith("PID"):
        return f"this process of GPU {peer.gpus}"
    return f"its process {peer.pid} on {peer.host} (GPU {peer.gpus})"


def _words(peer: Peer) -> str:
    return f"process {peer.pid} on node {peer.host}, GPU {peer.gpus}"


def name_of(peer: Peer, report: RasReport) -> str:
    """rank 7, where a communicator of all GPUs misses it; else its PID and host."""
    whole = max(report.groups, key=lambda one: one.ranks_per_comm, default=None)
    size = report.gpus or (whole.ranks_per_comm if whole else None)
    for comm in report.comms:
        if _size(comm, report) != size or size is None:
            continue
        for one in comm.missing:
            if (one.pid == peer.pid and one.host == peer.host) or (
                one.pid is None and len(report.peers) == comm.missing_number == 1
            ):
                return f"rank {one.rank}"
    return f"PID {peer.pid} on {peer.host}"


def _size(comm: Comm, report: RasReport) -> int | None:
    """By the row of the table that its name tells: #ROW-NUMBER."""
    if comm.size is not None:
        return comm.size
    row = comm.name.removeprefix("#").partition("-")[0]
    return next((one.ranks_per_comm for one in report.groups if str(one.number) == row), None)


def _firsts(failed: Sequence[Failed]) -> Sequence[Failed]:
    """Without what is only the echo of another."""
    return [one for one in failed if one.text != _ECHO] or failed


def _failed(one: Failed, comm: Comm, where: _Where) -> Sign:
    ranks = ", ".join(str(rank.rank) for rank in one.ranks[:_MOST])
    at = one.ranks[0] if one.ranks else None
    who = f"rank {ranks} of it" if ranks else f"{one.number} of its ranks"
    on = f" (process {at.pid} on {at.host})" if at and at.pid is not None else ""
    echo = one.text == _ECHO
    against = "it is what others report when one fails: the first is elsewhere"
    return Sign(
        "crash", f"communicator {comm.name} has an error: {one.text} on {who}{on}",
        confidence="medium" if echo else "high",
        evidence=where.evidence(one.line or comm.line, f"{comm.name}: {one.text}, {who}"),
        against=(against,) if echo else (),
        fix=("the log of that rank before it: preflight explain FILE",),
    )  # fmt: skip
