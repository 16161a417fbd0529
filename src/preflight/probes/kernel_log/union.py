"""Several logs of one host as one: the ring buffer may have lost what the journal kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from preflight.facts.kernel import Gap, KernelEvent, KernelLog, Start, Sxid, Xid
from preflight.model import Missing
from preflight.probes.kernel_log.hosts import distinct
from preflight.probes.kernel_log.lines import YEAR_S

R = TypeVar("R", Xid, Sxid, KernelEvent)
T = TypeVar("T", Xid, Sxid, KernelEvent, Start)

#: Times of one event in two logs differ by less: the journal stamps the first messages of a boot
#: when it starts itself, and clocks are set while a host runs.
_SAME_S = 120.0
#: The clock of printk is not disciplined and runs away by up to this share of the uptime
#: (dmesg(1) warns of it under --ctime).
_DRIFT = 1e-4
#: As in the judge: a wall time before 1990 is of a log that writes no year.
_YEARS_KNOWN_S = 20 * 365 * 86400.0


def union(logs: Sequence[KernelLog], booted_at_s: float | None) -> KernelLog:
    """The events of all logs, each once, every one with the probe of the log that told it first.

    `booted_at_s` (seconds since 1970) brings times since boot and wall times together. Without it
    the times of all but the longest log's axis are unknown.
    """
    if len(logs) == 1:
        return logs[0]
    dated = [log for log in logs if log.clock == "wall"]
    logs = _on_one_axis(logs, booted_at_s)
    within_s = _SAME_S + _DRIFT * max(_reach_s(log) for log in logs)
    times = [at for log in logs for at in (log.first_at_s, log.last_at_s) if at is not None]
    unread = {one.text: one for log in reversed(logs) for one in log.unread}
    return replace(
        logs[0],
        lines=max(log.lines for log in logs),
        first_at_s=min(times, default=None),
        last_at_s=max(times, default=None),
        xids=_once([log.xids for log in logs], _same_xid, within_s),
        sxids=_once([log.sxids for log in logs], _same_sxid, within_s),
        events=_once([log.events for log in logs], _same_event, within_s),
        unread=tuple(unread.values()),
        starts=tuple(one for log in logs for one in log.starts),
        writers=tuple(sorted({writer for log in logs for writer in log.writers})),
        truncated=all(log.truncated for log in logs),
        left_out=sum(log.left_out for log in logs),
        hosts=hosts_of_all(logs),
        cut=_cut(logs),
        utc=all(log.utc for log in dated) and bool(dated),
        gap=max((log.gap for log in logs), key=_missed),
        messages_left_out=tuple(one for log in logs for one in log.messages_left_out),
    )


def hosts_of_all(logs: Sequence[KernelLog]) -> tuple[str, ...]:
    """The hosts whose kernels wrote the logs."""
    return distinct(host for log in logs for host in log.hosts)


def _missed(gap: Gap) -> int:
    return -1 if isinstance(gap.missed, Missing) else gap.missed


def _cut(logs: Sequence[KernelLog]) -> str:
    """Why an end is not there; of what a host was asked one whole answer is enough."""
    recorded = [log.cut for log in logs if log.probe.startswith("kernel-log")]
    asked = [log.cut for log in logs if not log.probe.startswith("kernel-log")]
    return next(filter(None, recorded), "") or (asked[0] if asked and all(asked) else "")


def relabelled(log: KernelLog, probe: str) -> KernelLog:
    """The log as another probe's, so that evidence points into the right one of several."""
    return replace(
        log,
        probe=probe,
        xids=tuple(replace(one, probe=probe) for one in log.xids),
        sxids=tuple(replace(one, probe=probe) for one in log.sxids),
        events=tuple(replace(one, probe=probe) for one in log.events),
        unread=tuple(replace(one, probe=probe) for one in log.unread),
        messages_left_out=tuple(replace(one, probe=probe) for one in log.messages_left_out),
        gap=replace(log.gap, probe=probe),
        starts=tuple(replace(one, probe=probe) for one in log.starts),
    )


def told_twice(records: Sequence[Xid | Sxid | KernelEvent], other: Sequence[bool]) -> set[int]:
    """Which of a text's records stand for one of the rest: two logs in one file. `other`: the
    record's clock is not that of the rest, so that its time is unknown."""
    rest: dict[tuple[object, ...], int] = {}
    for one, is_other in zip(records, other, strict=True):
        if not is_other:
            rest[_same(one)] = rest.get(_same(one), 0) + 1
    found = set()
    for at, (one, is_other) in enumerate(zip(records, other, strict=True)):
        if is_other and rest.get(_same(one), 0) > 0:
            rest[_same(one)] -= 1
            found.add(at)
    return found


