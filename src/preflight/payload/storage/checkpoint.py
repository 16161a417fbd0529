"""Checkpoints as training writes and reads them: every rank its shard, all at once, until it is
durable; as a restart reads them; and what a save leaves to those who read data meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from .. import alone
from .beside import WINDOW_BYTES, Flags, starved_s, windows_read
from .blocks import block_bytes
from .cached import dropped
from .direct import takes_direct
from .others import Others, others_of
from .room import Room, Row
from .saving import LATE, Job, Way, is_hung, saved, spread, trouble_in
from .shards import Shard, restored
from .watched import within
from .workers import BEYOND_S, Told, together, trouble_of

_WRITERS = 4
#: The checkpoint before stays until the new one is durable.
_COPIES = 2
#: A first save of this share of the bytes tells how many there is time for; a part has this share
#: of the time, and what is read back of a save as much again.
_PILOT, _PART = 1 / 16, 0.1
_LEAST_BLOCKS = 4
#: Beside a save a reader is no faster than alone by more than chance.
_NO_FASTER = 1.2
_PARTS = ("save", "save, direct", "save, one file", "restore", "save while reading")


def checkpoint(room: Room) -> Iterator[Row]:
    """Rows of saves, of a restart, and of a save beside reading. The first that fails is the last:
    what had been measured before stays."""
    there: Sequence[Shard] = ()
    with others_of(room) as others:
        job, failed = _job(room)
        if failed:
            yield {"part": _PARTS[0], "way": "write", **failed}
            return
        others.begin()
        for part in _PARTS:
            row, there = _tried(part, job, there, others)
            if row:
                yield {"part": part, "note": others.note, **row}
            yield from others.done(part, row, there)
            if row.get("trouble"):
                return
        others.end()


def _job(room: Room) -> tuple[Job, Row]:
    """As much as there is room and time for; where nothing can be written, why."""
    writers = room.plan.writers or len(alone.visible_gpus()) or _WRITERS
    shard = max(1, room.size_bytes // _COPIES // writers)
    size = block_bytes(shard)
    most = max(1, shard // size)
    pilot = Job(room.folder, writers, max(1, int(most * _PILOT)), size, _PART * room.seconds,
                takes_direct(room.folder), room.memory)  # fmt: skip
    row, _, _ = saved(pilot, Way())
    if row["trouble"]:
        return pilot, {key: row[key] for key in ("trouble", "hung") if key in row}
    in_time = int(pilot.seconds * row["done_bytes"] / row["elapsed_s"] / size / writers)
    return pilot._replace(blocks=min(most, max(_LEAST_BLOCKS, in_time))), {}


def _tried(
    part: str, job: Job, there: Sequence[Shard], others: Others
) -> tuple[Row, Sequence[Shard]]:
    # It writes, reads back, and reads before it writes, each in its time or as it hangs.
    within(3 * (LATE * job.seconds + BEYOND_S), f"a checkpoint was tried: {part}")
    try:
        return _done(part, job, there, others)
    except OSError as error:
        way = "read" if part == "restore" else "write"
        return {"way": way, "trouble": trouble_of(error)}, there


def _done(
    part: str, job: Job, there: Sequence[Shard], others: Others
) -> tuple[Row, Sequence[Shard]]:
    """A part's row, empty where it cannot be done here, and the shards that lie there then."""
    if part == "restore":
        return restore(job, others.shards_of_next(there, job.block_bytes)), there
    if part == "save while reading":
        return _save_while_reading(job, there), ()
    way = Way(direct="direct" in part, one="one file" in part)
    if way.direct and not job.direct:
        return {}, there
    found = saved(job, way)
    if way.one:
        if found.shards:
            os.unlink(found.shards[0].path)  # noqa: PTH108
        return found.row, there
    return found.row, found.shards


def restore(job: Job, shards: Sequence[Shard]) -> Row:
    """Every shard is read at once, none of it in memory."""
    cold = dropped([one.path for one in shards])
    limit = LATE * job.seconds
    told = together(
        len(shards), lambda at: restored(shards[at], job.block_bytes, limit), limit
    )  # fmt: skip
    return {
        "way": "read", "processes": len(shards), "block_bytes": job.block_bytes,
        **spread(told, "ended_s", job.block_bytes), "trouble": trouble_in(told, "reader"),
        "through": "memory" if job.memory else "device" if cold else "page cache",
        **({"hung": True} if is_hung(told) else {}),
    }  # fmt: skip


def _save_while_reading(job: Job, shards: Sequence[Shard]) -> Row:
    """Somebody reads the checkpoint before while the next is written."""
    paths, limit = [one.path for one in shards], LATE * job.seconds

    def reads(done: Flags | None) -> Told:
        over = done.all if done else bool
        seconds = limit if done else job.seconds
        return windows_read(paths, over, seconds, direct=job.direct)

    before = _alone(reads, job)
    found = saved(job, Way(), beside=reads)
    during = found.beside[0]
    trouble = found.row["trouble"] or trouble_in([before, during], "reader")
    if not trouble and _per_s(during) > _NO_FASTER * _per_s(before):
        # What held up the first has ended, and the save would look harmless beside it.
        before = max(before, _alone(reads, job), key=_per_s)
    return {**found.row, **_reader(before, during), "trouble": trouble}


def _alone(reads: Callable[[Flags | None], Told], job: Job) -> Told:
    """Twice: the first reading has whatever the parts before it left to the device."""
    together(1, lambda _: reads(None), job.seconds)
    return together(1, lambda _: reads(None), job.seconds)[0]


def _per_s(told: Told) -> float:
    return told["count"] / told["elapsed_s"] if told.get("elapsed_s") else 0.0


def _reader(before: Told, during: Told) -> Row:
    """What the save has left to it."""
    if not before.get("count") or not during.get("elapsed_s"):
        return {}
    alone_per_s, per_s = (one["count"] / one["elapsed_s"] for one in (before, during))
    return {
        "reader_alone_mbps": round(alone_per_s * WINDOW_BYTES / 1e6, 3),
        "reader_mbps": round(per_s * WINDOW_BYTES / 1e6, 3),
        "reader_kept_percent": round(100 * per_s / alone_per_s, 2),
        "reader_starved_s": starved_s(during["whiles"], alone_per_s),
    }
