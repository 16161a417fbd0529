"""Maps and advice in the ticket: trees and tables as code, exports to paste, snippets folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.model import Advice, Report, Snippet
from preflight.nodesets import fold
from preflight.printable import printable
from preflight.reports.layout import plain
from preflight.reports.machine.placing import export_lines, is_some, notes, seat_lines
from preflight.reports.machine.sections import MOST, Machine, drawn, map_lines
from preflight.reports.markdown import escape, fenced
from preflight.reports.silent import machines

_COLUMNS = 100
#: In what language a snippet of a kind is written; the others are for a shell.
_LANGUAGES = {"mesh": "python", "deepspeed": "json"}


def machine_sections(report: Report) -> Iterator[str]:
    """A section for each different machine."""
    found = drawn(report)
    many = len(machines(report.hosts)) > 1
    for one in found[:MOST]:
        yield from _machine(one, many)
    if found[MOST:]:
        hosts = sum(len(one.hosts) for one in found[MOST:])
        told = f"and {len(found) - MOST} more kinds of machine on {hosts} hosts"
        yield from ("", f"{told}, in the JSON report")


def _machine(machine: Machine, many: bool) -> Iterator[str]:
    on = f" of {escape(machine.name)}" if many else ""
    yield from ("", f"## Topology{on}", "")
    lines = [plain(line).rstrip() for line in map_lines(machine.map, width=_COLUMNS)]
    yield from fenced(lines, "text")
    if is_some(machine.advice):
        yield from ("", "### How to start a job")
    yield from _advice(machine.advice)


def _advice(advice: Advice) -> Iterator[str]:
    yield from [""] if advice.groups else []
    for group in advice.groups:
        yield f"- **group {escape(fold(group.members))}** {escape(group.why)}"
    yield from _block([plain(line) for line in seat_lines(advice.seats, _COLUMNS)], "text")
    yield from _block(list(export_lines(advice.exports)), "sh")
    told = notes(advice)
    yield from [""] if told else []
    yield from (f"- {escape(text)}" for text in told)
    for snippet in advice.snippets:
        yield from _snippet(snippet)


def _block(lines: Sequence[str], language: str) -> Iterator[str]:
    if lines:
        yield from ("", *fenced(lines, language))


def _snippet(snippet: Snippet) -> Iterator[str]:
    lines = [printable(line) for line in snippet.text.splitlines()]
    yield from ("", f"<details><summary>{escape(snippet.kind)}</summary>", "")
    yield from (*fenced(lines, _LANGUAGES.get(snippet.kind, "sh")), "", "</details>")
