"""The standard streams where the caller closed them (`<&-`, `>&-`, a daemon's child)."""

from __future__ import annotations

import os
import sys

from preflight.errors import UsageError


def hold_streams() -> None:
    """Put the null device where standard input or error is closed, lest a file that is opened gets
    their number. Without standard output there is no report: that ends the command."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        raise UsageError(
            "standard output is closed: there is no place for a report",
            ">/dev/null where only the exit status or --save counts",
        )
