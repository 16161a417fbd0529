"""GPU, switch, link and host errors, from the kernel log in any of its forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.kernel import KernelEvent, KernelLog, Sxid, Xid
from preflight.probes.kernel_log_lines import YEAR_S, Clock, Line, read_line
from preflight.probes.kernel_log_messages import NEEDLES, Record, key_of, record_of
from preflight.probes.spec import probe

#: The most records of one log. The last thousand places are for faults not seen before, so that
#: a flood of one message hides nothing; of the flood the newest is kept.
EVENTS_MAX = 20_000
_REPEATS_MAX = EVENTS_MAX - 1000
#: A line is read no further than this.
_LINE_MAX = 64 * 1024
#: How far above a line its GPU may be named.
_ABOVE = 1000
#: How many lines at either end are looked at for a time.
_EDGE = 1000
#: dmesg that begins later than this after boot has lost its oldest lines: the first message,
#: the kernel's version, is written before the clock runs.
_BOOT_BEGINS_S = 1.0

_DENIED = (
    "You are currently not seeing messages from other users", "No journal files were",
    "-- No entries --", "read kernel buffer failed", "klogctl: Operation not permitted",
)  # fmt: skip


@probe("dmesg", ["dmesg"], timeout_s=10, needs_root=True)
def dmesg(text: str) -> KernelLog:
    """The kernel's ring buffer."""
    return replace(parse_kernel_log(text), probe="dmesg")


@probe(
    "journalctl",
    ["journalctl", "-k", "-b", "-o", "short-iso-precise", "--no-pager"],
    timeout_s=20,
    needs_root=True,
)
def journalctl(text: str) -> KernelLog:
    """The kernel's messages of this boot, as the journal kept them."""
    return replace(parse_kernel_log(text), probe="journalctl")


@probe("kernel-log", ["dmesg"], timeout_s=10)
def kernel_log(text: str) -> KernelLog:
    """Recorded text of any form; never asked live."""
    return replace(parse_kernel_log(text), probe="kernel-log")


def parse_kernel_log(text: str) -> KernelLog:
    """Every event of the log. ParseError where nothing in it looks like a kernel log."""
    kept = _Kept()
    for at, number in _hits(text):
        line = _line_at(text, at)
        record, secondary = record_of(line, number, text[max(0, at - _ABOVE) : at])
        if record is not None:
            kept.keep(record, line.clock, secondary)
    edges = [_edge(text, first) for first in (True, False)]
    if not (kept.records or kept.seconds) and edges == [None, None]:
        raise ParseError(_why_nothing(text))
    return _on_one_axis(text, kept, edges)


def _why_nothing(text: str) -> str:
    denied = next((words for words in _DENIED if words in text), None)
    if denied:
        return f"the kernel log may not be read by this user, it says {denied!r}: try with --sudo"
    if not text.strip():
        return "the kernel log is empty: try with --sudo"
    return "expected a kernel log as dmesg, journalctl or syslog write it; no line has that form"


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


def _line_at(text: str, start: int) -> Line:
    end = text.find("\n", start, start + _LINE_MAX)
    return read_line(text[start : end if end >= 0 else start + _LINE_MAX].rstrip("\r"))


def _edge(text: str, first: bool) -> Line | None:
    """The first or last line whose form is known, one with a time if there is one."""
    known, at = None, 0 if first else len(text.rstrip("\n"))
    for _ in range(_EDGE):
        start = at if first else text.rfind("\n", 0, at) + 1
        line = _line_at(text, start)
        if line.at_s is not None:
            return line
        known = known or (line if line.known else None)
        at = text.find("\n", start) + 1 if first else start - 1
        if at <= 0:
            break
    return known


class _Kept(Struct):
    """Records with the clock of their lines, bounded: see EVENTS_MAX."""

    records: list[tuple[Record, Clock]] = field(default_factory=list)
    newest: dict[tuple[str, ...], int] = field(default_factory=dict)
    seconds: dict[tuple[str, ...], tuple[Record, Clock]] = field(default_factory=dict)
    truncated: bool = False

    def keep(self, record: Record, clock: Clock, secondary: bool) -> None:
        key = key_of(record)
        if secondary:
            if len(self.seconds) < EVENTS_MAX:
                self.seconds.setdefault(key, (record, clock))
        elif len(self.records) < (EVENTS_MAX if key not in self.newest else _REPEATS_MAX):
            self.newest[key] = len(self.records)
            self.records.append((record, clock))
        elif key in self.newest:
            self.truncated = True
            self.records[self.newest[key]] = (record, clock)
        else:
            self.truncated = True

    def in_order(self) -> list[tuple[Record, Clock]]:
        """All of them, and the secondary lines of faults that no first line tells."""
        alone = [pair for key, pair in self.seconds.items() if key not in self.newest]
        return sorted(self.records + alone, key=lambda pair: pair[0].line)


def _on_one_axis(text: str, kept: _Kept, edges: Sequence[Line | None]) -> KernelLog:
    """The log with all times on the axis that most of its lines have; the others have none."""
    pairs = kept.in_order()
    clocks: list[Clock] = [clock for _, clock in pairs]
    clocks += [edge.clock for edge in edges if edge]
    dated = Counter(clock for clock in clocks if clock != "none").most_common(1)
    axis: Clock = dated[0][0] if dated else "none"
    first, last = (edge.at_s if edge and edge.clock == axis else None for edge in edges)
    times = [record.at_s if clock == axis else None for record, clock in pairs]
    if axis == "yearless":
        first, *times, last = _through_new_year([first, *times, last])
    known = [at for at in times if at is not None]
    first = min(known, default=None) if first is None else first
    last = max(known, default=None) if last is None else last
    records = [replace(pair[0], at_s=at) for pair, at in zip(pairs, times, strict=True)]
    begins_late = axis == "boot" and first is not None and first > _BOOT_BEGINS_S
    return KernelLog(
        lines=text.count("\n") + (not text.endswith("\n")),
        first_at_s=first,
        last_at_s=last,
        clock="wall" if axis == "yearless" else axis,
        xids=tuple(one for one in records if isinstance(one, Xid)),
        sxids=tuple(one for one in records if isinstance(one, Sxid)),
        events=tuple(one for one in records if isinstance(one, KernelEvent)),
        truncated=kept.truncated or begins_late,
    )


def _through_new_year(times: Iterable[float | None]) -> list[float | None]:
    """A time half a year before the one above it belongs to the next year."""
    told: list[float | None] = []
    year_s = before = 0.0
    for at in times:
        if at is not None:
            year_s += YEAR_S if at + year_s < before - YEAR_S / 2 else 0.0
            before = at = at + year_s
        told.append(at)
    return told
