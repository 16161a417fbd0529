"""The report for people: failures first, worst first, equal results once, then what to run next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.model import (
    SEVERITY,
    STATUS_OF_MISSING,
    ChangeKind,
    HostReport,
    Report,
    Result,
    Status,
)
from preflight.reports.blocks import (
    STYLES,
    View,
    brief,
    finding_block,
    first_line,
    group_block,
    silence_block,
)
from preflight.reports.changes import headline, rows
from preflight.reports.groups import Entry, bad, entries, followers, gather, leads, where
from preflight.reports.layout import Line, Span, Style, flow, plain
from preflight.reports.matrix import matrix
from preflight.reports.silent import answered, machines, silences
from preflight.reports.split import split_hosts
from preflight.reports.tables import measurement
from preflight.reports.wording import DOMAINS, against, domain, plural, some, value, verdict, when
from preflight.units import format_duration
from preflight.verdict import count, verdict_of

__all__ = ["Line", "Span", "Style", "lines", "plain", "render"]

_EMPTY: Line = ()

_CHANGE_STYLES: dict[ChangeKind, Style] = {
    "silent": "error", "failed": "fail", "unknown": "error", "gone": "fail", "warned": "warn",
    "better": "pass", "fixed": "pass",
}  # fmt: skip


def render(report: Report, *, verbose: int, quiet: bool, facts: bool) -> Iterator[str]:
    """The text without styles, a line at a time."""
    for line in lines(report, verbose=verbose, quiet=quiet):
        yield plain(line) + "\n"


def lines(
    report: Report, *, verbose: int = 0, quiet: bool = False, width: int = 100, box: bool = False
) -> Iterator[Line]:
    """The whole text, none of it wider than `width`; with `quiet` only the verdict. `box`: trees
    are drawn with the characters that are made for it."""
    view = View(width, verbose, hosts=len(report.hosts) > 1, box=box)
    if not quiet:
        parts = (_header, _checklist, _changes, _blocks, _maps, _tables, _rest, _hints)
        for part in parts:
            found = list(part(report, view))
            if found:
                yield from found
                yield _EMPTY
    word, _, tail = verdict(report).partition(" ")
    head = [Span(f"{word} ", STYLES[report.verdict])]
    yield from flow(head, [Span(tail)], hang=len(word) + 1, width=width)


def _header(report: Report, view: View) -> Iterator[Line]:
    told = [f"level {report.level}" if report.level else "", when(report.started_at)]
    told.append(format_duration(report.elapsed_s))
    body = [Span(f"preflight {report.command}", "bold"), Span(", " + ", ".join(filter(None, told)))]
    yield from flow([], [Span(plain(tuple(body)), "bold")], hang=0, width=view.width)
    yield from _answered(report, view)
    for name, summary in _machines(report, view):
        yield from flow([], [Span(name), Span(f"  {summary}")], hang=2, width=view.width)
    if report.profile:
        yield from flow([], [Span(f"profile {report.profile}")], hang=2, width=view.width)
    if report.overrides:
        told = [f"{one.id}={_shown(one.value)} ({one.source})" for one in report.overrides]
        text = f"not the built-in values: {some(told, view.most(6))}"
        yield from flow([], [Span(text)], hang=2, width=view.width)
    if view.verbose > 1:
        yield from flow(
            [], [Span(shlex.join(report.argv), "dim")], hang=2, width=view.width, advice=True
        )
        yield from flow(
            [], [Span(f"preflight {report.preflight}", "dim")], hang=2, width=view.width
        )


def _shown(told: object) -> str:
    return value(told) if isinstance(told, (bool, int, float, str)) else str(told)


def _answered(report: Report, view: View) -> Iterator[Line]:
    """Of several hosts: how many there is anything to say of, and how many a job may use."""
    hosts = machines(report.hosts)
    if len(hosts) > 1:
        told = [host for host in hosts if answered(host)]
        cut = sum(1 for host in told if any(one.fault for one in host.missing))
        text = f"{len(hosts):,} hosts, {len(told):,} answered"
        text += f" ({cut:,} not to the end)" if cut else ""
        if told:
            text += f", {len(split_hosts(report)[0]):,} passed or only warned of"
        yield from flow([], [Span(text)], hang=2, width=view.width)


def _machines(report: Report, view: View) -> list[tuple[str, str]]:
    alike: dict[str, list[str]] = {}
    for host in report.hosts:
        if answered(host):
            # How far each log reaches differs from host to host: many would no longer fold.
            reach = host.reach if len(report.hosts) == 1 else ""
            told = "; ".join(part for part in (host.summary, reach) if part)
            alike.setdefault(told, []).append(host.host)
    machines = [(brief(names, view), summary) for summary, names in alike.items()]
    most = view.most(8)
    if len(machines) > most + 1:
        machines[most:] = [(f"and {len(machines) - most} other kinds of host (-v lists them)", "")]
    return machines


def _checklist(report: Report, view: View) -> Iterator[Line]:
    """Of several hosts the matrix, where any of them answered; of one a line per domain, for the
    command that goes through all of them."""
    if len(machines(report.hosts)) > 1:
        if any(map(answered, report.hosts)):
            yield from matrix(report, view)
    elif "run" in report.command.split("+"):
        yield from _domains(report, view)


def _domains(report: Report, view: View) -> Iterator[Line]:
    found: dict[str, list[Result]] = {}
    for _, one in entries(report):
        found.setdefault(domain(one.check), []).append(one)
    order = {name: at for at, name in enumerate(DOMAINS.values())}
    broad = max((len(name) for name in found), default=0)
    for name in sorted(found, key=lambda name: (order.get(name, len(order)), name)):
        worst = verdict_of(one.status for one in found[name])
        counts = count(found[name])
        told = (
            (counts.fail, "failed"),
            (counts.error, "undetermined"),
            (counts.warn, "warned"),
            (counts.passed, "passed"),
            (counts.skip, "skipped"),
        )
        yield from flow(
            [Span(f"{name:<{broad}}  "), Span(f"{worst.value:<7}", STYLES[worst])],
            [Span(", ".join(f"{number:,} {word}" for number, word in told if number))],
            hang=broad + 9,
            width=view.width,
        )


def _changes(report: Report, view: View) -> Iterator[Line]:
    """What became of the hosts since an earlier report, worst first."""
    if report.changes is None:
        return
    yield from flow([], [Span(headline(report.changes), "bold")], hang=2, width=view.width)
    for note in report.changes.notes:
        yield from flow([Span("  ")], [Span(note)], hang=4, width=view.width)
    for row in rows(report.changes, hosts=view.hosts, most=view.most(20), more="-v lists them"):
        told = _row(*filter(None, (row.about, row.at, row.told)))
        head = Span(f"{row.kind:<9}", _CHANGE_STYLES.get(row.kind, ""))
        yield from flow([head], told, hang=9, width=view.width)


def _blocks(report: Report, view: View) -> Iterator[Line]:
    """Everything that is not right, and every conclusion, worst first."""
    found = [(one.status, list(silence_block(one, view))) for one in silences(report.hosts)]
    found += [(one.status, list(finding_block(one, view))) for one in report.findings]
    groups = bad(report)
    shown = groups if view.verbose else leads(groups)
    found += [(one.status, list(group_block(one, followers(one, groups), view))) for one in shown]
    found.sort(key=lambda one: SEVERITY.index(one[0]))
    for at, (_, block) in enumerate(found):
        if at:
            yield _EMPTY
        yield from block


def _maps(report: Report, view: View) -> Iterator[Line]:
    """The machines as they are drawn, and how to start a job on them."""
    if any(host.map for host in report.hosts):
        from preflight.reports.machine.sections import machine_lines

        yield from machine_lines(report, width=view.width, verbose=view.verbose, box=view.box)


def _tables(report: Report, view: View) -> Iterator[Line]:
    shown = report.measurements if view.verbose else _first_of_each(report.measurements)
    for at, table in enumerate(shown):
        if at:
            yield _EMPTY
        yield from measurement(table, view)
    left = _hosts_of_a_table(report.measurements) - _hosts_of_a_table(shown)
    if left > 0:
        yield _EMPTY
        text = f"tables of {plural(left, 'other host')}: -v, or --format json"
        yield from flow([], [Span(text)], hang=2, width=view.width)


def _hosts_of_a_table(tables: Sequence[dict[str, Any]]) -> int:
    """Of how many hosts there is one by the same name, at most."""
    hosts: dict[str, set[Any]] = {}
    for table in tables:
        hosts.setdefault(table["table"], set()).add(table.get("host"))
    return max(map(len, hosts.values()), default=0)


def _first_of_each(tables: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of tables by one name that of the first host: hosts that train together are alike."""
    found: dict[str, dict[str, Any]] = {}
    for table in tables:
        found.setdefault(table["table"], table)
    return list(found.values())


