"""Reports that were stored: to be shown again, or to be compared with."""

from __future__ import annotations

from pathlib import Path

from preflight.cli.options import Options
from preflight.errors import UsageError
from preflight.model import Report


def stored(path: Path) -> Report:
    """A report in JSON; UsageError for anything else, and says what it is."""
    from preflight.reports.json import read

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", "a report is made with --save report.json") from None
    return read(text, str(path))


def earlier(options: Options) -> Report | None:
    """The report of --against, read before the work starts; none without it."""
    return None if options.against is None else stored(Path(options.against))


def changed_since(report: Report, then: Report | None) -> Report:
    """The report with what changed since the earlier one, where there is one."""
    if then is not None:
        from preflight.reports.compare import compare

        report.changes = compare(report, then)
    return report
