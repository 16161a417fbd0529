"""An incident ticket: verdict, what failed and what to do, the evidence folded away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.model import Evidence, Finding, Report, Status
from preflight.nodesets import fold
from preflight.printable import printable
from preflight.reports.changes import headline as changed
from preflight.reports.changes import rows
from preflight.reports.commands import Part, parts
from preflight.reports.groups import LONG, Group, bad, entries, headline, where
from preflight.reports.heat import heat_of
from preflight.reports.heat_text import heat_rows
from preflight.reports.matrix import kinds, order
from preflight.reports.silent import silences
from preflight.reports.tables import above, gridded, notes
from preflight.reports.wording import (
    ACTIONS,
    explain,
    plural,
    some,
    source,
    value,
    verdict,
    weight,
    when,
)
from preflight.units import format_duration

_HEADINGS = {
    Status.FAIL: "Failed",
    Status.ERROR: "Could not be determined",
    Status.WARN: "Warnings",
    Status.PASS: "Found in order",
}
# Backslash before what Markdown reads; entities for HTML, and for what a forge turns into a link
# or a mention (@name, #1, www., http://).
_MARKS = re.compile(r"([\\`*_\[\]#|~$])|^([-+=])|(?<=^\d)([.)])")
#: Lines of evidence in a ticket, and rows of a list; the JSON report has them all.
_MOST_EVIDENCE = 40
_MOST_ROWS = 12
#: A word that only a shell reads: a variable with its value, a pattern, a name with underscores.
_CODE = re.compile(r"((?<!\S)(?:\w+=\S*|\S*[\[$_]\S*)(?<![,;:.)]))")
_LINKS = re.compile(r"(?i)(?<=:)//|(?<=www)\.")


def escape(text: str) -> str:
    """Text from a host as Markdown shows it and does not obey it."""
    shown = _MARKS.sub(lambda match: f"\\{match.group()}", printable(text))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKS.sub(_entities, shown.replace("@", "&#64;"))


def _entities(match: re.Match[str]) -> str:
    return "".join(f"&#{ord(char)};" for char in match.group())


def code(text: str) -> str:
    """A code span that holds any text; not for tables, where `|` ends it."""
    shown = printable(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def prose(text: str) -> str:
    """Advice: commands, and words that look like a part of one, are code; the rest is escaped."""
    if "`" in text and not text.startswith("$ "):
        told = re.split(r"`([^`]+)`", text)
        return "".join(code(part) if at % 2 else _sentence(part) for at, part in enumerate(told))
    return "".join(_command(part) if part.command else _sentence(part.text) for part in parts(text))


def _command(part: Part) -> str:
    shown = part.text.rstrip(" :;")
    comment = f"   # {part.comment}" if part.comment else ""
    return f"{code(shown + comment)}{part.text[len(shown) :]}"


def _sentence(text: str) -> str:
    return "".join(
        code(part) if at % 2 else escape(part) for at, part in enumerate(_CODE.split(text))
    )


def render(report: Report, *, verbose: int, quiet: bool, facts: bool) -> Iterator[str]:
    """The ticket."""
    for line in _ticket(report):
        yield line + "\n"


def _ticket(report: Report) -> Iterator[str]:
    names = _brief([host.host for host in report.hosts])
    on = f" on {escape(names)}" if names else ""
    yield f"# {report.verdict.value}: preflight {escape(report.command)}{on}"
    yield ""
    yield f"**{escape(verdict(report))}**"
    yield ""
    told = (when(report.started_at), f"level {report.level}" if report.level else "",
            format_duration(report.elapsed_s))  # fmt: skip
    yield escape(", ".join((*filter(None, told), f"version {report.preflight}")))
    yield from [""] if report.overrides else []
    for one in report.overrides:
        yield f"- not the built-in value: {escape(f'{one.id}={one.value} ({one.source})')}"
    yield from _machines(report)
    yield from _matrix(report)
    yield from _changes(report)
    yield from _sections(report)
    if any(host.map for host in report.hosts):
        from preflight.reports.machine.ticket import machine_sections

        yield from machine_sections(report)
    for table in report.measurements:
        yield from _measured(table)
    yield from _not_checked(report)
    if report.hints:
        yield from ("", "## Next", "", *(f"- {prose(hint)}" for hint in report.hints))


def _machines(report: Report) -> Iterator[str]:
    if not report.hosts:
        return
    yield from ("", "| host | verdict | hardware |", "|---|---|---|")
    alike: dict[tuple[Status, str], list[str]] = {}
    for host in report.hosts:
        silent = [] if host.summary else silences([host])
        summary = host.summary or "; ".join(one.title or one.texts[0][0] for one in silent)
        alike.setdefault((host.verdict, summary), []).append(host.host)
    for (status, summary), hosts in alike.items():
        yield f"| {escape(_brief(hosts))} | {status.value} | {escape(summary)} |"


def _matrix(report: Report) -> Iterator[str]:
    """Of several hosts a row for each kind of them, the worst first."""
    rows = kinds(report) if len(report.hosts) > 1 else []
    columns = order(rows)
    if not columns:
        return
    yield from (
        "",
        f"| hosts | {' | '.join(map(escape, columns))} |",
        "|---" * len(columns) + "|---|",
    )
    for row in rows[:_MOST_ROWS]:
        marks = [row.marks[name].value if name in row.marks else "-" for name in columns]
        told = marks if row.marks else ["gave no answer", *([""] * (len(columns) - 1))]
        yield f"| {escape(_brief(row.hosts))} | {' | '.join(told)} |"
    if len(rows) > _MOST_ROWS:
        yield from ("", f"and {len(rows) - _MOST_ROWS} more kinds, in the JSON report")


def _changes(report: Report) -> Iterator[str]:
    if report.changes is None:
        return
    yield from ("", "## What changed", "", escape(changed(report.changes)), "")
    for note in report.changes.notes:
        yield f"- {escape(note)}"
    many = len(report.hosts) > 1
    for row in rows(report.changes, hosts=many, most=_MOST_EVIDENCE, more="in the JSON report"):
        told = ", ".join(filter(None, (row.about, row.at, row.told)))
        yield f"- **{row.kind}** {escape(told)}"


def _brief(names: Sequence[str]) -> str:
    folded = fold(names)
    return folded if len(folded) <= LONG else plural(len(names), "host")


def _sections(report: Report) -> Iterator[str]:
    groups, many = bad(report), len(report.hosts) > 1
    for status, heading in _HEADINGS.items():
        parts = [list(_finding(one)) for one in report.findings if one.status is status]
        parts += [list(_group(one, many)) for one in groups if one.status is status]
        if status is Status.ERROR:
            parts += _silent(report)
        if parts:
            yield from ("", f"## {heading}")
        for part in parts:
            yield ""
            yield from part


def _group(group: Group, many: bool) -> Iterator[str]:
    name = group.checks[0] if len(group.checks) == 1 else f"{len(group.checks)} checks"
    yield f"### {escape(name)} on {escape(where(group.places, hosts=many, brief=True))}"
    yield ""
    reasons = list(dict.fromkeys(one.reason for one in group.variants if one.reason))
    told = [escape(headline(group)), prose(group.title), *map(escape, reasons)]
    if group.status is Status.ERROR:
        told = list(map(escape, reasons)) or ["could not be determined"]
    yield "; ".join(part for part in told if part).strip()
    yield ""
    if group.status is Status.ERROR:
        if len(group.checks) > 1:
            yield f"- checks: {escape(', '.join(group.checks))}"
        yield from _advice("", group.advice)
    else:
        yield from _advice(ACTIONS[group.action], group.advice)
        yield from [f"- **Why:** {prose(group.why)}"] if group.why else []
    yield from _each(group, many)
    yield from [f"- **Follows from:** {escape(group.cause)}"] if group.cause else []
    more = explain(group.status, group.checks, group.runbook)
    yield from [f"- **More:** {code(more)}"] if more else []
    yield from _evidence([(host if many else "", one) for host, one in group.evidence])


def _each(group: Group, many: bool) -> Iterator[str]:
    told = []
    for variant in group.variants if len(group.variants) > 1 else ():
        measured = value(variant.measured, variant.unit, unlike=group.expected)
        told.append(f"{measured} at {where(variant.places, hosts=many, brief=True)}")
    devices = [
        f"{where(places, hosts=many, brief=True)} {device}"
        for device, places in group.by_device.items()
    ]
    for label, texts in (("Each", told), ("Device", devices)):
        if texts:
            yield f"- **{label}:** {escape(some(texts, 40, more='in the JSON report'))}"


def _advice(action: str, fix: Sequence[str]) -> Iterator[str]:
    if action or fix:
        yield f"- **Do:** {prose(action or fix[0])}"
    for step in fix if action else fix[1:]:
        yield f"  - {prose(step)}"


def _finding(finding: Finding) -> Iterator[str]:
    told = [escape(part) for part in (finding.subject, weight(finding)) if part]
    yield f"### {escape(finding.finding)}" + "".join(f", {part}" for part in told)
    yield ""
    if finding.text:
        yield from (escape(finding.text), "")
    for looked in finding.against:
        yield f"- held against it: {escape(looked)}"
    yield from _advice("", finding.fix)
    yield from _evidence([("", one) for one in finding.evidence])
    if finding.runbook:
        yield f"- more: `preflight explain {finding.runbook}`"


def _silent(report: Report) -> Iterator[list[str]]:
    for one in silences(report.hosts):
        names = escape(_brief(one.hosts))
        told = [f"{_brief(at)}: {text}" if len(one.told) > 1 else text for text, at in one.texts]
        lines = [f"- {escape(text)}" for text in told[:_MOST_ROWS]]
        if len(told) > _MOST_ROWS:
            lines.append(f"- and {len(told) - _MOST_ROWS} more, in the JSON report")
        title = f"{names}: {escape(one.title)}" if one.title else f"Nothing is known of {names}"
        yield [f"### {title}", "", *lines, *_advice("", one.steps)]


def _evidence(shown: Sequence[tuple[str, Evidence]]) -> Iterator[str]:
    if not shown:
        return
    lines = [
        printable(f"{host} {source(one)}  {one.text or one.field}".strip()) for host, one in shown
    ]
    if len(lines) > _MOST_EVIDENCE:
        lines[_MOST_EVIDENCE:] = [
            f"and {len(lines) - _MOST_EVIDENCE} more lines, in the JSON report"
        ]
    yield from ("", "<details><summary>Evidence</summary>", "")
    yield from (*fenced(lines, "text"), "", "</details>")


def fenced(lines: Sequence[str], language: str) -> Iterator[str]:
    """Lines as a block of code, whatever they hold."""
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    yield from (f"{fence}{language}", *lines, fence)


def _measured(table: dict[str, Any]) -> Iterator[str]:
    """One entry of `measurements` as a table."""
    heading, columns, grid = gridded(table)
    below = notes(table)
    if (heat := heat_of(table)) is not None:
        columns, grid, below = heat_rows(heat)
    yield from ("", f"## {escape(heading)}", "")
    yield from (each for said in above(table) for each in (escape(said), ""))
    yield f"| {' | '.join(map(escape, columns))} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(map(escape, row))} |" for row in grid)
    yield from (each for said in below for each in ("", escape(said)))


def _not_checked(report: Report) -> Iterator[str]:
    skipped: dict[str, list[str]] = {}
    for _, result in entries(report):
        if result.status is Status.SKIP:
            skipped.setdefault(result.reason or "no reason given", []).append(result.check)
    if skipped:
        yield from ("", "## Not checked", "")
    for reason, checks in skipped.items():
        yield f"- {len(checks)} x {escape(reason)}: {escape(', '.join(dict.fromkeys(checks)))}"
