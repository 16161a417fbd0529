"""Reading data while a checkpoint is written: what that leaves to the loaders of a training run."""

from __future__ import annotations

import mmap
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence

from .direct import opened
from .workers import Told

WINDOW_BYTES = 128 << 10
#: Reading all but stops where it moves less than this share of what it moves alone, in a while of
#: so many seconds.
STARVED, WHILE_S = 0.10, 0.5


class Flags:
    """One for each of several processes, seen by all that are forked afterwards."""

    def __init__(self, count: int) -> None:
        self._count, self._map = count, mmap.mmap(-1, max(1, count))

    def put(self, number: int) -> None:
        """Of a process that is done."""
        self._map[number] = 1

    def all(self) -> bool:
        """Whether all are done."""
        return self._map[: self._count].count(1) == self._count


def windows_read(
    paths: Sequence[str], over: Callable[[], bool], seconds: float, *, direct: bool
) -> Told:
    """Windows of these files in no order, for so many seconds or until it is over. `whiles`: how
    many came in each WHILE_S."""
    files = [(opened(path, os.O_RDONLY, direct=direct), os.stat(path).st_size) for path in paths]  # noqa: PTH116
    began, whiles = time.monotonic(), [0]
    elapsed = 0.0
    try:
        buffer = mmap.mmap(-1, WINDOW_BYTES)
        for fd, at in _windows(files):
            os.preadv(fd, [buffer], at)
            elapsed = time.monotonic() - began
            whiles += [0] * (int(elapsed / WHILE_S) + 1 - len(whiles))
            whiles[-1] += 1
            if elapsed > seconds or over():
                break
    finally:
        for fd, _ in files:
            os.close(fd)
    return {"count": sum(whiles), "elapsed_s": elapsed, "whiles": whiles, "began_s": began}


def _windows(files: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Each once, then all over again, cold each time."""
    every = [
        (fd, at) for fd, size in files for at in range(0, size - WINDOW_BYTES + 1, WINDOW_BYTES)
    ]
    while every:
        for fd, _ in files:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        random.shuffle(every)
        yield from every


def starved_s(whiles: Sequence[int], alone_per_s: float) -> float:
    """Seconds, of the whole whiles, in which it all but stopped."""
    return WHILE_S * sum(one < STARVED * alone_per_s * WHILE_S for one in whiles[:-1])
