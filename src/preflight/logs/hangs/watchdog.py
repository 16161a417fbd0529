"""Lines of NCCL's watchdog and of torch's report of ranks out of step, from a log's events."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.facts.hangs import Desync, Watchdog
from preflight.facts.series import LogEvent

_WORK = re.compile(
    r"WorkNCCL\((?:SeqNum|OpSeqNum)=(?P<seq>\d+), OpType=(?P<name>\w+)"
    r"(?:, TensorShape=\[[^\]]*\])?(?:, NumelIn=(?P<into>\d+), NumelOut=(?P<out>\d+))?"
    r"(?:, Timeout\(ms\)=(?P<timeout>\d+))?\)(?: ran for (?P<ran>\d+) milliseconds)?"
)
_STATUS = re.compile(
    r"(?:work(?: sequence id)?:? (?P<seq>\d+).{0,40}?)?last enqueued(?: NCCL)? work: "
    r"(?P<enqueued>-?\d+), last completed(?: NCCL)? work: (?P<completed>-?\d+)"
)
_GROUP = re.compile(
    r"\[PG (?:ID )?(?P<id>\w+)(?: \((?P<name>[^)]*)\)| PG GUID (?P<guid>[^\s\]]+))?"
)
_RANK = re.compile(r"[\[ ][Rr]ank (?P<rank>\d+)\]")
_JOINED = re.compile(
    r"\[(?P<rank>\d+)\] (?:finished collective #(?P<done>\d+), but didn't join collective #"
    r"(?P<next>\d+)|(?P<none>joined but didn't finish|didn't join)[^#]*#(?P<at>\d+))"
)
_LAGGING = re.compile(r"\[(?P<ranks>\d+(?:, ?\d+)*)\]")


def watchdogs(source: str, events: Sequence[LogEvent]) -> list[Watchdog]:
    """One for each rank, group and collective; what several lines say of one is put together."""
    found: dict[tuple[int | None, int], Watchdog] = {}
    status: dict[int | None, tuple[int, int, str]] = {}
    for event in events:
        rank = _rank(event)
        if told := _STATUS.search(event.text):
            group = _GROUP.search(event.text)
            name = (group["name"] or group["id"]) if group else ""
            status[rank] = int(told["enqueued"]), int(told["completed"]), name
        if work := _WORK.search(event.text):
            key = (rank, int(work["seq"]))
            found.setdefault(key, _watchdog(source, event, rank, work))
    return [_with_status(one, status.get(one.rank)) for one in found.values()
            if one.rank is not None or len(found) == 1]  # fmt: skip


def _rank(event: LogEvent) -> int | None:
    match = _RANK.search(event.text)
    return int(match["rank"]) if match else event.rank


def _watchdog(source: str, event: LogEvent, rank: int | None, work: re.Match[str]) -> Watchdog:
    def number(name: str) -> float | None:
        return float(work[name]) if work[name] else None

    into, out = number("into"), number("out")
    return Watchdog(
        source, event.line, rank, int(work["seq"]), work["name"],
        elements_in=None if into is None else int(into),
        elements_out=None if out is None else int(out), timeout_ms=number("timeout"),
        ran_ms=number("ran"), text=event.text,
    )  # fmt: skip


def _with_status(one: Watchdog, status: tuple[int, int, str] | None) -> Watchdog:
    from msgspec.structs import replace

    if status is None:
        return one
    enqueued, completed, group = status
    return replace(one, enqueued=enqueued, completed=completed, group=group)


def desyncs(source: str, events: Sequence[LogEvent]) -> list[Desync]:
    """Ranks that the report names as not there."""
    found = []
    for event in events:
        if match := _JOINED.search(event.text):
            seq = int(match["next"] or match["at"])
            state = "waits" if (match["none"] or "").startswith("joined") else "not-joined"
            found.append(Desync(source, event.line, int(match["rank"]), state, seq=seq,
                                text=event.text))  # fmt: skip
    return found
