"""The end of every command that has a report: shown, saved, and told by the exit status."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from msgspec import Struct

from preflight.cli.asking import Captures
from preflight.cli.exit import Exit, exit_status
from preflight.cli.options import Options
from preflight.cli.saving import Targets
from preflight.cli.streams import Streams
from preflight.model import Report, Status
from preflight.reports import RENDERERS, render


class Told(Struct):
    """What stands on standard output in place of the report; `status` where it has its own."""

    lines: list[str]
    status: int | None = None


def shown(report: Report, options: Options, captures: Captures | None = None) -> Report:
    """The report as it may be shown, with the same stand-ins as the captures written beside it.
    Results hold no secrets; facts may."""
    if not options.redact and not any(host.facts for host in report.hosts):
        return report
    from preflight.redact.redactor import redact_report

    redactor = (captures or Captures([])).stand_ins()
    return redact_report(report, redactor, full=options.redact)


def finish(
    report: Report, options: Options, streams: Streams, targets: Targets,
    captures: Captures | None = None, told: Told | None = None,
) -> int:  # fmt: skip
    """Print the report, or what is told in its place, write the files, and say by exit status how
    it went."""
    if told:
        streams.report(told.lines)
    elif options.format == "text":
        from preflight.reports.text import lines

        shown_lines = lines(
            report, verbose=options.verbose, quiet=options.quiet, box=streams.draws_boxes
        )
        streams.report(map(streams.paint, shown_lines))
    else:
        streams.report(render(report, options.format, facts=options.facts))
    failed = [*targets.write(report, facts=options.facts), *(captures.failed if captures else ())]
    for path in [*targets.written, *(captures.written if captures else ())]:
        streams.note(f"saved {path}")
    for error in failed:
        streams.note(f"error: {error.what}")
        streams.note(f"hint: {error.hint}")
    if told and told.status is not None:
        return told.status
    status = exit_status(
        report.verdict,
        warned=report.counts.warn > 0 or any(one.status is Status.WARN for one in report.findings),
        strict=options.strict,
        exit_zero=options.exit_zero,
    )
    return Exit.COULD_NOT_START if failed and status is Exit.OK else status


def tell_unwritten(command: str, targets: Targets, saved: Sequence[Path], streams: Streams) -> None:
    """Of an interrupted run there is no report, and no file of one: say so, and how to get it."""
    if saved:
        streams.note(f"what came so far: preflight {command} --from {quote(str(saved[0]))}")
    for target in targets.each:
        again = f"preflight {command} --from {saved[0]} --save {target.path}"
        how = f"; of what was saved: {again}" if saved and target.format in RENDERERS else ""
        streams.note(f"not written: {target.path}{how}")
