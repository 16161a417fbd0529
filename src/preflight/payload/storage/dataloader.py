"""A data set as loaders read it: workers, each with shards of its own, windows of them in no order.
Cold, past the page cache, and again from it; through read and through maps."""

from __future__ import annotations

import mmap
import os
import time
from array import array
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from .cached import dropped, resident
from .loaders import (
    MOST_WINDOWS,
    Reads,
    Shard,
    Windows,
    through_advised,
    through_map,
    through_read,
    windows,
    written,
)
from .mounts import mount_of
from .others import Others
from .room import Room, Row, times
from .watched import within
from .workers import BEYOND_S, Told, together

_MOST_WORKERS = 8
#: A worker has several shards, and of these few enough to hold all open.
_SHARD_BYTES, _LEAST_SHARDS, _MOST_SHARDS = 64 << 20, 4, 256
#: Of the time: files are written; of what then is left, each way of reading them.
_WRITING = 0.3
_ADVISED = "mmap, advised"
_COLD = (("mmap", 0.35), (_ADVISED, 0.15), ("read", 0.4))
_CACHED = (("read", 0.05), ("mmap", 0.05))
#: What reading has at least: of all the time, and a round; the longest look at the page cache.
_LEAST, _LEAST_S, _LOOKS_S = 0.3, 0.05, 20.0
_LEAST_AGAIN, _MOST_AGAIN = 512, 10
#: File systems with a cache of their own beside the page cache: what left the one is in the other.
_OWN_CACHE = frozenset({"zfs"})
#: What the touch of a byte brings has come when nothing more comes in this while.
_SETTLES_S, _LOOKS = 0.02, 50
_READS: dict[str, Reads] = {
    "read": through_read, "mmap": through_map, _ADVISED: through_advised,
}  # fmt: skip
#: Where a map brings more than this for a byte that is used, advice to it is tried.
_MUCH = 2.0


class _Set(NamedTuple):
    """`shards` of each worker. `through`: what is read from after files were told to leave the page
    cache, where they do."""

    shards: Sequence[Sequence[Shard]]
    window: int
    through: str

    def paths(self) -> list[str]:
        return [one.path for shards in self.shards for one in shards]


class _Sum:
    """What the workers of all rounds told."""

    def __init__(self, workers: int) -> None:
        self.took_s, self.elapsed_s, self.trouble, self.hung = array("d"), 0.0, "", False
        self.each = [(0, 0.0)] * workers
        self.began_at = time.time()

    def add(self, told: Sequence[Told]) -> None:
        """One round, whose time is from the first that began to the last that ended."""
        done = [one for one in told if one.get("count")]
        if done:
            began = min(one["began_s"] for one in done)
            self.elapsed_s += max(one["ended_s"] for one in done) - began
        for number, one in enumerate(told):
            if one.get("count"):
                count, seconds = self.each[number]
                took = one["ended_s"] - one["began_s"]
                self.each[number] = count + one["count"], seconds + took
                self.took_s.extend(one["took_s"])
        self.trouble = self.trouble or trouble_in(told)
        self.hung = self.hung or any(one.get("hung") for one in told)

    def row(self, part: str, through: str, window: int) -> Row:
        count = len(self.took_s)
        rates = [round(one * window / took / 1e6, 3) for one, took in self.each if took > 0]
        return {"part": part, "way": "read", "processes": len(self.each), "block_bytes": window,
                "done_bytes": count * window, "count": count, "us": times(self.took_s),
                "elapsed_s": round(self.elapsed_s, 6), "each_mbps": rates, "through": through,
                "began_at": self.began_at, "trouble": self.trouble,
                **({"hung": True} if self.hung else {})}  # fmt: skip


def dataloader(room: Room) -> Iterator[Row]:
    """Rows of each way, cold, then cached. What hangs is not asked again; nobody waits for a host
    that has failed."""
    through = False
    try:
        through = yield from _rows(room)
    finally:
        if not through and room.meeting:
            room.meeting.leave()


def _rows(room: Room) -> Generator[Row, None, bool]:
    """Whether it came to its end."""
    began = time.monotonic()
    data, trouble = _written(room, began + _WRITING * room.seconds)
    if trouble:
        yield {"part": "read", "way": "read", "trouble": trouble}
        return False
    left = max(began + room.seconds - time.monotonic(), _LEAST * room.seconds)
    others, done, row = Others(room.folder, room.meeting), list[Windows](), Row()
    for way, share in _COLD:
        if way == _ADVISED and not _brings_much(row):
            continue
        if way != _ADVISED:
            others.begin()
        row, done = _cold(data, way, share * left)
        yield {**row, "note": others.note}
        if row.get("hung"):
            return False
        if way != _ADVISED:
            yield from others.done(way, row, ())
    if row["through"] == "device":
        for way, share in _CACHED:
            yield _cached(data, way, done, share * left)
    return True


def _brings_much(row: Row) -> bool:
    return bool(row.get("brought_bytes", 0) > _MUCH * row["done_bytes"])


