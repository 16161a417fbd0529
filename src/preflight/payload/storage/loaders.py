"""Shards of a data set, and one worker's way through them: windows in no order, each at most once,
through read or through a map."""

from __future__ import annotations

import mmap
import os
import random
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import accumulate
from typing import Any, NamedTuple

from .workers import Told

#: What is written is of these bytes, from another one each time: nobody stores them as less.
_PIECE, _POOL, _STEP = 1 << 20, 5 << 20, 4099
#: So much is written between two looks at the clock.
_SYNCED = 8


#: Of all workers between two looks at the cache: more take memory, and tell nothing new.
MOST_WINDOWS = 160_000


class Shard(NamedTuple):
    """`size`: so much of it is on its device."""

    path: str
    size: int


Windows = Sequence[tuple[int, int]]  # number of the shard, offset
Reads = Callable[[Sequence[Shard], Windows, int, float], Told]


def written(shards: Sequence[Shard], until_s: float) -> list[Shard]:
    """As much of these as is on the device by then, of each at least a little."""
    pool, found, number = os.urandom(_POOL), list[Shard](), 0
    for path, size in shards:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            done = 0
            while done < size and (not done or time.monotonic() < until_s):
                for _ in range(_SYNCED):
                    at = number * _STEP % (_POOL - _PIECE)
                    number += 1
                    done += os.write(fd, pool[at : at + min(_PIECE, size - done)])
                    if done >= size:
                        break
                os.fsync(fd)
        finally:
            os.close(fd)
        found.append(Shard(path, done))
        if time.monotonic() > until_s:
            break
    return found


def windows(
    shards: Sequence[Shard], window: int, apart: int, seed: int, most: int = MOST_WINDOWS
) -> Windows:
    """So many offsets at most in no order, one in each `apart` windows, from another one with each
    seed."""
    draw = random.Random(seed)
    ranges = [_offsets(size, window, apart, draw) for _, size in shards]
    ends = list(accumulate(map(len, ranges)))
    picked = draw.sample(range(ends[-1]), min(most, ends[-1]))
    numbers = [bisect_right(ends, one) for one in picked]
    return [
        (number, ranges[number][one - ends[number]])
        for number, one in zip(numbers, picked)  # noqa: B905  Python 3.9
    ]


def _offsets(size: int, window: int, apart: int, draw: random.Random) -> range:
    first = draw.randrange(apart) * window
    return range(first if first + window <= size else 0, size - window + 1, apart * window)


def through_read(shards: Sequence[Shard], order: Windows, window: int, until_s: float) -> Told:
    """pread into memory that is used again; without reading ahead, which data sets that are larger
    than memory have no use for."""
    into = [memoryview(bytearray(window))]
    with ExitStack() as open_:
        fds = [_opened(shard, open_) for shard in shards]
        for fd in fds:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        read = os.preadv
        return _timed(lambda number, at: read(fds[number], into, at), order, window, until_s)


def through_map(shards: Sequence[Shard], order: Windows, window: int, until_s: float) -> Told:
    """Copied out of maps, which are given no advice: numpy.memmap and Arrow give none."""
    into = memoryview(bytearray(window))
    with ExitStack() as open_:
        maps = [_mapped(shard, open_) for shard in shards]

        def copied(number: int, at: int) -> int:
            into[:] = maps[number][1][at : at + window]
            return window

        return _timed(copied, order, window, until_s)


def through_advised(shards: Sequence[Shard], order: Windows, window: int, until_s: float) -> Told:
    """The same with advice: nothing around a window is read, and all of it at once."""
    into = memoryview(bytearray(window))
    with ExitStack() as open_:
        maps = [_mapped(shard, open_) for shard in shards]
        for mapped, _ in maps:
            mapped.madvise(mmap.MADV_RANDOM)

        def copied(number: int, at: int) -> int:
            mapped, seen = maps[number]
            mapped.madvise(mmap.MADV_WILLNEED, at, window)
            into[:] = seen[at : at + window]
            return window

        return _timed(copied, order, window, until_s)


def _opened(shard: Shard, open_: ExitStack) -> int:
    fd = os.open(shard.path, os.O_RDONLY)
    open_.callback(os.close, fd)
    return fd


def _mapped(shard: Shard, open_: ExitStack) -> tuple[mmap.mmap, memoryview]:
    with ExitStack() as only:
        fd = _opened(shard, only)
        mapped = open_.enter_context(mmap.mmap(fd, shard.size, mmap.MAP_SHARED, mmap.PROT_READ))
    return mapped, open_.enter_context(memoryview(mapped))


def _timed(
    read: Callable[[int, int], int], order: Windows, window: int, until_s: float
) -> dict[str, Any]:
    """`took_s` of each window; `began_s` and `ended_s` by the clock that all processes share."""
    took, now, clock = array("d", bytes(8 * len(order))), time.perf_counter, time.monotonic
    done = 0
    began, last = clock(), now()
    # Both clocks are one on Linux; perf_counter alone is asked for each window.
    late = last + until_s - began
    for number, at in order:
        if read(number, at) != window:
            return {"trouble": f"EIO: a shard ended at {at}, before its size"}
        then = now()
        took[done] = then - last
        last = then
        done += 1
        if last > late:
            break
    return {"took_s": [round(one, 8) for one in took[:done]], "began_s": began,
            "ended_s": clock(), "count": done}  # fmt: skip
