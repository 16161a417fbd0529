"""Reports that were stored: to be shown again, or to be compared with."""

from __future__ import annotations

import stat
from pathlib import Path
from shlex import quote

from preflight.cli.options import Options
from preflight.errors import UsageError
from preflight.model import Report
from preflight.pasted import MAX_BYTES

_MADE = "a report is made with --save report.json"


def stored(path: Path) -> Report:
    """A report in JSON; UsageError for anything else, and says what it is."""
    from preflight.reports.json import read

    data = content(path, _MADE)
    _refuse_capture(path, data)
    return read(data, str(path))


def content(path: Path, hint: str, *, most: int = MAX_BYTES) -> bytes:
    """What stands in a file, or comes through a pipe; UsageError for what has no end, is too large
    or cannot be read."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
            raise UsageError(f"{path} is no plain file", hint)
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise UsageError(f"there is no {path}", hint) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint) from None
    if len(data) > most:
        raise UsageError(f"{path} is over {most >> 20} MiB", hint)
    return data


def _refuse_capture(path: Path, data: bytes) -> None:
    """A capture holds answers, of which a report is still to be made."""
    from preflight.capture import is_capture

    if is_capture(data):
        command = f"preflight run --from {quote(str(path))} --save report.json"
        raise UsageError(f"{path} is a capture, not a report", command)


def earlier(options: Options) -> Report | None:
    """The report of --against, read before the work starts; none without it, or for a lock."""
    if options.against is None:
        return None
    from preflight.cli.locking import is_lock

    return None if is_lock(options) else stored(Path(options.against))


def earlier_report(options: Options) -> Report | None:
    """The same for a command that compares with nothing else."""
    found = earlier(options)
    if found is None and options.against is not None:
        raise UsageError(f"{options.against} is a lock, not a report",
                         f"preflight versions --against {quote(options.against)}")  # fmt: skip
    return found


def changed_since(report: Report, then: Report | None) -> Report:
    """The report with what changed since the earlier one, where there is one."""
    if then is not None:
        from preflight.reports.compare import compare

        report.changes = compare(report, then)
    return report
