"""What logs say of a hang or of an end: watchdogs, ranks out of step, error texts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from preflight.diagnosis.reading import Lack, Sign
from preflight.diagnosis.series.times import begins_of
from preflight.error_texts import Hit, find
from preflight.facts.hangs import Desync, Watchdog
from preflight.facts.series import Log
from preflight.logs.hangs.watchdog import desyncs, watchdogs
from preflight.model import Evidence

_ERRORS = ("error", "out-of-memory", "killed")
_KINDS = (*_ERRORS, "watchdog", "desync")
_STARTS = ("started", "loaded")
#: Steps after an error that say that it was survived: other ranks may end a few.
_WENT_ON = 10
_MOST = 2000  # lines of errors that are looked at
#: A rank so many collectives behind the others is the one to look at.
_FAR = 100
_ALL_LOGS = "the logs of all ranks: torchrun --log-dir logs --redirects 3"
_STACK = "py-spy dump --pid PID on the hosts of the ranks that are not among them"


def speaks_of_hang(log: Log) -> bool:
    """Whether it has any such line."""
    return any(one.kind in _KINDS for one in log.events) or bool(log.stacks)


def log_hang_signs(logs: Sequence[Log], lacks: list[Lack], *, has_dumps: bool) -> Iterator[Sign]:
    """By the reports of watchdogs, and torch's own of who did not come."""
    late: list[Desync] = []
    dogs: list[Watchdog] = []
    for log in logs:
        late += desyncs(log.source, [one for one in log.events if one.kind == "desync"])
        dogs += watchdogs(log.source, [one for one in log.events if one.kind == "watchdog"])
    if any(one.state == "not-joined" for one in late):
        yield from _out_of_step(late, dogs)
    elif dogs:
        yield _timed_out(dogs)
        ranks = {one.rank for one in dogs}
        if not has_dumps and not _at_start(dogs):
            told = ", ".join(str(one) for one in sorted(r for r in ranks if r is not None)[:8])
            lacks.append(Lack(("hang",), f"only rank {told} tells of it", _ALL_LOGS))


def _out_of_step(late: Sequence[Desync], dogs: Sequence[Watchdog]) -> Iterator[Sign]:
    for one in [found for found in late if found.state == "not-joined"][:8]:
        waiting = next((dog for dog in dogs if dog.rank != one.rank), None)
        where = f"; rank {waiting.rank} waits in {waiting.name}" if waiting else ""
        yield Sign(
            "hang", f"rank {one.rank} did not join collective number {one.seq}{where}",
            subject=f"rank {one.rank}", confidence="high",
            evidence=(Evidence("log", text=one.text, line=one.line, source=one.source),),
            against=("torch's own report of ranks out of step says so",),
        )  # fmt: skip


def _at_start(dogs: Sequence[Watchdog]) -> bool:
    """The first collective, and nothing was ever finished."""
    return all(one.seq <= 1 or (one.completed is not None and one.completed < 0) for one in dogs)


def _timed_out(dogs: Sequence[Watchdog]) -> Sign:
    # Numbers count within a group: the first that tells of a timeout names it.
    first = min(dogs, key=lambda one: (one.source, one.line))
    dogs = [one for one in dogs if one.group == first.group]
    last = max(dogs, key=lambda one: one.seq)
    ranks = sorted({one.rank for one in dogs if one.rank is not None})
    evidence = tuple(
        Evidence("log", text=one.text, line=one.line, source=one.source) for one in dogs[:2]
    )
    waited = f" for {last.timeout_ms / 1e3:,.0f} s" if last.timeout_ms else ""
    size = f", {last.elements_in:,} elements" if last.elements_in is not None else ""
    what = f"{last.name} number {last.seq:,}{size}"
    shown = ", ".join(map(str, ranks[:8]))
    if _at_start(dogs):
        return Sign(
            "hang", f"rank {shown} waited{waited} in {what}: the first collective never worked, so "
            "it is the network or peer-to-peer between them, not a rank that came late",
            confidence="high", evidence=evidence,
            against=("no collective was finished before it",),
            fix=("preflight nccl-bench --hosts HOSTS; which interface: NCCL_SOCKET_IFNAME, "
                 "NCCL_DEBUG=INFO; on one host NCCL_P2P_DISABLE=1 as a test",),
        )  # fmt: skip
    far = [one for one in dogs if one.seq < last.seq - _FAR]
    if far:
        behind = min(far, key=lambda one: one.seq)
        return Sign(
            "hang", f"rank {behind.rank} is at number {behind.seq:,}, others at {last.seq:,}: look "
            "there first", subject=f"rank {behind.rank}", confidence="medium", evidence=evidence,
            fix=(_STACK,),
        )  # fmt: skip
    seqs = Counter(one.seq for one in dogs)
    done = f"; number {first.completed:,} was its last" if first.completed is not None else ""
    others = "another rank never joined" if len(seqs) == 1 else "ranks stand at different places"
    return Sign(
        "hang", f"rank {shown} waited{waited} in {what}{done}: {others}; these ranks are the "
        "cascade, and the root is a rank that does not tell of a timeout",
        confidence="medium", evidence=evidence,
        against=("collectives before it worked: the network is not the first suspect",),
        fix=(_STACK, _ALL_LOGS),
    )  # fmt: skip


def crash_signs(logs: Sequence[Log]) -> Iterator[Sign]:
    """The causes that are known of error texts, roots before their echoes; of hardware only where
    the table calls it so."""
    for log in logs:
        events = [
            one for one in log.events if one.kind in _ERRORS and not _survived(log, one.line)
        ][:_MOST]
        if not events:
            continue
        hits = find("\n".join(one.text for one in events))
        roots = [hit for hit in hits if hit.row.stage != "echo"] or hits
        for hit in roots[:2]:
            yield _crash(log, hit, events[hit.line - 1].line, echoes=len(events) - 1)
        if not hits and log.series:  # of a text that has no step such a word may be of anything
            first = events[0]
            yield Sign(
                "crash", f"ended by: {first.text[:160]}", confidence="low",
                evidence=(Evidence("log", text=first.text, line=first.line, source=log.source),),
                fix=(f"preflight explain {log.source}",),
            )  # fmt: skip


def _survived(log: Log, line: int) -> bool:
    """Whether the run went on after an error: steps follow it before any start. One that resumes
    where it ended has no step twice, but says that it loads or starts."""
    starts = [one.line for one in log.events if one.kind in _STARTS and one.line > line]
    for series in log.series:
        first = bisect_right(series.line, line)
        begins = [row for row in begins_of(series.values("step")) if row >= first]
        begins += [bisect_right(series.line, one) for one in starts]
        if min(begins, default=len(series.line)) - first >= _WENT_ON:
            return True
    return False


def _crash(log: Log, hit: Hit, line: int, *, echoes: int) -> Sign:
    against = (
        [f"{echoes} other lines of errors in this log are taken for its echo"] if echoes else []
    )
    return Sign(
        "crash", hit.row.cause, confidence="high" if hit.row.stage != "echo" else "medium",
        evidence=(Evidence("log", text=hit.shown, line=line, source=log.source),),
        against=tuple(against), fix=hit.row.next,
    )  # fmt: skip
