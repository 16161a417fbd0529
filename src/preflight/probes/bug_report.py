"""Whether a report of nvidia-bug-report.sh is whole: it closes with a line of its own."""

from __future__ import annotations

from preflight.errors import ParseError
from preflight.facts.host import BugReport
from preflight.model import Missing, Raw
from preflight.printable import printable
from preflight.probes.spec import probe

#: The first and the last line of nvidia-bug-report.sh, of all its versions.
BEGINS = "Start of NVIDIA bug report log file."
ENDS = "End of NVIDIA bug report log file."


@probe("bug-report", ["nvidia-bug-report.sh"], timeout_s=600)
def bug_report(text: str) -> BugReport:
    """Never asked of a host: what stands in a report is read as the answers that it holds."""
    start = text.find(BEGINS)
    if start < 0:
        raise ParseError(f"expected {BEGINS!r}", 1)
    line = text.count("\n", 0, start) + 1
    whole = ENDS in text[start:]
    last = printable(text.rstrip().rpartition("\n")[2][:60])
    cut = f"nvidia-bug-report.log ends early, with {last!r}: what stood behind it is not known"
    return BugReport(whole or Missing("unreadable", cut), line, "bug-report")


def bug_report_of(text: str, source: str) -> Raw | None:
    """Of a report the lines that this probe reads; None where the text is none."""
    start = text.find(BEGINS)
    if start < 0:
        return None
    last = ENDS if ENDS in text[start:] else text.rstrip().rpartition("\n")[2][:200]
    line = text.count("\n", 0, start)
    return Raw("", "bug-report", stdout=f"{BEGINS}\n{last}\n", source=source, line_offset=line)
