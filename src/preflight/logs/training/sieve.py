"""The lines of a large log that may tell something, found by grep, several parts at once.

Where most lines are steps, or where lines belong together, all of them are read; so they are where
there is no grep."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from preflight.logs.training.events import PATTERNS
from preflight.logs.training.styles import HEADS, STYLES
from preflight.logs.training.text import Batch, Reach, batch, cleaned

#: Smaller logs are read whole.
LEAST_BYTES = 32 << 20
_HEAD_BYTES = 256 << 10  # read whole: here a run says what it is
_WINDOWS = 12
_WINDOW_BYTES = 16 << 10
#: With more lines than this that may tell something, reading all of them is no slower.
_DENSE = 0.2
_PARTS = 4
_QUEUED = 64  # pieces of 64 KiB of a part that wait for those before it
#: Ends a part, so that its lines are counted by who looks through them.
_END = b"OVERFLOW! preflight counts the lines up to here"
_SCRIPT = '{ head -c "$0"; echo "$1"; } | LC_ALL=C exec grep -a -n -b -E -e "$2"'


@cache
def marks() -> tuple[bytes, ...]:
    """One of these stands in each line that tells something; none contains another."""
    all_ = {style.mark for style in STYLES if not style.loose}
    all_ |= {mark for one in PATTERNS if not one.loose for mark in one.marks}
    return tuple(sorted(one for one in all_ if not any(two in one for two in all_ - {one})))


def pattern() -> str:
    """The same as an extended regular expression."""
    return "|".join(re.sub(r"([][.*^$()+?{}|\\])", r"\\\1", one.decode()) for one in marks())


def worthwhile(path: Path) -> bool:
    """Whether few lines of the file may tell something, and each of them by itself."""
    size = path.stat().st_size
    if size < LEAST_BYTES or shutil.which("grep") is None or shutil.which("sh") is None:
        return False
    lines = hits = 0
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            return False
        for at in range(_WINDOWS):
            file.seek(size * at // _WINDOWS)
            piece = file.read(_WINDOW_BYTES)
            if any(one in piece for one in HEADS):
                return False
            for line in piece.split(b"\n")[1:-1]:
                lines += 1
                hits += any(mark in line for mark in marks())
    return lines > 0 and hits <= _DENSE * lines


def sieved(path: Path, reach: Reach) -> Iterator[Batch]:
    """The head of the file, then lines of it that have a mark; OSError."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        head = head[: head.rfind(b"\n") + 1]
        if head:
            yield batch(head, 1, 0)
        reach.lines, reach.bytes = head.count(b"\n"), path.stat().st_size
        bounds = _bounds(path, len(head))
        with ExitStack() as stack:
            parts = [stack.enter_context(_Part(path, *one)) for one in bounds]
            for part in parts:
                yield from part.batches(reach.lines)
                reach.lines += part.lines


def _bounds(path: Path, begin: int) -> list[tuple[int, int]]:
    """Parts of the file from `begin`, each of whole lines."""
    size = path.stat().st_size
    count = min(_PARTS, len(os.sched_getaffinity(0)))
    cuts = [begin]
    with path.open("rb") as file:
        for at in range(1, count):
            file.seek(begin + (size - begin) * at // count)
            file.readline(1 << 22)
            cuts.append(max(cuts[-1], min(file.tell(), size)))
    return [(a, b) for a, b in zip(cuts, [*cuts[1:], size], strict=True) if b > a]


class _Part:
    """Lines with a mark between two bytes of a file, looked for by a process of its own."""

    def __init__(self, path: Path, begin: int, end: int) -> None:
        self._begin, self.lines = begin, 0
        self._file = path.open("rb", buffering=0)
        self._file.seek(begin)
        self._run = subprocess.Popen(
            ["sh", "-c", _SCRIPT, str(end - begin), _END.decode(), pattern()],
            stdin=self._file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._pieces: queue.Queue[bytes] = queue.Queue(_QUEUED)
        self._stopped = False
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._run.kill()
        while self._thread.is_alive():
            try:
                self._pieces.get(timeout=0.01)
            except queue.Empty:
                continue
        self._run.wait()
        if self._run.stdout:
            self._run.stdout.close()
        self._file.close()

    def _pump(self) -> None:
        out = self._run.stdout
        while out is not None and not self._stopped:
            piece = out.read(1 << 16)
            self._pieces.put(piece)
            if not piece:
                return

    def batches(self, before: int) -> Iterator[Batch]:
        """In the order of the file, of which `before` lines were before this part."""
        rest = b""
        while piece := self._pieces.get():
            whole, cut, rest = (rest + piece).rpartition(b"\n")
            if cut:
                yield from self._batch(whole, before)
        if rest:
            yield from self._batch(rest, before)

    def _batch(self, told: bytes, before: int) -> Iterator[Batch]:
        texts: list[bytes] = []
        numbers: list[int] = []
        offsets: list[int] = []
        for one in told.split(b"\n"):
            number, _, more = one.partition(b":")
            offset, _, text = more.partition(b":")
            if text.startswith(_END):
                self.lines = int(number) - 1
                continue
            texts.append(text)
            numbers.append(before + int(number))
            offsets.append(self._begin + int(offset))
        if texts:
            yield cleaned(Batch(b"\n".join(texts) + b"\n", texts, numbers, offsets))
