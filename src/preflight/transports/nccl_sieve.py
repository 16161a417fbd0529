"""NCCL's lines out of a large log of training, in memory that does not grow with the file.

In place of other lines stand marks that count them. Where one of these shows that a benchmark or
another tool wrote into the same file, all that is not NCCL's is read as a file by itself.
"""

from __future__ import annotations

import gzip
import os
import shlex
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from preflight import datafiles
from preflight.errors import UnrecognisedError, UsageError
from preflight.model import Raw
from preflight.nccl_text import LEFT_OUT, PROBE, folds, has_nccl, kept_of, speaks
from preflight.pasted import cleaned
from preflight.probes.kernel_log.gaps import mark
from preflight.recognise import recognise
from preflight.transports.scan import BLOCK, LINE_BYTES, Hit, UnableError, by_blocks, by_grep

#: More of NCCL's text is counted and not kept; warnings are kept beyond it, to twice as much.
KEPT_BYTES = 64 << 20
_HEAD_BYTES = 1 << 20
_SAMPLES, _SAMPLE_BYTES = 32, 1 << 16
#: What is not NCCL's, where another tool wrote into the file: it is held in memory.
REST_BYTES = 256 << 20
#: Reports of other tools at the beginning: then the file is no log, and is read whole.
_REPORTS = (b"<nvidia_smi_log", b"NVSMI LOG", b'"preflight.')
#: Lines of other tools anywhere: of nccl-tests, all_reduce_bench, perftest, reports of the driver.
OTHERS = (
    b"Out of bounds values",
    b"Avg bus bandwidth",
    b"#wrong",
    b"# nThread",
    b"Collective test starting",
    b"Test NCCL failure ",
    b"Test CUDA failure ",
    b"Test timeout (",
    b"average bandwidth of all_reduce",
    b"#bytes ",
    b"NVIDIA-SMI ",
    *_REPORTS,
)
#: grep's patterns, one a line; the same for where there is no grep.
_FILE = "nccl_log.patterns"
NEEDLES = (
    b"NCCL INFO ",
    b"NCCL WARN ",
    b"NCCL ABORT ",
    b"NCCL version ",
    b"vendor err",
    b"vendor_err",
    *OTHERS,
)


def nccl_sieved(path: Path, source: str) -> list[Raw]:
    """NCCL's lines in a large file, and what other tools told in it; none where NCCL told nothing,
    or a report of another tool begins it. UsageError where others' text is too large to be held."""
    try:
        with path.open("rb") as file:
            sieve = _Sieve()
            if gzipped := file.read(2) == b"\x1f\x8b":
                file.seek(0)
                _of_gzip(file, sieve)
            else:
                file.seek(0)
                if _is_one(file):
                    _of_file(path, file, sieve)
            raw = sieve.raw(source)
            if raw is None or not sieve.others:
                return [raw] if raw else []
            file.seek(0)
            rest = _unpacked_rest(file) if gzipped else _rest(file)
    except (OSError, EOFError, zlib.error):
        return []
    if rest is None:
        raise _too_large(source)
    return _with_others(raw, rest, source)


def _with_others(raw: Raw, rest: bytes, source: str) -> list[Raw]:
    """As of a small file: the version of NCCL alone counts where nobody else told anything."""
    try:
        others = recognise(rest, source)
    except UnrecognisedError:
        return [raw]
    return [*others, *([raw] if speaks(str(raw.stdout)) else [])]


def _unpacked_rest(file: BinaryIO) -> bytes | None:
    with gzip.open(file) as unpacking:
        return _rest(unpacking)


def _rest(file: BinaryIO | gzip.GzipFile) -> bytes | None:
    """What is not NCCL's, with empty lines for what is; None where it is too much."""
    pieces: list[bytes] = []
    size = 0
    while line := file.readline(LINE_BYTES):
        if b"NCCL " in line and kept_of(cleaned(line.decode("utf-8", "replace"))):
            line = b"\n"
        pieces.append(line)
        size += len(line)
        if size > REST_BYTES:
            return None
    return b"".join(pieces)


def _too_large(source: str) -> UsageError:
    what = (
        f"{source} holds what a benchmark or another tool told, among over {REST_BYTES >> 20} MiB"
    )
    hint = f"give that part by itself: grep -n '#' {shlex.quote(source)} shows where a table begins"
    return UsageError(f"{what} that is not NCCL's", hint)


def _is_one(file: BinaryIO) -> bool:
    """By its beginning, and by places all over it."""
    head = file.read(_HEAD_BYTES)
    if b"\0" in head[:4096] or any(other in head for other in _REPORTS):
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
        if any(other in head for other in _REPORTS) or not _holds(head):
            return
        rest: Iterable[bytes] = iter(lambda: unpacking.read(BLOCK), b"")
        by_blocks(iter(chain([head], rest)), NEEDLES, sieve.take)


class _Sieve(Struct):
    """The lines that are kept, with marks for those between."""

    pieces: list[str] = field(default_factory=list)
    size: int = 0
    last: int = 0  # the number of the last line that is kept
    left_out: int = 0
    others: bool = False  # another tool wrote into the file

    def clear(self) -> None:
        """Begin anew."""
        self.pieces.clear()
        self.size = self.last = self.left_out = 0
        self.others = False

    def take(self, hit: Hit) -> None:
        """One line that holds a pattern."""
        text = cleaned(hit.line.decode("utf-8", "replace"))
        line = kept_of(text)
        if not line:
            self.others = self.others or any(other in hit.line for other in OTHERS)
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
