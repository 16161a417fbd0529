"""What a benchmark asked for and what it got, as a table."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One measurement beside its target; `reached` and `target` are in the unit they name."""

    what: str
    reached: str
    target: str
    met: bool


def show(title: str, rows: list[Row]) -> int:
    """Print the table; the exit status: 1 where a target is missed, otherwise 0."""
    cells = [("", "reached", "target", "")]
    cells += [(row.what, row.reached, row.target, "met" if row.met else "MISSED") for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    print(title)
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  " + "   ".join(padded).rstrip())
    print(flush=True)
    return 0 if all(row.met for row in rows) else 1