def trouble_in(told: Sequence[Told]) -> str:
    """The first that one of them had."""
    return next((str(one["trouble"]) for one in told if one.get("trouble")), "")


def _written(room: Room, until_s: float) -> tuple[_Set, str]:
    """Shards, as many as there is room and time for; why there are none."""
    workers = room.plan.workers or max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0))))
    window, each = room.plan.window_bytes, room.size_bytes // workers
    size = min(max(_SHARD_BYTES, each // _MOST_SHARDS), each // _LEAST_SHARDS) // window * window
    if not size:
        return _Set((), window, ""), "too few bytes for its workers: --size, --workers, --window"

    def work(number: int) -> Told:
        paths = [f"{room.folder}/{number:03}-{at:03}" for at in range(each // size)]
        return {"shards": written([Shard(path, size) for path in paths], until_s)}

    told = together(workers, work, max(0.0, until_s - time.monotonic()))
    shards = [[Shard(*each) for each in one.get("shards", ())] for one in told]
    return _Set(shards, window, _through(room)), trouble_in(told)


def _through(room: Room) -> str:
    if room.memory:
        return "memory"
    kind = mount_of(os.path.realpath(room.folder)).kind
    return "page cache" if kind in _OWN_CACHE else "device"


def _cold(data: _Set, way: str, seconds: float) -> tuple[Row, list[Windows]]:
    """Rounds, before each of which all shards are told to leave the page cache; the windows that
    were read in the last."""
    within(seconds + 2 * (BEYOND_S + _LOOKS_S), f"a loader read: {way}")
    until_s = time.monotonic() + seconds
    found, cold, brought = _Sum(len(data.shards)), data.through == "device", 0
    apart = apart_in(data.shards[0][0], data.window) if way == "mmap" else 1
    most, done = max(1, MOST_WINDOWS // len(data.shards)), list[Windows]()
    for number in range(1 << 20):
        cold = _left(data)[1] and cold
        order = [windows(one, data.window, apart, number * 1000 + at, most)
                 for at, one in enumerate(data.shards)]  # fmt: skip
        told = _round(data, way, order, until_s)
        found.add(told)
        brought += 0 if found.hung else _left(data, keep=True)[0]
        done = [one[: each.get("count", 0)] for one, each in zip(order, told)]  # noqa: B905
        if found.trouble or time.monotonic() > until_s - _LEAST_S:
            break
    through = data.through if cold or data.through == "memory" else "page cache"
    more = {"brought_bytes": brought} if through == "device" and not found.trouble else {}
    return {**found.row(way, through, data.window), **more}, done


def _cached(data: _Set, way: str, order: Sequence[Windows], seconds: float) -> Row:
    """The same windows again, and again if they are few: they are in the page cache."""
    until_s = time.monotonic() + seconds
    found = _Sum(len(data.shards))
    order = [[*one] * (1 + _LEAST_AGAIN // max(1, len(one))) for one in order]
    for _ in range(_MOST_AGAIN):
        found.add(_round(data, way, order, until_s))
        if found.trouble or time.monotonic() > until_s - _LEAST_S:
            break
    return found.row(f"{way}, cached", "page cache", data.window)


def _round(data: _Set, way: str, order: Sequence[Windows], until_s: float) -> list[Told]:
    until_s = max(until_s, time.monotonic() + _LEAST_S)

    def work(number: int) -> Told:
        return _READS[way](data.shards[number], order[number], data.window, until_s)

    return together(len(order), work, until_s - time.monotonic())


def _left(data: _Set, *, keep: bool = False) -> tuple[int, bool]:
    """Bytes of all shards that are in the page cache, and whether they left it when told to; not
    told to if they are to be kept. By a process that can be left if it hangs."""

    def look(_number: int) -> Told:
        if keep:
            return {"bytes": sum(map(_resident, data.paths()))}
        return {"left": dropped(data.paths())}

    [told] = together(1, look, _LOOKS_S)
    return int(told.get("bytes", 0)), told.get("left") is True


def _resident(path: str) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        return resident(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def apart_in(shard: Shard, window: int) -> int:
    """How many windows from one to the next, so that what a map brings around one is not another:
    as many as the touch of a byte brings, and one."""
    path, size = shard

    def look(_number: int) -> Told:
        return {"bytes": _brought(path, size) if dropped([path]) else 0}

    [told] = together(1, look, _LOOKS_S)
    return 1 + -(-int(told.get("bytes", 0)) // window)


def _brought(path: str, size: int) -> int:
    """Bytes in the page cache after one in the middle was read through a map."""
    fd = os.open(path, os.O_RDONLY)
    try:
        with mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
            mapped[size // 2]
        before = now = resident(fd, size)
        for _ in range(_LOOKS):
            time.sleep(_SETTLES_S)
            before, now = now, resident(fd, size)
            if now == before:
                break
        return now
    finally:
        os.close(fd)
