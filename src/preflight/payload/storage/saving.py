"""One save of a checkpoint: written by all writers at once until it is durable, then read back by
others and held against sums of what was written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .beside import Flags
from .blocks import Blocks
from .cached import dropped, resident
from .direct import written_to_device
from .room import Row, times
from .shards import Shard, named, read_back, written
from .workers import Told, together

#: A writer that is far slower than was thought begins no block after so many times its time.
LATE = 3


class Way(NamedTuple):
    """`direct`: past the page cache. `one`: all writers into one file, each at its place."""

    direct: bool = False
    one: bool = False


class Job(NamedTuple):
    """Where, by how many writers, so many blocks by each. `seconds`: what a save should take.
    `direct`: files there are read and written past the page cache; `memory`: it is no device."""

    folder: str
    writers: int
    blocks: int
    block_bytes: int
    seconds: float
    direct: bool
    memory: bool


class Saved(NamedTuple):
    """What is told of it, what lies there now, and what was told beside it."""

    row: Row
    shards: Sequence[Shard]
    beside: Sequence[Told]


def saved(job: Job, way: Way, beside: Callable[[Flags], Told] | None = None) -> Saved:
    """Its row, and the shards as far as they were written. `beside`: the work of one more process,
    until the writers are done; the last of `told` is what it tells."""
    blocks = Blocks(job.writers * job.blocks, job.block_bytes)
    shards = _laid(job, way)
    done, limit = Flags(job.writers), LATE * job.seconds

    def work(number: int) -> Told:
        if number == job.writers and beside:
            return beside(done)
        try:
            return written(shards[number], blocks, limit, direct=way.direct, own=not way.one)
        finally:
            done.put(number)

    before = written_to_device(job.folder)
    told = together(job.writers + (beside is not None), work, limit)
    writers, others = told[: job.writers], told[job.writers :]
    if is_hung(told):  # nothing there is touched any more
        return Saved({**_row(writers, job), "hung": True}, (), others)
    if way.one and not trouble_in(writers):
        named(shards[0].path)
        writers[-1] = {**writers[-1], "durable_s": time.monotonic()}
    row = _row(writers, job)
    row |= _on_device(job, before, row["done_bytes"])
    there = [
        shards[at]._replace(blocks=one["count"]) for at, one in enumerate(writers) if "count" in one
    ]
    if not there or (way.one and row["trouble"]):
        return Saved(row, (), others)
    return Saved({**row, **_read_back(there, blocks, job)}, there, others)


def _laid(job: Job, way: Way) -> list[Shard]:
    """What each writes, and where."""
    return [
        Shard(f"{job.folder}/{'one' if way.one else number}", number * job.blocks, job.blocks,
              number * job.blocks if way.one else 0)
        for number in range(job.writers)
    ]  # fmt: skip


def trouble_in(told: Sequence[Told], who: str = "writer") -> str:
    """The first that failed, and why; "" where none did."""
    each = (f"{who} {at}: {one['trouble']}" for at, one in enumerate(told) if one.get("trouble"))
    return next(each, "")


def is_hung(told: Sequence[Told]) -> bool:
    """Whether one did not end in time: then the file system does not answer."""
    return any(one.get("hung") for one in told)


def spread(told: Sequence[Told], ends: str, block_bytes: int) -> Row:
    """Figures of all processes that came to their end, from the first that began (began_at: by the
    host's clock) to the last that was done, and of each."""
    whole = [one for one in told if ends in one]
    if not whole:
        return {"done_bytes": 0, "elapsed_s": 0.0, "count": 0, "us": {}, "each_mbps": []}
    began = min(one["began_s"] for one in whole)
    bytes_ = [len(one["took_s"]) * block_bytes for one in whole]
    took_s = [max(one[ends] - began, 1e-6) for one in whole]
    return {
        "done_bytes": sum(bytes_), "elapsed_s": round(max(took_s), 6),
        "count": sum(bytes_) // block_bytes,
        "began_at": round(time.time() - time.monotonic() + began, 3),
        "us": times([each for one in whole for each in one["took_s"]]),
        "each_mbps": [
            round(done / took_s[at] / 1e6, 3) for at, done in enumerate(bytes_)
        ],
    }  # fmt: skip


def _row(told: Sequence[Told], job: Job) -> Row:
    """stall_s: until the last call that writes had returned; durable_s: until the last directory
    was on the device; sync_s: the longest fsync of a file."""
    whole = [one for one in told if "durable_s" in one]
    row = {
        "way": "write", "processes": job.writers, "block_bytes": job.block_bytes,
        **spread(told, "durable_s", job.block_bytes), "trouble": trouble_in(told),
        "through": "memory" if job.memory else "device",
    }  # fmt: skip
    if whole:
        began = min(one["began_s"] for one in whole)
        row |= {"durable_s": row["elapsed_s"],
                "stall_s": round(max(one["told_s"] for one in whole) - began, 6),
                "sync_s": round(max(one["sync_s"] for one in whole), 6)}  # fmt: skip
    return row


def _on_device(job: Job, before: int | None, done_bytes: int) -> Row:
    """How much of what was said to be durable the device below was given meanwhile, other
    processes' writes with it."""
    after = written_to_device(job.folder)
    if before is None or after is None or not done_bytes:
        return {}
    return {"reached_percent": round(100 * (after - before) / done_bytes, 2)}


def _read_back(shards: Sequence[Shard], blocks: Blocks, job: Job) -> Row:
    """By other processes. cached_bytes: of the page cache that the save has left full."""
    paths = sorted({one.path for one in shards})
    cached, cold = _cached_bytes(paths), dropped(paths)
    told = together(
        len(shards), lambda at: read_back(shards[at], blocks, LATE * job.seconds,
                                          direct=job.direct), LATE * job.seconds,
    )  # fmt: skip
    through = "memory" if job.memory else "device" if job.direct or cold else "page cache"
    row = {"cached_bytes": cached, "read_back": through,
           "wrong": sum(one.get("wrong", 0) for one in told),
           "compared": sum(one.get("compared", 0) for one in told)}  # fmt: skip
    all_ = sum(one.blocks for one in shards)
    if row["compared"] < all_:
        row["note"] = f"of a save {row['compared']} of {all_} blocks were read back in time"
    trouble = trouble_in(told, "read back, shard")
    return {**row, "trouble": trouble, "hung": is_hung(told)} if trouble else row


def _cached_bytes(paths: Sequence[str]) -> int:
    found = 0
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            found += resident(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
    return found
