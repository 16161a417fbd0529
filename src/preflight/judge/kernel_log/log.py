"""The kernel log judged by its tables: every row a check, one result per device concerned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.facts.host import Host
from preflight.facts.kernel import KernelLog
from preflight.judge.kernel_log.ended import Moment, resets
from preflight.judge.kernel_log.episodes import Episode, episodes
from preflight.judge.kernel_log.events import events_of, mine
from preflight.judge.kernel_log.rows import Row, faults, may_be_unread, read_row, told_by
from preflight.judge.kernel_log.seen import ago
from preflight.judge.kernel_log.words import YEARS_KNOWN_S, expected, reason
from preflight.judge.paths import value_at
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Known, Missing, Result, Status

#: Table -> how its ids and titles begin; the rows of the third name their own ids.
_NAMES = {"xid": ("gpu.xid.", "Xid "), "sxid": ("gpu.sxid.", "SXid ")}

#: The advice for what is over, where the row's own would contradict "no hurry".
_OVER = "nothing to do now; if it comes back, `preflight explain {}` says what to do"
#: A fact of Row.settled_by -> what its value makes of the event.
_SETTLED = {
    False: "any number while nothing waits for a reset",
    True: "any number, told by what waits for a reset",
}
#: The same for what no reset mends (Row.remains).
_KEPT = {
    False: "any number while the GPU tells of no failure",
    True: "any number, told by the failure that the GPU tells of",
}


def table_checks(kind: str, rows: list[dict[str, Any]], source: str) -> list[Check]:
    """The checks that the rows of a table are: kind is xid, sxid or kernel-events.

    Raises UsageError with every unknown or missing key, wrong value and repeated row.
    """
    found = [
        f"{_place(row, source, number)}: row {_name(row)}: {fault}"
        for number, row in enumerate(rows, 1)
        for fault in [*faults(kind, row), *_repeated(kind, rows, number - 1)]
    ]
    if found:
        raise UsageError("the table cannot be read:\n  " + "\n  ".join(found))
    known = sorted({code for row in rows for code in _codes(read_row(row))})
    return [_check(kind, row, known, _place(row, source, n)) for n, row in enumerate(rows, 1)]


def _place(row: Any, source: str, number: int) -> str:
    return f"{source}:{getattr(row, 'line', 0) or f'row {number}'}"


def _name(row: Any) -> str:
    return repr(row.get("code", row.get("id"))) if isinstance(row, dict) else repr(row)


def _repeated(kind: str, rows: list[dict[str, Any]], at: int) -> Iterator[str]:
    for key in ("code",) if kind in _NAMES else ("id", "kind"):
        above = [row.get(key) for row in rows[:at] if isinstance(row, dict)]
        if isinstance(rows[at], dict) and rows[at].get(key, object()) in above:
            yield f"{key} {rows[at][key]!r} stands in a row above"


def _codes(row: Row) -> tuple[int, ...]:
    return (*row.codes, row.code) if isinstance(row.code, int) else row.codes


def _check(kind: str, values: dict[str, Any], known: list[int], source: str) -> Check:
    row = read_row(values)
    begin, word = _NAMES.get(kind, ("", ""))
    return Check(
        id=f"{begin}{row.code}" if begin else row.id,
        title=f"{word}{row.code}: {row.title}" if isinstance(row.code, int) else row.title,
        source=source,
        fact="kernel_log",
        host_only=True,
        why=row.why,
        fix=row.fix,
        action=row.action,
        runbook=row.runbook,
        rule="kernel-log",
        row={**values, "table": kind, "known": known if row.code == "other" else []},
    )


def judge_kernel_log(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the table checks on one host, in their order.

    In a container the log is the host's: nothing seen is SKIP, not PASS. What was seen there is as
    real as elsewhere and is judged.
    """
    log = host.kernel_log
    assert not isinstance(log, Missing), "judge_rule sees to that"
    contained = isinstance(host.container, str) and host.container != "none"
    skip = Missing("not-applicable", "belongs to the host, not to a container")
    seen = events_of(host, log)
    moment = Moment(
        seen.xids, _now_s(host, log), log.starts,
        answering=_answering(host), resets=resets(seen.xids),
    )  # fmt: skip
    results = []
    for check in checks:
        row = read_row(check.row)
        seen_against = replace(moment, settled=_settled(host, row)) if row.settled_by else moment
        found = episodes(row, mine(host, row, seen), seen_against)
        if found:
            told = [_result(host, log, check, row, one) for one in found]
            results += [_or_more(host, log, check, one) for one in told]
        elif log.unread and may_be_unread(row):
            results.append(_unread(host, log, check))
        elif contained and check.host_only:
            results.append(undetermined(check, host.name, skip))
        else:
            results.append(_nothing(host, log, check, row))
    return results


