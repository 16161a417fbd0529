"""The kernel log judged by its tables: every row a check, one result per device concerned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from preflight.errors import UsageError
from preflight.facts.host import Host
from preflight.facts.kernel import KernelEvent, KernelLog, Sxid, Xid
from preflight.judge.kernel_log_episodes import Episode, Moment, Seen, episodes
from preflight.judge.kernel_log_rows import Row, faults, read_row
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Known, Missing, Result, Status

#: Table -> how its ids and titles begin; the rows of the third name their own ids.
_NAMES = {"xid": ("gpu.xid.", "Xid "), "sxid": ("gpu.sxid.", "SXid ")}

#: A wall time before 1990 comes from a log that writes no year (see probes/kernel_log_lines.py):
#: it can be compared with the log's own times and with no others.
_YEARS_KNOWN_S = 20 * 365 * 86400.0

_TEXT_MAX = 200


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
        row={**values, "known": known} if row.code == "other" else dict(values),
    )


def judge_kernel_log(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the table checks on one host, in their order.

    In a container the log is the host's, so that nothing seen is SKIP, not PASS; what was seen there
    is as real as elsewhere and is judged.
    """
    log = host.kernel_log
    contained = isinstance(host.container, str) and host.container != "none"
    skip = Missing("not-applicable", "belongs to the host, not to a container")
    if isinstance(log, Missing):
        return [undetermined(check, host.name, skip if contained else log) for check in checks]
    seen, moment = _all_seen(host, log), Moment(now_s=_now_s(host, log))
    moment = Moment([one for found in seen.xids.values() for one in found], moment.now_s)
    results = []
    for check in checks:
        row = read_row(check.row)
        mine = seen.of(row)
        if contained and check.host_only and not mine:
            results.append(undetermined(check, host.name, skip))
        else:
            results += _results(host, log, check, row, episodes(row, mine, moment))
    return results
