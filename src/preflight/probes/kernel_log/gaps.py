"""Lines left out of a log too large to be held: a mark in their place, so that all others count on.

The mark begins with a control character, which the texts that are read have no more.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

#: What a mark begins with.
GAP = "\x1d"
_MARK = re.compile(
    rf"^{GAP}(\d{{1,12}}) lines left out, (\d{{1,12}}) events of them$", re.MULTILINE
)


def mark(lines: int, events: int = 0) -> str:
    """The line that stands for so many; `events`: those that were too many to be kept."""
    return f"{GAP}{lines} lines left out, {events} events of them\n"


def skipped(line: str) -> int:
    """How many lines a mark stands for; 0 where the line is none."""
    found = _MARK.match(line) if line.startswith(GAP) else None
    return int(found[1]) if found else 0


class Gaps(Struct, frozen=True):
    """Where a text leaves lines out. Lines count from 1, `at` are places in the text."""

    places: tuple[int, ...] = ()  # where each mark begins
    marks: tuple[int, ...] = ()  # which line of the text it is
    left_out: tuple[int, ...] = ()  # lines that the text lacks up to and with it
    events: int = 0

    def before(self, at: int) -> int:
        """How many lines more than the text has there are before this place of it."""
        found = bisect_right(self.places, at)
        return self.left_out[found - 1] if found else 0

    def line_of_text(self, line: int) -> int:
        """Which line of the text line `line` of the whole log is; 0 where it was left out."""
        before = 0
        for mark, lines in zip(self.marks, self.left_out, strict=True):
            if line <= mark + lines:
                return line - before if line < mark + before else 0
            before = lines
        return line - before


def gaps(text: str) -> Gaps:
    """All marks of a text."""
    if GAP not in text:
        return Gaps()
    found = list(_found(text))
    return Gaps(
        tuple(place for place, _, _, _ in found),
        tuple(line for _, line, _, _ in found),
        tuple(lines for _, _, lines, _ in found),
        sum(events for _, _, _, events in found),
    )


def _found(text: str) -> Iterator[tuple[int, int, int, int]]:
    lines, line, before = 0, 1, 0
    for match in _MARK.finditer(text):
        line += text.count("\n", before, match.start())
        before = match.start()
        lines += int(match[1]) - 1  # the mark itself is a line
        yield before, line, lines, int(match[2])
