"""The events of a log as it is read line by line: bounded, so that no flood hides another fault."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from preflight.facts.kernel import Unread
from preflight.probes.kernel_log.lines import Clock, Line
from preflight.probes.kernel_log.messages import (
    Record,
    key_of,
    names_a_gpu,
    record_of,
    speaks_of_an_xid,
)

#: The most records of one log. The last thousand places are for faults not seen before, so that
#: a flood of one message hides nothing; of the flood the first and the newest are kept.
EVENTS_MAX = 20_000
REPEATS_MAX = EVENTS_MAX - 1000
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
    writers: set[str] = field(default_factory=set)
    dropped: int = 0  # events that were too many
    named: Named = Named(-_BELOW, "")

    def take(self, start: int, number: int, line: Line, raw: str) -> bool:
        """Look at a line that may hold an event, `raw` its text; whether it does."""
        if names_a_gpu(line.message):
            self.named = Named(number, raw)
        above = self.named if number - self.named.number <= _BELOW else None
        record, secondary = record_of(line, number, above.text if above else "")
        if record is not None:
            self._keep(Found(record, start, line.clock, raw, above), line, secondary)
        elif len(self.unread) < UNREAD_MAX and speaks_of_an_xid(line, raw):
            self.unread.append(Unread(number, raw.strip()[:_UNREAD_TEXT], self.probe))
            self.unread_lines.append(raw)
        return record is not None

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

    def in_order(self) -> list[Found]:
        """All of them, and the secondary lines of faults that no first line tells."""
        alone = [found for key, found in self.seconds.items() if key not in self.slots]
        return sorted(self.records + alone, key=_start)


def _start(found: Found) -> int:
    return found.start
