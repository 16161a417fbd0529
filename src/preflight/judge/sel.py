"""The BMC's event log judged by its table: every row a check, one result per sensor concerned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from preflight.errors import UsageError
from preflight.facts.chassis import EventLog, SelEntry
from preflight.facts.host import Host
from preflight.judge.bmc_states import severity
from preflight.judge.kernel_log.seen import ago
from preflight.judge.results import result
from preflight.model import Action, Check, Evidence, Missing, Result, Status

#: The BMC's clock may run in another zone than the host's (UTC-12 to UTC+14): an entry counts as
#: old only where it is old in every zone.
_ZONES_S = 14 * 3600.0
_TEXT_MAX = 200


class SelRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of sel_events.yaml."""

    id: str
    title: str
    status: Literal["FAIL", "WARN"]
    action: Action
    window_h: float
    why: str
    fix: tuple[str, ...]
    runbook: str
    matches: str = ""
    by_states: bool = False
    unless: str = ""
    ended_by: str = ""
    at_most: int = 0


def sel_checks(rows: Sequence[Any], source: str) -> list[Check]:
    """The checks that the rows are. UsageError with every row that cannot be read."""
    read, wrong = [], []
    for number, row in enumerate(rows, 1):
        place = f"{source}:{getattr(row, 'line', 0) or f'row {number}'}"
        try:
            one = msgspec.convert(dict(row), SelRow)
            for pattern in (one.matches, one.unless, one.ended_by):
                re.compile(pattern)
            read.append((one, row, place))
            if bool(one.matches) is one.by_states:
                wrong.append(f"{place}: either `matches` or `by_states: true`")
        except (msgspec.ValidationError, re.error, TypeError, ValueError) as error:
            wrong.append(f"{place}: {error}")
    if wrong:
        raise UsageError("the table cannot be read:\n  " + "\n  ".join(wrong))
    others = "|".join(one.matches for one, _, _ in read if one.matches)
    return [
        Check(
            id=one.id, title=one.title, source=place, fact="sel", optional=True, host_only=True,
            why=one.why, fix=one.fix, action=one.action, runbook=one.runbook, rule="sel",
            row={"sel": dict(row), "others": others if one.by_states else ""},
        )
        for one, row, place in read
    ]  # fmt: skip


def judge_sel(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the rows on one host."""
    log = host.sel
    assert not isinstance(log, Missing), "judge_rule sees to that"
    now_s = _now_s(host, log)
    return [one for check in checks for one in _judge(host, log, check, now_s)]


def _now_s(host: Host, log: EventLog) -> float | None:
    """The host's date; without it the log's newest entry, so that the ages are the least."""
    newest = max((one.at_s for one in log.entries if one.at_s is not None), default=None)
    if isinstance(host.identity, Missing) or isinstance(host.identity.date_s, Missing):
        return newest
    return float(host.identity.date_s)


def _judge(host: Host, log: EventLog, check: Check, now_s: float | None) -> Iterator[Result]:
    row = msgspec.convert(check.row["sel"], SelRow)
    found = {
        sensor: entries
        for sensor, entries in _standing(row, check.row["others"], log, now_s).items()
        if len(entries) > row.at_most
    }
    if not found:
        yield result(check, host.name, Status.PASS, f"none in {log.total} entries", "none")
    for sensor, entries in found.items():
        last = entries[-1]
        expected = f"at most {row.at_most} in {row.window_h:g} h" if row.at_most else "none"
        yield result(
            check, sensor, _status(row, entries), len(entries), expected,
            reason=_reason(host, entries, now_s),
            evidence=(Evidence(last.probe, line=last.line),),
        )  # fmt: skip


def _status(row: SelRow, entries: Sequence[SelEntry]) -> Status:
    """The row's; of one by states that of the worst."""
    found = [severity(one.sensor, one.event) for one in entries] if row.by_states else []
    return Status.FAIL if Status.FAIL in found else Status(row.status)


def _about(row: SelRow, others: str) -> Callable[[SelEntry], bool]:
    """Whether an entry is the row's; one by states has what no other row speaks of."""
    matches, unless = re.compile(row.matches, re.I), re.compile(row.unless or "(?!)", re.I)
    elsewhere = re.compile(others or "(?!)", re.I)

    def about(entry: SelEntry) -> bool:
        text = f"{entry.sensor}: {entry.event}"
        if row.by_states and (elsewhere.search(text) or not severity(entry.sensor, entry.event)):
            return False
        return matches.search(text) is not None and not unless.search(text)

    return about


def _standing(
    row: SelRow, others: str, log: EventLog, now_s: float | None
) -> dict[str, list[SelEntry]]:
    """Sensor -> its entries of the row that are recent and not over."""
    about = _about(row, others)
    ended_by = re.compile(row.ended_by or "(?!)", re.I)
    found: dict[str, list[SelEntry]] = {}
    for entry in log.entries:
        if entry.asserted and ended_by.search(entry.event):
            found.pop(entry.sensor, None)
        elif about(entry):
            if not entry.asserted:
                _end(found, entry)
            elif _recent(entry, row.window_h, now_s):
                found.setdefault(entry.sensor, []).append(entry)
    return {sensor: entries for sensor, entries in found.items() if entries}


def _end(found: Mapping[str, list[SelEntry]], over: SelEntry) -> None:
    """What this entry says is over."""
    mine = found.get(over.sensor, [])
    mine[:] = [one for one in mine if _same(one.event) != _same(over.event)]


def _same(event: str) -> str:
    """The event without what is added to it: the reading, the module."""
    return event.partition("(")[0].partition(" | ")[0].strip().lower()


def _recent(entry: SelEntry, window_h: float, now_s: float | None) -> bool:
    if entry.at_s is None or now_s is None:
        return True
    return now_s - entry.at_s <= window_h * 3600 + _ZONES_S


def _reason(host: Host, entries: Sequence[SelEntry], now_s: float | None) -> str:
    last, count = entries[-1], len(entries)
    often = "once" if count == 1 else f"{count} times, last"
    when = f"at {last.time} by the BMC's clock" if last.time else "at an unknown time"
    text = f"{last.event[:_TEXT_MAX]} {often} {when}"
    if last.at_s is None or now_s is None:
        return f"{text} and so counted as new"
    own_clock = not isinstance(host.identity, Missing) and isinstance(host.identity.date_s, int)
    since = max(now_s - last.at_s, 0.0)
    if own_clock:
        return f"{text}, {ago(since)} ago; not deasserted since"
    return f"{text}; the host's date is not in the input, so its age is counted from the last entry"
