"""GPU, switch, link and host errors, from the kernel log in any of its forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.kernel import KernelEvent, KernelLog, Start, Sxid, Unread, Xid
from preflight.probes.kernel_log_kinds import NEEDLES
from preflight.probes.kernel_log_lines import Clock, Line, read_line
from preflight.probes.kernel_log_messages import Record, key_of, record_of, speaks_of_an_xid
from preflight.probes.kernel_log_times import (
    before_boots,
    boots,
    driver_loads,
    relative_times,
    through_new_year,
)
from preflight.probes.kernel_log_union import told_twice
from preflight.probes.spec import probe

#: The most records of one log. The last thousand places are for faults not seen before, so that
#: a flood of one message hides nothing; of the flood the newest is kept.
EVENTS_MAX = 20_000
_REPEATS_MAX = EVENTS_MAX - 1000
#: The last boots of a log; more are no record of use.
_STARTS_MAX = 50
#: Lines in an unknown form that are told; more say no more.
_UNREAD_MAX = 20
#: Characters of such a line.
_UNREAD_TEXT = 200
#: A line is read no further than this.
_LINE_MAX = 64 * 1024
#: How far above a line its GPU may be named.
_ABOVE = 1000
#: How many lines at either end are looked at for a time.
_EDGE = 1000
#: dmesg that begins later than this after boot has lost its oldest lines: the first message,
#: the kernel's version, is written before the clock runs.
_BOOT_BEGINS_S = 1.0
#: Beside the kernel, whose clean log is worth a verdict of its own: on the switches.
_FABRIC = "nv-fabricmanager"

_DENIED = (
    "You are currently not seeing messages from other users", "No journal files were",
    "-- No entries --", "read kernel buffer failed", "klogctl: Operation not permitted",
)  # fmt: skip


@probe("dmesg", ["dmesg"], timeout_s=10, needs_root=True)
def dmesg(text: str) -> KernelLog:
    """The kernel's ring buffer."""
    return parse_kernel_log(text, "dmesg")


@probe(
    "journalctl",
    ["journalctl", "-k", "-b", "-o", "short-iso-precise", "--no-pager"],
    timeout_s=20,
    needs_root=True,
)
def journalctl(text: str) -> KernelLog:
    """The kernel's messages of this boot, as the journal kept them."""
    return parse_kernel_log(text, "journalctl")


@probe("kernel-log", ["dmesg"], timeout_s=10)
def kernel_log(text: str) -> KernelLog:
    """Recorded text of any form; never asked live."""
    return parse_kernel_log(text, "kernel-log")


class _Text(Struct):
    """The log's text, with the times that its lines alone do not tell."""

    text: str
    relative: dict[int, float]

    def line_at(self, start: int) -> Line:
        """The line that begins there."""
        line = read_line(self.raw(start))
        if line.clock == "relative":
            at_s = self.relative.get(start)
            line = replace(line, at_s=at_s, clock="none" if at_s is None else "yearless")
        return line

    def raw(self, start: int) -> str:
        end = self.text.find("\n", start, start + _LINE_MAX)
        return self.text[start : end if end >= 0 else start + _LINE_MAX].rstrip("\r")

    def lines(self) -> Iterator[Line]:
        """All of them, in order."""
        at = 0
        while at < len(self.text):
            yield self.line_at(at)
            at = self.text.find("\n", at) + 1 or len(self.text)

    def last_time_before(self, at: int) -> float | None:
        """The time of the nearest line above that has one."""
        for _ in range(_EDGE):
            at = self.text.rfind("\n", 0, max(at - 1, 0)) + 1
            if (line := self.line_at(at)).at_s is not None:
                return line.at_s
            if at == 0:
                break
        return None


def parse_kernel_log(text: str, probe: str = "") -> KernelLog:
    """Every event of the log. ParseError where nothing in it was written by the kernel."""
    log, kept = _Text(text, relative_times(text)), _Kept()
    for at, number in _hits(text):
        line = log.line_at(at)
        record, secondary = record_of(line, number, text[max(0, at - _ABOVE) : at])
        if record is not None:
            kept.keep(record, at, line, secondary)
        elif len(kept.unread) < _UNREAD_MAX and speaks_of_an_xid(line, raw := log.raw(at)):
            kept.unread.append(Unread(number, raw.strip()[:_UNREAD_TEXT], probe))
    writers = _writers(log, kept)
    edges = [_edge(log, first) for first in (True, False)]
    if not (kept.records or kept.seconds or kept.unread):
        if edges == [None, None]:
            raise ParseError(_why_nothing(text))
        if not writers & {"kernel", _FABRIC}:
            raise ParseError(_no_kernel(writers))
    return _on_one_axis(log, kept, edges, writers, probe)


def _why_nothing(text: str) -> str:
    denied = next((words for words in _DENIED if words in text), None)
    if denied:
        return f"the kernel log may not be read by this user, it says {denied!r}: try with --sudo"
    if not text.strip():
        return "the kernel log is empty: try with --sudo"
    return "expected a kernel log as dmesg, journalctl or syslog write it; no line has that form"


