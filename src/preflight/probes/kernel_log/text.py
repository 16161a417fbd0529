"""The text of a kernel log: its lines, and what a line alone does not tell."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from preflight.probes.kernel_log.gaps import Gaps, gaps
from preflight.probes.kernel_log.kinds import NEEDLES
from preflight.probes.kernel_log.lines import Line, read_line
from preflight.probes.kernel_log.times import relative_times

#: A line is read no further than this.
LINE_MAX = 64 * 1024
#: How many lines at either end, and above a boot, are looked at for a time.
EDGE = 1000


class LogText(Struct, frozen=True):
    """A log's text. Places in it are where a line begins."""

    text: str
    relative: dict[int, float]  # seconds of a line of `dmesg -H`, by its place
    gaps: Gaps

    def line_at(self, start: int) -> Line:
        """The line that begins there."""
        return self.read(start, self.raw(start))

    def read(self, start: int, raw: str) -> Line:
        """The same, its text at hand."""
        line = read_line(raw)
        if line.clock == "relative":
            at_s = self.relative.get(start)
            line = replace(line, at_s=at_s, clock="none" if at_s is None else "yearless")
        return line

    def raw(self, start: int) -> str:
        """Its text without the end."""
        end = self.text.find("\n", start, start + LINE_MAX)
        return self.text[start : end if end >= 0 else start + LINE_MAX].rstrip("\r")

    def number(self, start: int) -> int:
        """Its number in the whole log, from 1."""
        return self.text.count("\n", 0, start) + 1 + self.gaps.before(start)

    def count(self) -> int:
        """How many lines the whole log has."""
        text = self.text
        return text.count("\n") + (not text.endswith("\n")) + self.gaps.before(len(text))

    def lines(self) -> Iterator[Line]:
        """All of them, in order."""
        at = 0
        while at < len(self.text):
            yield self.line_at(at)
            at = self.text.find("\n", at) + 1 or len(self.text)

    def hits(self) -> Iterator[tuple[int, int]]:
        """Place and number of each line that may hold an event."""
        text, starts = self.text, set()
        for needle in NEEDLES:
            at = text.find(needle)
            while at >= 0:
                starts.add(text.rfind("\n", 0, at) + 1)
                end = text.find("\n", at)
                at = text.find(needle, end) if end >= 0 else -1
        number, before = 1, 0
        for start in sorted(starts):
            number += text.count("\n", before, start)
            before = start
            yield start, number + self.gaps.before(start)

    def ends(self, most: int) -> list[int]:
        """Where the first and the last lines begin, so many of each."""
        text, found, at = self.text, list[int](), 0
        end = len(text.rstrip("\n"))
        for _ in range(most):
            found += [at, end] if (end := text.rfind("\n", 0, max(end, 0)) + 1) else [at, 0]
            at, end = text.find("\n", at) + 1, end - 1
        return found

    def last_time_before(self, at: int) -> float | None:
        """The time of the nearest line above that has one."""
        for _ in range(EDGE):
            at = self.text.rfind("\n", 0, max(at - 1, 0)) + 1
            if (line := self.line_at(at)).at_s is not None:
                return line.at_s
            if at == 0:
                break
        return None

    def edge(self, first: bool) -> Line | None:
        """The first or last line whose form is known, one with a time if there is one."""
        text, known = self.text, None
        at = 0 if first else len(text.rstrip("\n"))
        for _ in range(EDGE):
            start = at if first else text.rfind("\n", 0, at) + 1
            line = self.line_at(start)
            if line.at_s is not None:
                return line
            known = known or (line if line.known else None)
            at = text.find("\n", start) + 1 if first else start - 1
            if at <= 0:
                break
        return known


def log_text(text: str) -> LogText:
    """The text with what its lines alone do not tell."""
    return LogText(text, relative_times(text), gaps(text))
