"""NCCL's lines out of a large log of training, in memory that does not grow with the file.

What else stands in such a file is not read; in place of other lines stand marks that count them.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from preflight import datafiles
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.nccl_text import LEFT_OUT, PROBE, folds, has_nccl, kept_of
from preflight.pasted import cleaned
from preflight.probes.kernel_log.gaps import mark
from preflight.transports.scan import BLOCK, Hit, UnableError, by_blocks, by_grep

#: More of NCCL's text is counted and not kept; warnings are kept beyond it, to twice as much.
KEPT_BYTES = 64 << 20
_HEAD_BYTES = 1 << 20
_SAMPLES, _SAMPLE_BYTES = 32, 1 << 16
#: Reports of other tools: then the file is no log alone, and is read whole.
_OTHERS = (b"<nvidia_smi_log", b"NVSMI LOG", b'"preflight.')
#: grep's patterns, one a line; the same for where there is no grep.
_FILE = "nccl_log.patterns"
NEEDLES = (
    b"NCCL INFO ",
    b"NCCL WARN ",
    b"NCCL ABORT ",
    b"NCCL version ",
    b"vendor err",
    b"vendor_err",
)


def nccl_sieved(path: Path, source: str) -> Raw | None:
    """NCCL's lines in a large file; None where there are none, or a report of another tool is."""
    try:
        with path.open("rb") as file:
            gzipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            sieve = _Sieve()
            if gzipped:
                _of_gzip(file, sieve)
            elif _is_one(file):
                _of_file(path, file, sieve)
            return sieve.raw(source)
    except (UsageError, OSError, EOFError, zlib.error):
        return None


def _is_one(file: BinaryIO) -> bool:
    """By its beginning, and by places all over it."""
    head = file.read(_HEAD_BYTES)
    if b"\0" in head[:4096] or any(other in head for other in _OTHERS):
        return False
    size = os.fstat(file.fileno()).st_size
    return any(map(_holds, chain([head], _samples(file, size))))


def _holds(block: bytes) -> bool:
    return has_nccl(block.decode("utf-8", "replace"))


def _samples(file: BinaryIO, size: int) -> Iterator[bytes]:
    for number in range(1, _SAMPLES + 1):
        file.seek(max(size * number // _SAMPLES - _SAMPLE_BYTES, 0))
        yield file.read(_SAMPLE_BYTES)


def _of_file(path: Path, file: BinaryIO, sieve: _Sieve) -> None:
    patterns = datafiles.root() / "checks" / "data" / _FILE
    try:
        by_grep(path, patterns, sieve.take)
    except UnableError:
        sieve.clear()
        file.seek(0)
        by_blocks(iter(lambda: file.read(BLOCK), b""), NEEDLES, sieve.take)


def _of_gzip(file: BinaryIO, sieve: _Sieve) -> None:
    with gzip.open(file) as unpacking:
        head = unpacking.read(_HEAD_BYTES)
        if any(other in head for other in _OTHERS) or not _holds(head):
            return
        rest: Iterable[bytes] = iter(lambda: unpacking.read(BLOCK), b"")
        by_blocks(iter(chain([head], rest)), NEEDLES, sieve.take)


class _Sieve(Struct):
    """The lines that are kept, with marks for those between."""

    pieces: list[str] = field(default_factory=list)
    size: int = 0
    last: int = 0  # the number of the last line that is kept
    left_out: int = 0

    def clear(self) -> None:
        """Begin anew."""
        self.pieces.clear()
        self.size = self.last = self.left_out = 0

    def take(self, hit: Hit) -> None:
        """One line that holds a pattern."""
        text = cleaned(hit.line.decode("utf-8", "replace"))
        line = kept_of(text)
        if not line:
            if self.last == hit.number - 1 and self.pieces and folds(self.pieces[-1], text):
                self.pieces[-1] = f"{self.pieces[-1][:-1]} {text.strip()}\n"
            return
        if self.size > KEPT_BYTES and (" NCCL WARN " not in line or self.size > 2 * KEPT_BYTES):
            self.left_out += 1
            return
        if hit.number > self.last + 1:
            self.pieces.append(mark(hit.number - self.last - 1))
        self.pieces.append(f"{line}\n")
        self.size += len(line)
        self.last = hit.number

    def raw(self, source: str) -> Raw | None:
        """All that is kept as one answer."""
        if not self.pieces:
            return None
        if self.left_out:
            self.pieces.append(LEFT_OUT.format(self.left_out) + "\n")
        return Raw("", PROBE, stdout="".join(self.pieces), source=source)
