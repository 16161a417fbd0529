"""What each exit status means."""

from __future__ import annotations

from enum import IntEnum

from preflight.model import Status


class Exit(IntEnum):
    """0 PASS or WARN, 1 something failed, 2 could not start, 3 undetermined, 70 a bug in preflight,
    130 interrupted."""

    OK = 0
    FAILED = 1
    COULD_NOT_START = 2
    UNDETERMINED = 3
    BUG = 70
    INTERRUPTED = 130


_OF_VERDICT = {
    Status.PASS: Exit.OK,
    Status.WARN: Exit.OK,
    Status.FAIL: Exit.FAILED,
    Status.ERROR: Exit.UNDETERMINED,
    Status.SKIP: Exit.UNDETERMINED,  # nothing was judged at all
}


def exit_status(verdict: Status, *, warned: bool, strict: bool, exit_zero: bool) -> Exit:
    """The exit status of a finished report. `warned`: there is a WARN, verdict or not."""
    if exit_zero:
        return Exit.OK
    if strict and warned:
        return Exit.FAILED
    return _OF_VERDICT[verdict]
