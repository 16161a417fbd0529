"""The bytes of tensors, each read once: checksum, values, pages of zeros."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from .dtypes import FLOATS
from .values import PAGE, Seen, Way
from .window import DamagedError, Window

#: So much is read at once, and one such block ahead: it is still in the cache of its core when it
#: is looked at after its checksum.
BLOCK = 1 << 20
#: Runs of zeros that are kept of a file.
_MOST_RUNS = 2000


class How(NamedTuple):
    """How closely is looked, the same for all files. `every`: of a large tensor one block in so
    many is read, `values_every`: of those read so many are looked at for their values."""

    way: Way
    values: bool = True
    every: int = 1
    values_every: int = 1
    tick: Callable[[int], None] = lambda _: None  # told of bytes as they are read


class Checked(NamedTuple):
    """`crc` is None where not all of it was read. `checked`: bytes that were read."""

    crc: int | None
    checked: int
    seen: Seen


class Runs:
    """Pages of a file that hold nothing but zeros, as runs (first page, pages), in order."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []

    def add(self, page: int) -> None:
        if self.found and sum(self.found[-1]) == page:
            first, count = self.found[-1]
            self.found[-1] = (first, count + 1)
        elif len(self.found) < _MOST_RUNS:
            self.found.append((page, 1))


_reader = threading.local()


def _ahead() -> ThreadPoolExecutor:
    """One thread that reads for the one that asks."""
    if not hasattr(_reader, "pool"):
        _reader.pool = ThreadPoolExecutor(1)
        _reader.buffers = (memoryview(bytearray(BLOCK)), memoryview(bytearray(BLOCK)))
    pool: ThreadPoolExecutor = _reader.pool
    return pool


def check(window: Window, dtype: str, how: How, runs: Runs, swapped: bool = False) -> Checked:
    """Read the window, which holds values of this type; with `swapped` in the other byte order."""
    kind = FLOATS.get(dtype) if how.values and not swapped else None
    seen = Seen()
    crc, checked, whole = 0, 0, True
    for number, (offset, block) in enumerate(_blocks(window, how.every)):
        whole = whole and offset == checked
        looks = kind is not None and number % how.values_every == 0
        crc = zlib.crc32(block, crc)
        if looks and kind is not None and len(block) >= kind.bytes:
            how.way.look(block[: len(block) - len(block) % kind.bytes], kind, seen)
        if looks:
            _zeros(window.base + offset, block, how.way, runs)
        checked += len(block)
        how.tick(len(block))
    whole = whole and checked == window.size
    return Checked(crc if whole else None, checked, seen)


def _zeros(at: int, block: memoryview, way: Way, runs: Runs) -> None:
    """Pages are those of the file, whatever lies in it: that is what a lost write takes away."""
    skip = -at % PAGE
    if len(block) - skip < PAGE:
        return
    for page in way.pages(block[skip:]):
        runs.add((at + skip) // PAGE + page)


def _blocks(window: Window, every: int) -> Iterator[tuple[int, memoryview]]:
    """Offsets in the window, and what lies there; only valid until the next is asked for. Where
    not all are read, the first and the last are among them."""
    # Blocks end where pages of the file do, as long as no value is cut by that.
    first = window.base % PAGE
    early = 0 if first % 16 else first
    ends = [*range(BLOCK - early, window.size, BLOCK), window.size]
    spans = [(at, end - at) for at, end in zip([0, *ends], ends) if end > at]
    if every > 1 and len(spans) > 2:
        spans = sorted({*spans[::every], spans[-1]})
    if len(spans) < 2:
        for offset, size in spans:
            yield offset, memoryview(window.read(offset, size))
        return
    pool = _ahead()
    buffers = _reader.buffers
    coming: Future[memoryview] = pool.submit(_read, window, *spans[0], buffers[0])
    for number, (offset, _) in enumerate(spans):
        block = coming.result()
        if number + 1 < len(spans):
            coming = pool.submit(_read, window, *spans[number + 1], buffers[(number + 1) % 2])
        yield offset, block


def _read(window: Window, offset: int, size: int, into: memoryview) -> memoryview:
    got = 0
    while got < size:
        count = os.preadv(window.fd, [into[got:size]], window.base + offset + got)
        if not count:
            raise DamagedError("truncated", "it became shorter while it was read",
                          window.base + offset + got)  # fmt: skip
        got += count
    return into[:size]
