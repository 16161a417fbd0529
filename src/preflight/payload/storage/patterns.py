"""What training does to storage and fio has no job for: each pattern tells rows, one a line.

A row: {"kind": "pattern", "name": "small-files", "part": "create", "way": "write", ...}
  name, part   the pattern, and which part or variant of it; together they occur once
  way          read | write | files (rates of calls, not of bytes)
  processes, block_bytes, done_bytes, elapsed_s, count (of blocks, files or calls)
  us           of one block, file or call: {"mean", "p50", "p99", "p999", "max"}
  through      device | page cache | memory: what the figures are of
  each_mbps    of each process, 1e6 bytes a second
  wrong        blocks that were not what had been written; absent where nothing was compared
  brought_bytes  of the files in the page cache after cold reads, all rounds together
  durable_s, stall_s, ...  what belongs to one pattern alone
  trouble      why it failed, "" where it did not; what it had told before stays
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator

from .checkpoint import checkpoint
from .dataloader import dataloader
from .plan import Plan
from .room import Room, Row
from .small_files import small_files
from .workers import trouble_of

#: By name: what it yields are rows without kind and name.
PATTERNS: dict[str, Callable[[Room], Iterator[Row]]] = {
    "dataloader": dataloader,
    "small-files": small_files,
    "checkpoint": checkpoint,
}
#: Shares of the bytes and seconds of a bench. They are at work one after the other.
_SHARES = {"fio": (0.5, 0.5), "dataloader": (0.2, 0.2), "small-files": (0.05, 0.1),
           "checkpoint": (0.25, 0.2)}  # fmt: skip
ALL = ("fio", *PATTERNS)


def shared(plan: Plan, name: str) -> tuple[float, float]:
    """The shares of one of those that are asked for."""
    asked = [_SHARES[one] for one in plan.patterns]
    size, seconds = _SHARES[name]
    return size / sum(one for one, _ in asked), seconds / sum(one for _, one in asked)


def rows(name: str, room: Room) -> Iterator[Row]:
    """All rows of a pattern, in a folder that it leaves empty."""
    place = f"{room.folder}/{name}"
    about = {"kind": "pattern", "name": name}
    try:
        os.mkdir(place)  # noqa: PTH102
        for row in PATTERNS[name](room._replace(folder=place)):
            yield {**about, "trouble": "", **row}
    except OSError as error:
        yield {**about, "part": "", "way": "files", "trouble": trouble_of(error)}
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(place)
