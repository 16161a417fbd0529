"""The events of a log as it is read line by line: bounded, so that no flood hides another fault."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.facts.kernel import Unread
from preflight.probes.kernel_log.lines import Clock, Line
from preflight.probes.kernel_log.messages import (
    Record,
    cited_key,
    key_of,
    left_out,
    names_a_gpu,
    passed_on,
    record_of,
    speaks_of_an_xid,
)

#: The most records of one log. The last thousand places are for faults not seen before, so that
#: a flood of one message hides nothing; of the flood the first and the newest are kept.
EVENTS_MAX = 20_000
REPEATS_MAX = EVENTS_MAX - 1000
#: What logs tell of as "repeated N times" counts as N, but no more than so many in all.
FOLDED_MAX = EVENTS_MAX
#: Lines in an unknown form that are told; more say no more.
UNREAD_MAX = 20
#: Characters of such a line.
_UNREAD_TEXT = 200
#: How many lines below the one that names a GPU its loss may be told.
_BELOW = 10


class Named(Struct, frozen=True):
    """A line that names the GPU of lines below it."""

    number: int
    text: str


class Found(Struct):
    """A record, the place of its line, the line's clock, and the line above that it needs."""

    record: Record
    start: int
    clock: Clock
    text: str
    above: Named | None = None


class Kept(Struct):
    """Records, bounded: see EVENTS_MAX; who wrote them; and what could not be read."""

    probe: str = ""
    repeats_max: int = REPEATS_MAX
    records: list[Found] = field(default_factory=list)
    slots: dict[tuple[str, ...], deque[int]] = field(default_factory=dict)  # oldest first
    seconds: dict[tuple[str, ...], Found] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    unread_lines: list[str] = field(default_factory=list)  # their whole lines
    cited: list[tuple[str, ...] | None] = field(default_factory=list)  # the faults they pass on
    writers: set[str] = field(default_factory=set)
    dropped: int = 0  # events that were too many
    named: Named = Named(-_BELOW, "")
    folded_left: int = FOLDED_MAX
    missed: int = 0
    missed_line: int = 0  # the first that tells of it
    left_out: list[Unread] = field(default_factory=list)
    last: tuple[Found, Line, bool] | None = None  # the last event, for "repeated N times" below it

    def take(self, start: int, number: int, line: Line, raw: str) -> bool:
        """Look at a line that may hold an event, `raw` its text; whether it does."""
        if line.again:
            return self._again(start, number, line, raw)
        if names_a_gpu(line.message):
            self.named = Named(number, raw)
        above = self.named if number - self.named.number <= _BELOW else None
        record, secondary = record_of(line, number, above.text if above else "")
        if record is not None:
            found = Found(record, start, line.clock, raw, above)
            self.last = (found, line, secondary)
            self._keep_all(found, line, secondary, line.times)
        elif (missed := left_out(line)) is not None:
            self._left_out(number, raw, missed)
        elif len(self.unread) < UNREAD_MAX and speaks_of_an_xid(line, raw):
            self.unread.append(Unread(number, raw.strip()[:_UNREAD_TEXT], self.probe))
            self.unread_lines.append(raw)
            self.cited.append(cited_key(line) if passed_on(line) else None)
        return record is not None

    def _left_out(self, number: int, raw: str, missed: int) -> None:
        self.missed_line = self.missed_line or (number if missed else 0)
        self.missed += missed
        if len(self.left_out) < UNREAD_MAX:
            self.left_out.append(Unread(number, raw.strip()[:_UNREAD_TEXT], self.probe))

    def _again(self, start: int, number: int, line: Line, raw: str) -> bool:
        """A line that says how often the event above it came again; whether there is one."""
        if self.last is None or self.last[0].record.line + 1 != number:
            return False
        above, told, secondary = self.last
        record = replace(above.record, line=number, at_s=line.at_s)
        named = Named(number - 1, above.text)
        found = Found(record, start, line.clock, raw, named)
        self._keep_all(found, told, secondary, line.again)
        return True

    def _keep_all(self, found: Found, line: Line, secondary: bool, times: int) -> None:
        """One event as often as it came."""
        folded = min(times - 1, self.folded_left)
        self.folded_left -= folded
        self.dropped += times - 1 - folded
        for _ in range(1 if secondary else 1 + folded):
            self._keep(found, line, secondary)

    def _keep(self, found: Found, line: Line, secondary: bool) -> None:
        key = key_of(found.record)
        self.writers.add(line.program)
        if secondary:
            if len(self.seconds) < EVENTS_MAX:
                self.seconds.setdefault(key, found)
        elif len(self.records) < (EVENTS_MAX if key not in self.slots else self.repeats_max):
            self.slots.setdefault(key, deque()).append(len(self.records))
            self.records.append(found)
        else:
            self.dropped += 1
            if key in self.slots:
                self._in_place_of_the_oldest(found, self.slots[key])

    def _in_place_of_the_oldest(self, found: Found, slots: deque[int]) -> None:
        """Of a flood its first event is kept and the newest ones: those count in a window."""
        first = slots.popleft()
        slot = slots.popleft() if slots else first
        self.records[slot] = found
        slots.append(slot)
        if slot != first:
            slots.appendleft(first)

    def not_told(self) -> tuple[Unread, ...]:
        """Lines in an unknown form, without those that repeat what another line tells."""
        both = zip(self.unread, self.cited, strict=True)
        return tuple(one for one, key in both if key is None or key not in self.slots)

    def in_order(self) -> list[Found]:
        """All of them, and the secondary lines of faults that no first line tells."""
        alone = [found for key, found in self.seconds.items() if key not in self.slots]
        return sorted(self.records + alone, key=_start)


def _start(found: Found) -> int:
    return found.start
