"""Loaders of io-bench beside fio's equivalent: the same files, processes, blocks and caching.

    python -m bench.loaders [--dir DIR] [--bytes 268435456] [--pairs 9] [--workers 2]

They take turns, so that what disturbs one disturbs the other; a pair gives a ratio of rates, and
judged is the median of the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.table import Row, show
from bench.turns import middle_of
from preflight.payload.storage.cached import dropped
from preflight.payload.storage.loaders import (
    Reads,
    Shard,
    Windows,
    through_map,
    through_read,
    windows,
    written,
)
from preflight.payload.storage.workers import Told, together

BYTES, PAIRS, WORKERS = 256 << 20, 9, 2
WINDOW, SHARD = 128 << 10, 16 << 20
TARGET = 0.9
#: Passes over what is in the page cache, of which one is over too soon to be timed.
PASSES = 16
_LONGEST_S = 600.0


class Way(NamedTuple):
    """One way of reading, and fio's engine for it."""

    name: str
    reads: Reads
    engine: str
    cold: bool


WAYS = (
    Way("read, cold", through_read, "psync", cold=True),
    Way("mmap, cold", through_map, "mmap", cold=True),
    Way("read, cached", through_read, "psync", cold=False),
    Way("mmap, cached", through_map, "mmap", cold=False),
)


class Data(NamedTuple):
    """`shards` and `order` of each worker."""

    shards: Sequence[Sequence[Shard]]
    order: Sequence[Windows]

    def paths(self) -> list[str]:
        return [one.path for each in self.shards for one in each]

    def bytes(self) -> int:
        return WINDOW * sum(map(len, self.order))


def ours(way: Way, data: Data) -> float:
    """MB/s of all workers, from the first that began to the last that ended."""
    until = time.monotonic() + _LONGEST_S

    def work(number: int) -> Told:
        # As fio does: where others are at work, a session has a share of the processors (sched(7),
        # "The autogroup feature").
        os.setsid()
        return way.reads(data.shards[number], data.order[number], WINDOW, until)

    told = together(len(data.order), work, _LONGEST_S)
    if trouble := next((one["trouble"] for one in told if one.get("trouble")), ""):
        sys.exit(f"error: {trouble}")
    seconds: float = max(one["ended_s"] for one in told) - min(one["began_s"] for one in told)
    return data.bytes() / seconds / 1e6


def fios(way: Way, data: Data, folder: Path) -> float:
    """MB/s of fio: each window once in an order of its own, as often as ours. Like ours it reads
    nothing ahead, and gives maps no advice."""
    advice = "random" if way.engine == "psync" else "0"
    size = sum(one.size for one in data.shards[0])
    job = ["[global]", f"ioengine={way.engine}", "direct=0", "invalidate=0", "group_reporting",
           f"fadvise_hint={advice}", "rw=randread", f"bs={WINDOW}", "randrepeat=0",
           f"size={size}", f"loops={1 if way.cold else PASSES}", "file_service_type=random",
           f"openfiles={len(data.shards[0])}"]  # fmt: skip
    for number, shards in enumerate(data.shards):
        job += [f"[worker-{number}]", f"filename={':'.join(one.path for one in shards)}"]
    file = folder / "job.fio"
    file.write_text("\n".join(job) + "\n")
    done = subprocess.run(
        ["fio", "--output-format=json", str(file)], capture_output=True, text=True, check=False,
        cwd=folder,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"error: fio: {(done.stderr or done.stdout)[:500]}")
    [found] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    if found["read"]["io_bytes"] != data.bytes():
        sys.exit(f"error: fio read {found['read']['io_bytes']} bytes of {data.bytes()}")
    return float(found["read"]["bw_bytes"]) / 1e6


def pair(way: Way, data: Data, folder: Path, turns: Sequence[str]) -> dict[str, float]:
    """MB/s of both, in this order."""
    found = {}
    for name in turns:
        if way.cold and not dropped(data.paths()):
            sys.exit("error: the page cache of this file system does not let go: another --dir")
        found[name] = ours(way, data) if name == "ours" else fios(way, data, folder)
    return found


def compared(way: Way, shards: Sequence[Sequence[Shard]], pairs: int, folder: Path) -> Row:
    """The median ratio of so many pairs, the first of which warms up."""
    draw, found = random.Random(1), list[dict[str, float]]()
    for number in range(pairs + 1):
        order = [windows(one, WINDOW, 1, 1000 * number + at) for at, one in enumerate(shards)]
        if not way.cold:
            order = [list(one) * PASSES for one in order]
        turns = ["ours", "fio's"]
        draw.shuffle(turns)
        found.append(pair(way, Data(shards, order), folder, turns))
    ratio = middle_of([one["ours"] / one["fio's"] for one in found[1:]])
    rates = [f"{median(one[name] for one in found[1:]):,.0f}" for name in ("ours", "fio's")]
    reached = f"{ratio.middle:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] ({' of '.join(rates)} MB/s)"
    return Row(f"{way.name}, of fio's {way.engine}", reached, f"{TARGET}", ratio.middle >= TARGET)


def main() -> int:
    parser = argparse.ArgumentParser(description="Loaders of io-bench beside fio.")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        count = max(1, options.bytes // options.workers // SHARD)
        until = time.monotonic() + _LONGEST_S
        shards = [
            written([Shard(str(folder / f"{worker}-{at}"), SHARD) for at in range(count)], until)
            for worker in range(options.workers)
        ]
        rows = [compared(way, shards, options.pairs, folder) for way in WAYS]
    title = f"Windows of 128 KiB, {options.workers} processes, {options.bytes >> 20} MiB"
    return show(title, rows)


if __name__ == "__main__":
    sys.exit(main())
