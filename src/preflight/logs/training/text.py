"""A log as batches of whole lines, cleaned of what terminals and progress bars leave in it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from msgspec import Struct

from preflight.unpack import Unpacking

_CHUNK = 1 << 20
#: A line longer than this is not a step's, nor any other word of a log: left out, and counted.
MOST_LINE_BYTES = 1 << 22
#: Of what a gzip file unpacks to.
MOST_BYTES = 1 << 40
_ANSI = re.compile(
    rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>M78])"
)

#: A bar of tqdm that something else was written behind, without a new line.
_BEHIND_BAR = re.compile(rb"((?<!\d)\d{1,15}/\d{1,15} \[\d[^\]\n]{0,400}\])(?=[^\s\n])")


class Batch(Struct):
    """Lines, each ended by a newline in `joined`; where each stands in the file."""

    joined: bytes
    texts: list[bytes]
    numbers: Sequence[int]
    offsets: Sequence[int]
    cut: bool = False  # the log ends with it, without a newline


class Reach(Struct):
    """How far was read."""

    lines: int = 0
    bytes: int = 0
    left_out: int = 0  # lines too long
    cut: str = ""  # why it went no further


def batches(path: Path, reach: Reach) -> Iterator[Batch]:
    """All lines of a file, plain or gzip; OSError."""
    with path.open("rb", buffering=0) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        source = Unpacking(io.BufferedReader(file), MOST_BYTES) if packed else file
        for piece in _whole_lines(source, reach):
            whole = piece.endswith(b"\n")
            made = batch(piece if whole else piece + b"\n", reach.lines + 1, reach.bytes)
            made.cut = not whole
            yield made
            reach.lines += piece.count(b"\n") + (not whole)
            reach.bytes += len(piece)
        reach.cut = source.cause if isinstance(source, Unpacking) else ""


def _whole_lines(source: io.RawIOBase, reach: Reach) -> Iterator[bytes]:
    """Pieces that end with a line; a line too long becomes an empty one."""
    rest: list[bytes] = []
    size, skipping = 0, False
    while data := source.read(_CHUNK):
        end = data.rfind(b"\n") + 1
        if not end:
            size += len(data)
            rest.append(data)
            if size > MOST_LINE_BYTES:
                reach.bytes += size
                rest, size, skipping = [], 0, True
            continue
        if skipping:
            first = data.find(b"\n")
            reach.bytes += first
            reach.left_out += 1
            head, skipping = data[first:end], False
        else:
            head = b"".join([*rest, data[:end]])
        yield head
        rest, size = [data[end:]], len(data) - end
    last = b"".join(rest)
    if last and not skipping:
        yield last
    reach.left_out += skipping


def batch(piece: bytes, number: int, offset: int) -> Batch:
    """A piece of whole lines, the first of which is `number` and begins at byte `offset`."""
    texts = piece.split(b"\n")
    texts.pop()
    lengths = [len(one) + 1 for one in texts]
    offsets = list(accumulate(lengths, initial=offset))
    return cleaned(Batch(piece, texts, range(number, number + len(texts)), offsets))


def cleaned(made: Batch) -> Batch:
    """Without colours; what a carriage return separates are lines of the same number."""
    piece = made.joined
    if b"\0" in piece:
        piece = piece.replace(b"\0", b"")
    if b"\x1b" in piece:
        piece = _ANSI.sub(b"", piece)
    if b"%" in piece and b"%|" in piece:  # bars of | are in each line of some logs: % is rarer
        piece = _BEHIND_BAR.sub(rb"\1\r", piece)
    if b"\r" in piece:
        return _parted(piece, made)
    if piece is made.joined:
        return made
    return Batch(piece, piece[:-1].split(b"\n"), made.numbers, made.offsets)


def _parted(piece: bytes, made: Batch) -> Batch:
    texts: list[bytes] = []
    numbers: list[int] = []
    offsets: list[int] = []
    for at, line in enumerate(piece[:-1].split(b"\n")):
        for part in line.split(b"\r"):
            if part.strip():
                texts.append(part)
                numbers.append(made.numbers[at])
                offsets.append(made.offsets[at])
    return Batch(b"\n".join(texts) + b"\n" if texts else b"", texts, numbers, offsets)