def _no_kernel(writers: set[str]) -> str:
    others = ", ".join(sorted(writers)[:5])
    told = f", only of {others}" if others else ""
    return f"it holds no line of the kernel{told}: give `sudo dmesg` or `journalctl -k`"


def _writers(log: _Text, kept: _Kept) -> set[str]:
    """Whose lines there are; the kernel alone as soon as one of its is seen."""
    if "kernel" in kept.writers:
        return {"kernel"}
    found: set[str] = set(kept.writers)
    for line in log.lines():
        if line.known:
            found.add(line.program)
            if line.program == "kernel":
                return {"kernel"}
    return found


def _hits(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins that may hold an event, and its number from 1."""
    starts = set()
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
        yield start, number


def _edge(log: _Text, first: bool) -> Line | None:
    """The first or last line whose form is known, one with a time if there is one."""
    text, known = log.text, None
    at = 0 if first else len(text.rstrip("\n"))
    for _ in range(_EDGE):
        start = at if first else text.rfind("\n", 0, at) + 1
        line = log.line_at(start)
        if line.at_s is not None:
            return line
        known = known or (line if line.known else None)
        at = text.find("\n", start) + 1 if first else start - 1
        if at <= 0:
            break
    return known


class _Found(Struct):
    """A record, where its line begins, and the line's clock."""

    record: Record
    start: int
    clock: Clock


class _Kept(Struct):
    """Records, bounded: see EVENTS_MAX; who wrote them; and what could not be read."""

    records: list[_Found] = field(default_factory=list)
    newest: dict[tuple[str, ...], int] = field(default_factory=dict)
    seconds: dict[tuple[str, ...], _Found] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)
    truncated: bool = False

    def keep(self, record: Record, start: int, line: Line, secondary: bool) -> None:
        key, found = key_of(record), _Found(record, start, line.clock)
        self.writers.add(line.program)
        if secondary:
            if len(self.seconds) < EVENTS_MAX:
                self.seconds.setdefault(key, found)
        elif len(self.records) < (EVENTS_MAX if key not in self.newest else _REPEATS_MAX):
            self.newest[key] = len(self.records)
            self.records.append(found)
        elif key in self.newest:
            self.truncated = True
            self.records[self.newest[key]] = found
        else:
            self.truncated = True

    def in_order(self) -> list[_Found]:
        """All of them, and the secondary lines of faults that no first line tells."""
        alone = [found for key, found in self.seconds.items() if key not in self.newest]
        return sorted(self.records + alone, key=_start)


def _start(found: _Found) -> int:
    return found.start


def _on_one_axis(
    log: _Text, kept: _Kept, edges: Sequence[Line | None], writers: set[str], probe: str
) -> KernelLog:
    """The log with all times on the axis that most of its lines have; the others have none."""
    text, found = log.text, kept.in_order()
    clocks: list[Clock] = [one.clock for one in found]
    clocks += [edge.clock for edge in edges if edge]
    dated = Counter(clock for clock in clocks if clock != "none").most_common(1)
    axis: Clock = dated[0][0] if dated else "none"
    first, last = (edge.at_s if edge and edge.clock == axis else None for edge in edges)
    begins_late = axis == "boot" and first is not None and first > _BOOT_BEGINS_S
    times = [one.record.at_s if one.clock == axis else None for one in found]
    fresh = boots(text, log.line_at)[-_STARTS_MAX:] if found else []
    if axis == "yearless":
        first, *times, last = through_new_year([first, *times, last])
    elif axis == "boot" and fresh:
        ends = [log.last_time_before(at) for at in fresh]
        starts = [0, *(one.start for one in found)]
        first, *times = before_boots(starts, fresh, [first, *times], ends)
    known = [at for at in times if at is not None]
    first = min(known, default=None) if first is None else first
    last = max(known, default=None) if last is None else last
    records = [
        replace(one.record, at_s=at, probe=probe) for one, at in zip(found, times, strict=True)
    ]
    again = told_twice(records, [one.clock not in (axis, "none") for one in found])
    records = [one for at, one in enumerate(records) if at not in again]
    return KernelLog(
        lines=text.count("\n") + (not text.endswith("\n")),
        first_at_s=first,
        last_at_s=last,
        clock="wall" if axis == "yearless" else axis,
        xids=tuple(one for one in records if isinstance(one, Xid)),
        sxids=tuple(one for one in records if isinstance(one, Sxid)),
        events=tuple(one for one in records if isinstance(one, KernelEvent)),
        unread=tuple(kept.unread),
        starts=tuple(_starts(log, fresh, axis, probe)) if found else (),
        writers=tuple(sorted(writers)),
        truncated=kept.truncated or begins_late,
        probe=probe,
    )


def _starts(log: _Text, fresh: Sequence[int], axis: Clock, probe: str) -> Iterator[Start]:
    loads = driver_loads(log.text, log.line_at)[-_STARTS_MAX:]
    for what, places in (("boot", fresh), ("driver", loads)):
        for at in places:
            line = log.line_at(at)
            wall = line.at_s if axis == line.clock == "wall" else None
            yield Start(what, log.text.count("\n", 0, at) + 1, wall, probe)