def _same(one: Xid | Sxid | KernelEvent) -> tuple[object, ...]:
    if isinstance(one, Xid):
        return _same_xid(one)
    return _same_sxid(one) if isinstance(one, Sxid) else _same_event(one)


def _same_xid(one: Xid) -> tuple[object, ...]:
    return (one.code, one.bus_id, one.text, one.pid)


def _same_sxid(one: Sxid) -> tuple[object, ...]:
    return (one.code, one.switch, one.text)


def _same_event(one: KernelEvent) -> tuple[object, ...]:
    return (one.kind, one.subject, one.text)


def _reach_s(log: KernelLog) -> float:
    if log.first_at_s is None or log.last_at_s is None:
        return 0.0
    return log.last_at_s - log.first_at_s


def _on_one_axis(logs: Sequence[KernelLog], booted_at_s: float | None) -> list[KernelLog]:
    clocks = {log.clock for log in logs} - {"none"}
    if len(clocks) < 2 and not _yearless_and_dated(logs):
        axis = clocks.pop() if clocks else "none"
        return [replace(log, clock=axis) for log in _through_new_year(logs)]
    if booted_at_s is not None and not _yearless_and_dated(logs):
        shifted = [_moved(log, booted_at_s) if log.clock == "boot" else log for log in logs]
        return [replace(log, clock="wall") for log in shifted]
    longest = max((log for log in logs if log.clock != "none"), key=_lines)
    same = (longest.clock, _yearless(longest))
    kept = [log if (log.clock, _yearless(log)) == same else _moved(log, None) for log in logs]
    return [replace(log, clock=longest.clock) for log in kept]


def _through_new_year(logs: Sequence[KernelLog]) -> list[KernelLog]:
    """Of logs without years one that ends half a year before another begins is of the next year."""
    begins = [log.first_at_s for log in logs if _yearless(log) and log.first_at_s is not None]
    latest = max(begins, default=0.0)
    return [
        _moved(log, YEAR_S) if _yearless(log) and (log.last_at_s or 0.0) < latest - YEAR_S / 2
        else log
        for log in logs
    ]  # fmt: skip


def _yearless(log: KernelLog) -> bool:
    return log.clock == "wall" and (log.last_at_s or 0.0) < _YEARS_KNOWN_S


def _yearless_and_dated(logs: Sequence[KernelLog]) -> bool:
    """Whether the times of one log carry no year, so that they compare with no others'."""
    return any(map(_yearless, logs)) and not all(map(_yearless, logs))


def _lines(log: KernelLog) -> int:
    return log.lines


def _moved(log: KernelLog, by_s: float | None) -> KernelLog:
    """The log with all its times later by `by_s`; None where they cannot be compared."""

    def at(at_s: float | None) -> float | None:
        return None if at_s is None or by_s is None else at_s + by_s

    def all_of(records: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(replace(one, at_s=at(one.at_s)) for one in records)

    return replace(
        log, first_at_s=at(log.first_at_s), last_at_s=at(log.last_at_s), xids=all_of(log.xids),
        sxids=all_of(log.sxids), events=all_of(log.events), starts=all_of(log.starts),
    )  # fmt: skip


def _once(
    logs: Sequence[tuple[R, ...]], same: Callable[[R], tuple[object, ...]], within_s: float
) -> tuple[R, ...]:
    """The records of all logs, in the order of their times; of one that several logs tell the
    first log's. Each record of a log is matched with one of those before it at most."""
    found = list(logs[0])
    for log in logs[1:]:
        open_: dict[tuple[object, ...], list[R]] = {}
        for one in reversed(found):
            open_.setdefault(same(one), []).append(one)
        for one in log:
            waiting = open_.get(same(one), [])
            while waiting and _earlier(waiting[-1], one, within_s):
                waiting.pop()
            if waiting and _near(waiting[-1], one, within_s):
                waiting.pop()
            else:
                found.append(one)
    return tuple(sorted(found, key=_at) if all(one.at_s is not None for one in found) else found)


def _at(one: Xid | Sxid | KernelEvent) -> float:
    return one.at_s or 0.0


def _earlier(one: R, other: R, within_s: float) -> bool:
    return one.at_s is not None and other.at_s is not None and one.at_s < other.at_s - within_s


def _near(one: R, other: R, within_s: float) -> bool:
    """Whether both may be one event; where a time is unknown, alike is the same."""
    return one.at_s is None or other.at_s is None or abs(one.at_s - other.at_s) <= within_s