def _rest(report: Report, view: View) -> Iterator[Line]:
    """What passed (with -v), what was left out and why, which tools gave no answer."""
    if view.verbose:
        yield from _passed(report, view)
    yield from _skipped(report, view)
    yield from _unanswered(report, view)


def _passed(report: Report, view: View) -> Iterator[Line]:
    told = [one for one in entries(report) if one[1].status is Status.PASS]
    if view.verbose > 1:
        for host, one in told:
            at = where(gather([(host, one)])[0].places, hosts=view.hosts)
            yield from first_line(one.status, _row(one.check, at, against(one)), view)
        return
    for group in gather(told):
        values = [value(one.measured, one.unit) for one in group.variants]
        text = some(list(dict.fromkeys(values)), 4)
        text += f", expected {group.expected}" if group.expected else ""
        yield from first_line(
            group.status, _row(group.checks[0], where(group.places, hosts=view.hosts), text), view
        )


def _row(*parts: str) -> list[Span]:
    return [Span(f"  {part}" if at else part) for at, part in enumerate(parts) if part]


def _skipped(report: Report, view: View) -> Iterator[Line]:
    by_reason: dict[str, list[Entry]] = {}
    told_already = {one.reason for _, one in entries(report) if one.status is Status.ERROR}
    for entry in entries(report):
        if entry[1].status is Status.SKIP:
            what, _, why = entry[1].reason.partition(": ")
            reason = what if why in told_already else entry[1].reason
            by_reason.setdefault(reason, []).append(entry)
    for reason in list(by_reason):
        # `brand is not known: not in the input` is one more of `not in the input`.
        tail = reason.rpartition(": ")[2]
        if tail != reason and tail in by_reason and not view.verbose:
            by_reason[tail] += by_reason.pop(reason)
    told = sorted(by_reason.items(), key=lambda one: -len(one[1]))
    most = view.most(6)
    for reason, skipped in told[:most]:
        checks = list(dict.fromkeys(one.check for _, one in skipped))
        text = f"{len(skipped):,} x {reason or 'no reason given'}"
        yield from first_line(
            Status.SKIP,
            [Span(text), Span(f"  ({some(checks, view.most(3), more='')})", "dim")],
            view,
        )
    if len(told) > most:
        left = sum(len(skipped) for _, skipped in told[most:])
        text = f"{left:,} x {plural(len(told) - most, 'other reason')} (-v lists them)"
        yield from first_line(Status.SKIP, [Span(text)], view)