def _or_more(host: Host, log: KernelLog, check: Check, found: Result) -> Result:
    """In a log without its end there may be more of what is well so far."""
    if found.status is not Status.PASS or not log.cut:
        return found
    return undetermined(check, found.subject, Missing("unreadable", log.cut))


def _settled(host: Host, row: Row) -> dict[str, str]:
    """Device -> what its GPU says of the row's facts, for the GPUs that say anything."""
    found = {}
    for gpu in () if isinstance(host.gpus, Missing) else host.gpus:
        values = [value_at(gpu, tuple(path.split("."))) for path in row.settled_by]
        told = [value for value in values if isinstance(value, bool)]
        if told:
            found[_device(gpu.bus_id)] = (_KEPT if row.remains else _SETTLED)[any(told)]
    return found


def _answering(host: Host) -> frozenset[str]:
    """The devices of the GPUs that nvidia-smi shows and that answer it."""
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    return frozenset(_device(gpu.bus_id) for gpu in gpus if gpu.answers is True)


def _device(bus_id: str) -> str:
    """As the log names it: the driver tells Xids of function 0."""
    return f"{bus_id.rpartition('.')[0]}.0"


def _unread(host: Host, log: KernelLog, check: Check) -> Result:
    """Nothing was found, but a line that may be one could not be read."""
    first, more = log.unread[0], len(log.unread) - 1
    others = f" (and {more} more)" if more else ""
    why = f"line {first.line}{others} speaks of an Xid in a form that is not known: {first.text}"
    found = undetermined(check, host.name, Missing("unreadable", why))
    found.evidence = tuple(Evidence(one.probe, line=one.line) for one in log.unread[:2])
    return found


def _now_s(host: Host, log: KernelLog) -> float | None:
    """Now on the log's axis: by the host's clock, else by the log's last line. A line from the
    future (a clock that was wrong for a while) must not age all others."""
    identity = host.identity
    told: Known[int] | Known[float] = Missing("not-in-input", "")
    if not isinstance(identity, Missing):
        told = identity.uptime_s if log.clock == "boot" else identity.date_s
    if log.clock == "wall" and (log.last_at_s or 0.0) < YEARS_KNOWN_S:
        return log.last_at_s
    if log.clock == "none":
        return None
    return log.last_at_s if isinstance(told, Missing) else told


def _nothing(host: Host, log: KernelLog, check: Check, row: Row) -> Result:
    if not told_by(row).intersection(log.writers):
        silent = Missing("not-in-input", "the input holds no line of the kernel")
        return undetermined(check, host.name, silent)
    if log.cut:
        why = f"{log.cut}; nothing is known of what stood below its line {log.lines}"
        return undetermined(check, host.name, Missing("unreadable", why))
    wanted = expected(row)
    if log.truncated and log.clock == "boot" and log.first_at_s is not None:
        wanted = f"{wanted} (the log begins {ago(log.first_at_s)} after boot)"
    return result(check, host.name, Status.PASS, 0, wanted, unit="events")


def _result(host: Host, log: KernelLog, check: Check, row: Row, episode: Episode) -> Result:
    ends = dict.fromkeys((one.seen.probe, one.seen.line) for one in episode.told)
    found = result(
        check,
        episode.told[0].seen.subject or host.name,
        episode.status,
        episode.count(),
        episode.settled or expected(row),
        unit="events or more" if log.left_out else "events",
        reason=reason(log, episode),
        device=episode.told[0].seen.device,
        evidence=tuple(Evidence(probe, line=line) for probe, line in _ends(list(ends))),
        action=episode.action,
    )
    if episode.status is not Status.PASS:
        found.fix = (_OVER.format(check.id),) if episode.over else episode.fix or found.fix
    return found


def _ends(lines: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    return [lines[0], lines[-1]] if len(lines) > 1 else [*lines]
