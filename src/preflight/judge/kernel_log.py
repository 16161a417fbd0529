"""The kernel log judged by its tables: every row a check, one result per device concerned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from preflight.errors import UsageError
from preflight.facts.host import Host
from preflight.facts.kernel import KernelEvent, KernelLog, Sxid, Xid
from preflight.judge.kernel_log_episodes import Episode, Moment, Seen, ago, episodes
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
        row={**values, "table": kind, "known": known if row.code == "other" else []},
    )


def judge_kernel_log(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the table checks on one host, in their order.

    In a container the log is the host's: nothing seen is SKIP, not PASS. What was seen there is as
    real as elsewhere and is judged.
    """
    log = host.kernel_log
    contained = isinstance(host.container, str) and host.container != "none"
    skip = Missing("not-applicable", "belongs to the host, not to a container")
    if isinstance(log, Missing):
        return [undetermined(check, host.name, skip if contained else log) for check in checks]
    seen = _seen(host, log)
    moment = Moment(seen.xids, _now_s(host, log))
    results = []
    for check in checks:
        row = read_row(check.row)
        found = episodes(row, _mine(row, seen), moment)
        if found:
            results += [_result(host, log, check, row, one) for one in found]
        elif contained and check.host_only:
            results.append(undetermined(check, host.name, skip))
        else:
            results.append(_nothing(host, log, check, row))
    return results


class _Seen(Struct, frozen=True):
    """All events of one log, as the report names them."""

    xids: tuple[Seen, ...]
    sxids: tuple[Seen, ...]
    events: tuple[tuple[str, Seen], ...]  # with their kinds


def _seen(host: Host, log: KernelLog) -> _Seen:
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    names = {_slot(gpu.bus_id): gpu.name for gpu in gpus}
    return _Seen(
        tuple(_of_xid(one, names) for one in log.xids),
        tuple(_of_sxid(one) for one in log.sxids),
        tuple((one.kind, _of_event(one, names)) for one in log.events),
    )


def _slot(address: str) -> str:
    """0000:1b:00.0 and 00000000:1B:00 are one device: domain, bus and device without function."""
    return address.lower().rpartition(".")[0].lstrip("0") or address.lower().lstrip("0")


def _of_xid(one: Xid, names: dict[str, str]) -> Seen:
    return Seen(
        label=f"Xid {one.code}",
        subject=names.get(_slot(one.bus_id), one.bus_id),
        device=one.bus_id,
        line=one.line,
        at_s=one.at_s,
        text=one.text,
        code=one.code,
        pid=one.pid if isinstance(one.pid, int) else None,
        process=one.process if isinstance(one.process, str) else "",
    )


def _of_sxid(one: Sxid) -> Seen:
    return Seen(
        label=f"SXid {one.code}",
        subject=one.switch,
        device=one.switch,
        line=one.line,
        at_s=one.at_s,
        text=f"{one.severity}, {one.text}",
        code=one.code,
        link=one.link if isinstance(one.link, int) else None,
    )


def _of_event(one: KernelEvent, names: dict[str, str]) -> Seen:
    subject = names.get(_slot(one.subject), one.subject) if ":" in one.subject else one.subject
    return Seen("", subject, one.subject, one.line, one.at_s, one.text)


def _mine(row: Row, seen: _Seen) -> list[Seen]:
    """The events that a row is about."""
    if row.table == "kernel-events":
        elsewhere = {one.device for one in seen.xids if one.code == row.unless_xid}
        return [
            one for kind, one in seen.events if kind == row.kind and one.device not in elsewhere
        ]
    events = seen.xids if row.table == "xid" else seen.sxids
    if row.code == "other":
        return [one for one in events if one.code not in row.known]
    return [one for one in events if one.code == row.code or one.code in row.codes]


def _now_s(host: Host, log: KernelLog) -> float | None:
    """Now on the log's axis: its own last line, or the host's clock where that is later."""
    identity = host.identity
    told: Known[int] | Known[float] = Missing("not-in-input", "")
    if not isinstance(identity, Missing):
        told = identity.uptime_s if log.clock == "boot" else identity.date_s
    if log.clock == "wall" and (log.last_at_s or 0.0) < _YEARS_KNOWN_S:
        return log.last_at_s
    times = [at for at in (log.last_at_s, told) if isinstance(at, (int, float))]
    return max(times) if times and log.clock != "none" else None


def _nothing(host: Host, log: KernelLog, check: Check, row: Row) -> Result:
    expected = _expected(row)
    if log.truncated and log.clock == "boot" and log.first_at_s is not None:
        expected = f"{expected} (the log begins {ago(log.first_at_s)} after boot)"
    return result(check, host.name, Status.PASS, 0, expected, unit="events")


def _expected(row: Row) -> str:
    if row.status == "PASS":
        return "any number"
    if row.at_most:
        return f"at most {row.at_most} in {row.window_h:g} h"
    if row.echo_of_s:
        return "none but the echo of another Xid"
    return "none" if row.unless_xid is None else f"none without an Xid {row.unless_xid}"


def _result(host: Host, log: KernelLog, check: Check, row: Row, episode: Episode) -> Result:
    ends = dict.fromkeys((episode.told[0].seen.line, episode.told[-1].seen.line))
    return result(
        check,
        episode.told[0].seen.subject or host.name,
        episode.status,
        len(episode.judged),
        _expected(row),
        unit="events",
        reason=_reason(log, episode),
        device=episode.told[0].seen.device,
        evidence=tuple(Evidence(log.probe, line=line) for line in ends),
        action=episode.action,
    )


def _reason(log: KernelLog, episode: Episode) -> str:
    """What was seen, how often, when, by whom, in the kernel's words; then what it means."""
    count, first = len(episode.judged), episode.told[0].seen
    often = "once" if count == 1 else f"{count} times"
    head = f"{first.label} {often}".strip() + _when(log, episode)
    if first.process:
        head += f", {'first ' if count > 1 else ''}by {first.process}"
        head += f" (pid {first.pid})" if first.pid is not None else ""
    text = first.text if len(first.text) <= _TEXT_MAX else first.text[:_TEXT_MAX] + "..."
    links = sorted({one.seen.link for one in episode.judged if one.seen.link is not None})
    told = [f"links {', '.join(map(str, links))}"] if len(links) > 1 else []
    return "; ".join((f"{head}: {text}", *told, *episode.notes))


def _when(log: KernelLog, episode: Episode) -> str:
    first, last = episode.judged[0].seen.at_s, episode.judged[-1].seen.at_s
    if first is None or last is None:
        return ", at an unknown time and so counted as new"
    begin, end = _time(log, first), _time(log, last)
    after = " after boot" if log.clock == "boot" else ""
    return f" at {begin}{after}" if begin == end else f" from {begin} to {end}{after}"


def _time(log: KernelLog, at_s: float) -> str:
    if log.clock == "boot":
        return f"{at_s:.1f} s" if at_s < 3600 else ago(at_s)
    form = "%b %d %H:%M:%S" if at_s < _YEARS_KNOWN_S else "%Y-%m-%d %H:%M:%S"
    try:
        return (datetime(1970, 1, 1) + timedelta(seconds=at_s)).strftime(form)
    except OverflowError:
        return f"{at_s:.0f} s"
