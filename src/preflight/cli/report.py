"""preflight report: stored reports in another form, several as one, or what changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from preflight.cli.finishing import finish, shown
from preflight.cli.options import Options
from preflight.cli.saving import opened_targets
from preflight.cli.stored import changed_since, earlier_report, stored
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.model import Report
from preflight.reports import RENDERERS
from preflight.reports.merge import merge
from preflight.transports.recorded import INPUT


def run(options: Options, streams: Streams) -> int:
    """Read, merge where there are several, print and save; the exit status is the verdict's."""
    if not options.reports:
        raise UsageError("no report given", "preflight report report.json --format markdown")
    if options.format not in RENDERERS:
        raise UsageError(
            f"--format {options.format!r} is no choice", f"one of {', '.join(RENDERERS)}"
        )
    then = earlier_report(options)
    reports = [stored(Path(name)) for name in options.reports]
    if len(reports) > 1:
        _tell_apart(reports, options.reports)
    report = reports[0] if len(reports) == 1 else merge(reports)
    report = changed_since(report, then)
    options.facts = True  # what the reports hold is kept
    drawn = any(host.map for host in report.hosts)
    drawn = drawn or any({"heat", "picture"} & set(table) for table in report.measurements)
    with opened_targets(options, drawn=drawn) as targets:
        return finish(shown(report, options), options, streams, targets)


def _tell_apart(reports: Sequence[Report], names: Sequence[str]) -> None:
    """A host that was never named is called by its report: two of them are not one host."""
    for report, name in zip(reports, names, strict=True):
        for host in report.hosts:
            if host.host == INPUT:
                host.host = f"{INPUT} of {Path(name).name}"
