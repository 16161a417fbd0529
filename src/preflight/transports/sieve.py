"""A kernel log too large to be held: only the lines that may count, in memory that does not grow.

What is kept makes the parser find what it would find in the whole: the events, as many as it keeps;
boots and loads of the driver with the lines above that date them; both ends; and in place of the
rest marks that say how many lines are left out.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from preflight import datafiles
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.pasted import cleaned, text_of
from preflight.probes.kernel_log.gaps import mark
from preflight.probes.kernel_log.kept import Found, Kept
from preflight.probes.kernel_log.kinds import NEEDLES
from preflight.probes.kernel_log.lines import Line, read_line
from preflight.probes.kernel_log.log import STARTS_MAX
from preflight.probes.kernel_log.text import EDGE, LINE_MAX
from preflight.probes.kernel_log.times import (
    CHAINED,
    LANDMARKS,
    is_boot,
    is_chained,
    is_first,
    is_load,
)
from preflight.recognise import begin_of_log
from preflight.transports.scan import BLOCK, Hit, Scanned, UnableError, by_blocks, by_grep

#: Smaller files are read whole: it takes them a second and three times their size.
LARGE_BYTES = 32 << 20
_LARGE_GZIP = 2 << 20
#: How much of either end is looked at, and how much at each of so many places between.
_END_BYTES = 2 << 20
_SAMPLES, _SAMPLE_BYTES = 32, 1 << 16
#: Other tools' output in the middle of a log: then it is no log alone.
_OTHERS = ("<nvidia_smi_log", "NVSMI LOG")
#: What benchmarks of the network head or end their tables with: in the journal of a job, where
#: its lines are as well formed as those of the kernel.
_BENCHES = (
    "# nThread", "Avg bus bandwidth", "average bandwidth of all_reduce", "#bytes     #iterations",
)  # fmt: skip

#: Every line that is looked at holds one of these. For grep: checks/data/kernel_log.patterns.
PATTERNS = (*NEEDLES, *LANDMARKS, *CHAINED, *_OTHERS, *_BENCHES)
_FILE = "kernel_log.patterns"


class NotALogError(Exception):
    """The file holds more than a log, or one whose lines cannot be read singly."""


def patterns_for_grep() -> str:
    """PATTERNS as a file for `grep -E -f`, one a line."""
    special = set("\\.[]{}()*+?^$|")
    return "".join(
        "".join(f"\\{char}" if char in special else char for char in one) + "\n" for one in PATTERNS
    )


def sieved(path: Path, source: str) -> Raw | None:
    """The log in a large file; None where it is small, or anything but a log alone."""
    try:
        with path.open("rb") as file:
            gzipped = file.read(2) == b"\x1f\x8b"
            if os.fstat(file.fileno()).st_size < (_LARGE_GZIP if gzipped else LARGE_BYTES):
                return None
            sieve = _Sieve(source)
            _sieve_stream(sieve, file) if gzipped else _sieve_file(sieve, path, file)
            return sieve.raw()
    except (NotALogError, UsageError, OSError, EOFError, zlib.error):
        return None


def _sieve_file(sieve: _Sieve, path: Path, file: BinaryIO) -> None:
    sieve.begin(_read_at(file, 0, _END_BYTES))
    size = os.fstat(file.fileno()).st_size
    for number in range(1, _SAMPLES + 1):
        block = _read_at(file, size * number // (_SAMPLES + 1), _SAMPLE_BYTES)
        _hold(block.partition(b"\n")[2].rpartition(b"\n")[0])
    patterns = datafiles.root() / "checks" / "data" / _FILE
    try:
        scanned = by_grep(path, patterns, sieve.take)
    except UnableError:
        sieve.begin(_read_at(file, 0, _END_BYTES))
        scanned = by_blocks(_blocks(file), _BYTES, sieve.take)
    sieve.end(_read_at(file, max(0, size - _END_BYTES), _END_BYTES), scanned)


def _sieve_stream(sieve: _Sieve, file: BinaryIO) -> None:
    """The same of text that is unpacked as it is read."""
    file.seek(0)
    with gzip.open(file) as unpacking:
        head = unpacking.read(LARGE_BYTES)
        if len(head) < LARGE_BYTES:
            raise NotALogError
        sieve.begin(head[:_END_BYTES])
        tail = deque[bytes](maxlen=_END_BYTES // BLOCK + 1)
        scanned = by_blocks(_remembered(head, unpacking, tail), _BYTES, sieve.take)
    sieve.end(b"".join(tail)[-_END_BYTES:], scanned)


def _remembered(head: bytes, file: gzip.GzipFile, tail: deque[bytes]) -> Iterator[bytes]:
    """The blocks of both, the last of them kept in `tail`."""
    for start in range(0, len(head), BLOCK):
        tail.append(head[start : start + BLOCK])
        yield tail[-1]
    while block := file.read(BLOCK):
        tail.append(block)
        yield block


_BYTES = [one.encode() for one in PATTERNS]


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while block := file.read(BLOCK):
        yield block


def _read_at(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _hold(block: bytes) -> None:
    """NotALogError where a piece of the file is something else."""
    if block.strip(b"\0\n ") and begin_of_log(_text(block)) is None:
        raise NotALogError


def _text(block: bytes) -> str:
    """Its lines as the parser sees them; what a terminal adds can part a needle."""
    if b"\x1b" in block or b"\b" in block:
        raise NotALogError
    return text_of(block, "")


def _line(data: bytes) -> str:
    return cleaned(data.decode("utf-8", "replace") + "\n")[:-1][:LINE_MAX].rstrip("\r")


class _Boot(Struct, frozen=True):
    """A line where the host or driver began anew, and those above it that date it."""

    number: int
    text: str
    above: tuple[tuple[int, str], ...] = ()


class _Sieve(Struct):
    """The lines that are kept, by their numbers in the file."""

    source: str
    first: int = 1  # the line with which the log begins
    head: dict[int, str] = field(default_factory=dict)
    tail: dict[int, str] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    boots: deque[_Boot] = field(default_factory=lambda: deque(maxlen=STARTS_MAX + 1))
    loads: deque[_Boot] = field(default_factory=lambda: deque(maxlen=STARTS_MAX + 1))
    kernel: tuple[int, str] | None = None  # a line of the kernel
    before: tuple[int, str] = (0, "")  # the last line looked at
    #: Which lines of the head, and which of the last, are events.
    head_events: list[int] = field(default_factory=list)
    events: deque[int] = field(default_factory=lambda: deque(maxlen=2 * EDGE))
    last: int = 0
    ends: bool = True

    def begin(self, data: bytes) -> None:
        """The head of the file; NotALogError where a log does not begin in it."""
        if b"\0" in data[:4096]:  # of two bytes a character
            raise NotALogError
        text = _text(data[: data.rfind(b"\n") + 1])
        begins = begin_of_log(text)
        if begins is None or begins >= EDGE:
            raise NotALogError
        lines = text.split("\n", begins + EDGE)[begins:-1]
        self.kept, self.kernel, self.before = Kept(), None, (0, "")
        for queue in (self.boots, self.loads, self.head_events, self.events):
            queue.clear()
        self.first = begins + 1
        self.head = dict(enumerate((line[:LINE_MAX] for line in lines), self.first))

    def take(self, hit: Hit) -> None:
        """One line that holds a pattern."""
        number, raw = hit.number, _line(hit.line)
        if number < self.first:
            return
        if is_chained(raw) or any(one in raw for one in _BENCHES):
            raise NotALogError
        if any(one in raw for one in _OTHERS) and not read_line(raw).known:
            raise NotALogError
        line = read_line(raw)
        if self.kept.take(number, number, line, raw):
            self.events.append(number)
            if number in self.head:
                self.head_events.append(number)
        if self.kernel is None and _of_kernel(line):
            self.kernel = (number, raw)
        if any(one in raw for one in LANDMARKS):
            self._landmark(hit, raw, line)
        self.before = (number, raw)

    def _landmark(self, hit: Hit, raw: str, line: Line) -> None:
        if is_load(raw, line):
            self.loads.append(_Boot(hit.number, raw))
        boot = is_boot(raw, line)
        follows = self.before[0] == hit.number - 1 and self.before[1].startswith("[    0.")
        if not boot and (follows or not raw.startswith("[    0.")):
            return
        above = [_line(one) for one in hit.above().split(b"\n")[-EDGE - 1 : -1]]
        if boot or is_first(raw, above[-1] if above else "", read_line):
            self.boots.append(_Boot(hit.number, raw, tuple(_dated(hit.number, above))))

    def end(self, data: bytes, scanned: Scanned) -> None:
        """The tail of the file, and how many lines there were in all."""
        _hold(data.partition(b"\n")[2])
        text = _text(data)
        told = text.rstrip("\n")
        blank = max(len(text) - len(told) - 1, 0)
        self.ends = text.endswith("\n")
        self.last = scanned.lines + (not self.ends)
        lines = [line[:LINE_MAX] for line in told.split("\n")[1:][-EDGE:]] + [""] * blank
        self.tail = dict(enumerate(lines, self.last - len(lines) + 1))

    def raw(self) -> Raw:
        """The text of what is kept; NotALogError where no line in sight is the kernel's."""
        counting, ends = self._counting(), {**self.head, **self.tail}
        if not (self.kernel or any(_of_kernel(read_line(one)) for one in ends.values())):
            raise NotALogError
        if self.kernel:
            counting[self.kernel[0]] = self.kernel[1]
        for number in (*self.head_events, *self.events):
            if number not in counting:  # it was too many
                ends.pop(number, None)
        text = "".join(self._pieces({**counting, **ends}))
        text = text if self.ends else text[:-1]
        return Raw("", "kernel-log", stdout=text, source=self.source, line_offset=self.first - 1)

    def _pieces(self, lines: dict[int, str]) -> Iterator[str]:
        before, events = self.first - 1, self.kept.dropped
        for number in [*sorted(number for number in lines if number >= self.first), self.last + 1]:
            if number > before + 1:
                yield mark(number - before - 1, events)
                events = 0
            if number <= self.last:
                yield f"{lines[number]}\n"
            before = number

    def _counting(self) -> dict[int, str]:
        """The lines of events, of boots and loads, and those above that they need."""
        found: dict[int, str] = {}
        for one in (*self.kept.records, *self.kept.seconds.values()):
            found.update(_with_above(one))
        found.update(
            (unread.line, raw)
            for unread, raw in zip(self.kept.unread, self.kept.unread_lines, strict=True)
        )
        found.update((one.line, one.text) for one in self.kept.left_out)
        for start in (*self.boots, *self.loads):
            found.update({**dict(start.above), start.number: start.text})
        return found


def _with_above(found: Found) -> dict[int, str]:
    named = {found.above.number: found.above.text} if found.above else {}
    return {**named, found.start: found.text}


def _of_kernel(line: Line) -> bool:
    return line.known and line.program == "kernel"


def _dated(number: int, above: list[str]) -> Iterator[tuple[int, str]]:
    """The lines above line `number` up to the nearest that has a time."""
    for back, raw in enumerate(reversed(above), 1):
        yield number - back, raw
        if read_line(raw).at_s is not None:
            return
