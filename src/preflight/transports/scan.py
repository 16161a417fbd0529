"""The lines of a large file that hold one of many patterns: by grep, google-re2, or bytes.find.

grep is the fastest by far and is nearly everywhere; the others are for where it is not, and for
text that exists only as it is unpacked.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO, Any, NamedTuple

BLOCK = 1 << 20
#: How much before a line can be looked at.
ABOVE = 1 << 18
#: No line is read further; the rest of it is passed over.
LINE_BYTES = 1 << 18
#: grep holds a whole line: one without an end must not fill the memory.
_GREP_BYTES = 1 << 29
_LABEL = re.compile(rb"(\d+):(\d+):")


class Hit(NamedTuple):
    """A line that holds a pattern; `above`: the bytes before it, from the file when called."""

    number: int
    line: bytes
    above: Callable[[], bytes]


class Scanned(NamedTuple):
    """What `by_grep` and `by_blocks` call back with when they come to the end."""

    lines: int  # line ends
    ends: bool  # whether the last line has one


class UnableError(Exception):
    """This way of looking is not to be had here."""


def by_grep(path: Path, patterns: Path, take: Callable[[Hit], None]) -> Scanned:
    """Every line of a file that matches; UnableError without a grep that counts lines and bytes."""
    program = shutil.which("grep")
    if program is None:
        raise UnableError
    counter = _Counter(path)
    counter.start()
    argv = [program, "-aEnb", "-f", str(patterns), "--", str(path)]
    environment = {**os.environ, "LC_ALL": "C"}
    with (
        path.open("rb") as file,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, preexec_fn=_limit,
        ) as process,
    ):  # fmt: skip
        assert process.stdout
        try:
            for number, start, line in _labelled(process.stdout):
                take(Hit(number, line, partial(_before, file, start)))
        except BaseException:
            process.kill()
            raise
    counter.join()
    if process.returncode not in (0, 1) or counter.found is None:
        raise UnableError
    return counter.found


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_GREP_BYTES, _GREP_BYTES))


def _labelled(lines: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    while line := lines.readline(LINE_BYTES):
        label = _LABEL.match(line)
        if not label:
            raise UnableError
        if len(line) == LINE_BYTES:  # zeros that a crash left: the text is behind them
            raise UnableError
        yield int(label[1]), int(label[2]), line[label.end() :].rstrip(b"\n")


def _before(file: IO[bytes], start: int) -> bytes:
    begin = max(0, start - ABOVE)
    file.seek(begin)
    return file.read(start - begin)


class _Counter(Thread):
    """Counts a file's lines while grep reads it: both from the same cache."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._path = path
        self.found: Scanned | None = None

    def run(self) -> None:
        lines, last = 0, b""
        with suppress(OSError), self._path.open("rb", buffering=0) as file:
            while block := file.read(BLOCK):
                lines += block.count(b"\n")
                last = block[-1:]
            self.found = Scanned(lines, last == b"\n")


def by_blocks(
    blocks: Iterator[bytes], needles: Sequence[bytes], take: Callable[[Hit], None]
) -> Scanned:
    """The same of text that comes in blocks, by google-re2 where it is installed."""
    starts, lines, rest, behind = _finder(needles), 0, b"", b""
    last = b""
    for read in blocks:
        last = read[-1:]
        block, rest = _whole_lines(rest + read.replace(b"\0", b""))
        lines = _in_block(block, behind, lines, starts, take)
        behind = block[-ABOVE:] or behind
    if rest:
        _in_block(rest, behind, lines, starts, take)
    return Scanned(lines, last == b"\n")


def _whole_lines(data: bytes) -> tuple[bytes, bytes]:
    end = data.rfind(b"\n") + 1
    if not end and len(data) > 4 * LINE_BYTES:  # a line without an end: its beginning counts
        return b"", data[:LINE_BYTES]
    return data[:end], data[end:]


def _in_block(
    block: bytes, behind: bytes, lines: int, starts: Callable[[bytes], list[int]],
    take: Callable[[Hit], None],
) -> int:  # fmt: skip
    """Looks at one block; how many lines there are up to its end."""
    before = 0
    for start in starts(block):
        lines += block.count(b"\n", before, start)
        before = start
        end = block.find(b"\n", start, start + LINE_BYTES)
        line = block[start : end if end >= 0 else start + LINE_BYTES]
        take(Hit(lines + 1, line, partial(_above, behind, block, start)))
    return lines + block.count(b"\n", before)


def _above(behind: bytes, block: bytes, start: int) -> bytes:
    return (behind + block[:start])[-ABOVE:]


def _finder(needles: Sequence[bytes]) -> Callable[[bytes], list[int]]:
    """A function from a block to where its lines with a needle begin."""
    try:
        import re2

        options: Any = re2.Options()
        options.never_nl, options.encoding = True, re2.Options.Encoding.LATIN1
        pattern = re2.compile(b"|".join(map(re2.escape, needles)), options)
    except (ImportError, AttributeError):  # other packages are called re2 as well
        return lambda block: _found_by_find(block, needles)
    return lambda block: _found_by_re2(block, pattern)


def _found_by_find(block: bytes, needles: Sequence[bytes]) -> list[int]:
    starts: set[int] = set()
    for needle in needles:
        at = block.find(needle)
        while at >= 0:
            starts.add(block.rfind(b"\n", 0, at) + 1)
            end = block.find(b"\n", at)
            at = block.find(needle, end) if end >= 0 else -1
    return sorted(starts)


def _found_by_re2(block: bytes, pattern: Any) -> list[int]:
    starts, at = [], 0
    while found := pattern.search(block, at):
        starts.append(block.rfind(b"\n", 0, found.start()) + 1)
        at = block.find(b"\n", found.end()) + 1
        if not at:
            break
    return starts