def _unanswered(report: Report, view: View) -> Iterator[Line]:
    """Tools without an answer, beside checks that could be judged."""
    alike: dict[str, list[str]] = {}
    for host in report.hosts:
        for text in _notes(host, view):
            alike.setdefault(text, []).append(host.host)
    most = view.most(6)
    for text, names in list(alike.items())[:most]:
        told = f"{brief(names, view)} {text}" if view.hosts else text
        yield from flow([Span(f"{'note':<7}", "dim")], [Span(told)], hang=7, width=view.width)
    if len(alike) > most:
        told = f"and {len(alike) - most:,} more (-v lists them)"
        yield from flow([Span(" " * 7)], [Span(told)], hang=7, width=view.width)


def _notes(host: HostReport, view: View) -> Iterator[str]:
    missing = [one for one in host.missing if not one.fault] if host.results else ()
    shown = {one.reason for one in host.results if one.status is Status.ERROR} if missing else ()
    for one in missing:
        matters = STATUS_OF_MISSING[one.kind] is Status.ERROR and one.kind != "no-tool"
        if one.text not in shown and (matters or view.verbose):
            yield f"{one.probe}: {one.text.removeprefix(f'{one.probe}: ')}"


def _hints(report: Report, view: View) -> Iterator[Line]:
    for hint in report.hints:
        yield from flow(
            [Span(f"{'next':<7}", "dim")], [Span(hint)], hang=7, width=view.width, advice=True
        )
