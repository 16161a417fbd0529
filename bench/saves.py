"""Saves and restarts of io-bench beside fio's equivalent: as many processes, files and blocks, past
the page cache or through it. Of saves until the last write returned: fio counts no sync at the end.

    python -m bench.saves [--dir DIR] [--bytes 268435456] [--pairs 9] [--writers 2]

They take turns, so that what disturbs one disturbs the other; a pair gives a ratio of rates, and
judged is the median of the ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.table import Row, show
from bench.turns import middle_of
from preflight.payload.storage.checkpoint import restore
from preflight.payload.storage.direct import takes_direct
from preflight.payload.storage.saving import Job, Way, saved

BYTES, PAIRS, WRITERS, BLOCK = 256 << 20, 9, 2, 4 << 20
#: The product's own target.
TARGET = 0.9
_LONGEST_S = 600.0


class Kind(NamedTuple):
    """`ours` gives a row of io-bench; `options` are fio's."""

    name: str
    ours: Callable[[Job], dict[str, Any]]
    options: tuple[str, ...]


_WRITES = ("rw=write", "end_fsync=1", "fallocate=none", "create_on_open=1", "unlink=1")
KINDS = (
    Kind("save", lambda job: saved(job, Way()).row, (*_WRITES, "direct=0")),
    Kind("save, direct", lambda job: saved(job, Way(direct=True)).row, (*_WRITES, "direct=1")),
    Kind("restore", lambda job: restore(job, saved(job, Way()).shards),
         ("rw=read", "direct=0", "fadvise_hint=0", "unlink=1")),
)  # fmt: skip


def ours(kind: Kind, job: Job) -> float:
    """MB/s of all processes, from the first that began to the last that was done."""
    row = kind.ours(job)
    if row["trouble"]:
        sys.exit(f"error: {row['trouble']}")
    for path in Path(job.folder).iterdir():
        path.unlink()
    rate: float = row["done_bytes"] / row.get("stall_s", row["elapsed_s"]) / 1e6
    return rate


def fios(kind: Kind, job: Job) -> float:
    words = ["ioengine=psync", f"bs={job.block_bytes}", f"size={job.blocks * job.block_bytes}",
             f"numjobs={job.writers}", "group_reporting", *kind.options]  # fmt: skip
    done = subprocess.run(
        ["fio", "--output-format=json", "--name=a", *(f"--{one}" for one in words)],
        capture_output=True, text=True, check=False, cwd=job.folder,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"error: fio: {(done.stderr or done.stdout)[:500]}")
    [found] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    rate: float = max(found["read"]["bw_bytes"], found["write"]["bw_bytes"])
    return rate / 1e6


def compared(kind: Kind, job: Job, pairs: int) -> Row:
    """The median ratio of so many pairs, the first of which warms up."""
    draw, found = random.Random(1), list[dict[str, float]]()
    for _ in range(pairs + 1):
        turns = [("ours", ours), ("fio's", fios)]
        draw.shuffle(turns)
        found.append({name: turn(kind, job) for name, turn in turns})
    ratio = middle_of([one["ours"] / one["fio's"] for one in found[1:]])
    rates = [f"{median(one[name] for one in found[1:]):,.0f}" for name in ("ours", "fio's")]
    reached = f"{ratio.middle:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] ({' of '.join(rates)} MB/s)"
    return Row(f"{kind.name}, of fio's", reached, f"{TARGET}", ratio.middle >= TARGET)


def main() -> int:
    parser = argparse.ArgumentParser(description="Saves of io-bench beside fio.")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--writers", type=int, default=WRITERS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        blocks = max(1, options.bytes // options.writers // BLOCK)
        direct = takes_direct(name)
        job = Job(name, options.writers, blocks, BLOCK, _LONGEST_S, direct, memory=False)
        kinds = [one for one in KINDS if direct or "direct" not in one.name]
        rows = [compared(one, job, options.pairs) for one in kinds]
    title = f"Blocks of 4 MiB, {options.writers} processes, {options.bytes >> 20} MiB"
    return show(title, rows)


if __name__ == "__main__":
    sys.exit(main())
