"""What one writer of a checkpoint does with its shard: written until it is durable, read back past
the page cache, read as a restart does."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from .blocks import Blocks
from .direct import opened
from .workers import Told


class Shard(NamedTuple):
    """`blocks`, from number `first` on, which begin in the file at block `at`."""

    path: str
    first: int
    blocks: int
    at: int = 0


def written(shard: Shard, blocks: Blocks, seconds: float, *, direct: bool, own: bool) -> Told:
    """Beside its name, on the device, in its place (`own`: the file is nobody else's), and the
    directory on the device; times of the clock that all processes have. `seconds`: so long it
    begins with another block."""
    began = time.monotonic()
    fd = opened(f"{shard.path}.new", os.O_WRONLY | os.O_CREAT, direct=direct)
    try:
        took = _all_written(fd, shard, blocks, began + seconds)
        told = time.monotonic()
        os.fsync(fd)
        synced = time.monotonic()
    finally:
        os.close(fd)
    if own:
        named(shard.path)
    return {"began_s": began, "told_s": told, "sync_s": synced - told, "took_s": took,
            "durable_s": time.monotonic(), "count": len(took)}  # fmt: skip


def named(path: str) -> None:
    """Put what was written in its place, and the directory on the device."""
    os.rename(f"{path}.new", path)  # noqa: PTH104
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)  # noqa: PTH120
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _all_written(fd: int, shard: Shard, blocks: Blocks, until: float) -> list[float]:
    view = memoryview(blocks.buffer)
    took, last = list[float](), time.monotonic()
    for number in range(shard.blocks):
        blocks.put(shard.first + number)
        place, done = (shard.at + number) * blocks.size, 0
        while done < blocks.size:
            done += os.pwrite(fd, view[done:], place + done)
        now = time.monotonic()
        took.append(now - last)
        last = now
        if now > until:
            break
    return took


def read_back(shard: Shard, blocks: Blocks, seconds: float, *, direct: bool) -> Told:
    """Blocks that are not what had been written, by their sums; `compared`: of so many."""
    wrong = compared = 0
    until = time.monotonic() + seconds
    for data in _blocks_of(shard, blocks.size, direct=direct):
        wrong += data is None or crc32(data) != blocks.sum_of(shard.first + compared)
        compared += 1
        if time.monotonic() > until:
            break
    return {"wrong": wrong, "compared": compared}


def restored(shard: Shard, block_bytes: int, seconds: float) -> Told:
    """Read in a row through the page cache, as loaders of checkpoints do."""
    began = last = time.monotonic()
    took, done = list[float](), 0
    for data in _blocks_of(shard, block_bytes, direct=False):
        now = time.monotonic()
        took.append(now - last)
        done += len(data or b"")
        last = now
        if now > began + seconds:
            break
    return {"began_s": began, "ended_s": last, "took_s": took, "done_bytes": done}


def _blocks_of(shard: Shard, size: int, *, direct: bool) -> Iterator[memoryview | None]:
    """Each in turn, in the same buffer; None where the file is at its end too early."""
    fd = opened(shard.path, os.O_RDONLY, direct=direct)
    try:
        view = memoryview(mmap.mmap(-1, size))  # its memory goes with it
        for number in range(shard.blocks):
            yield view if _filled(fd, view, (shard.at + number) * size) else None
    finally:
        os.close(fd)


def _filled(fd: int, view: memoryview, place: int) -> bool:
    done = 0
    while done < len(view):
        more = os.preadv(fd, [view[done:]], place + done)
        if not more:
            return False
        done += more
    return True
