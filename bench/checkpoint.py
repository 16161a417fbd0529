"""The scan of a checkpoint beside zlib's own checksum of the same bytes in memory.

    python -m bench.checkpoint [--dir DIR] [--bytes 1073741824] [--rounds 7]

They take turns, so that what disturbs one disturbs the other; judged is the median of the ratios of
one worker. The file is in the page cache: what a disk gives is the business of io-bench.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from bench.table import Row, show
from bench.turns import middle_of
from preflight.payload.checkpoint.blocks import How, Runs, check
from preflight.payload.checkpoint.values import Way, best_way, look_plain, plain_pages
from preflight.payload.checkpoint.window import Window

BYTES, ROUNDS = 1 << 30, 7
#: Of zlib's own speed: with the checksum alone, and with values by numpy or torch too.
CRC, VALUES = 0.9, 0.7
#: GB/s where Python itself looks at values.
PLAIN_GBPS = 0.5


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def scanned(window: Window, how: How, dtype: str = "bfloat16") -> None:
    """The scan as the harness does it; the sum is held against the one of zlib elsewhere."""
    check(window, dtype, how, Runs())


def rows(path: Path, size: int, rounds: int) -> list[Row]:
    """One for each way of looking."""
    data = path.read_bytes()
    fd = os.open(path, os.O_RDONLY)
    window = Window(fd, 0, size)
    way, plain = best_way(), Way("Python", look_plain, plain_pages)
    ways = {
        "checksum": (How(way, values=False), CRC),
        f"checksum, values by {way.name}": (How(way), VALUES),
        "checksum, values by Python": (How(plain), 0.0),
    }
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    fastest: dict[str, float] = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        own_s = seconds(lambda: zlib.crc32(data))
        for name, (how, _) in ways.items():
            took_s = seconds(lambda how=how: scanned(window, how))  # type: ignore[misc]
            ratios[name].append(own_s / took_s)
            fastest[name] = max(fastest[name], size / took_s / 1e9)
    os.close(fd)
    found = []
    for name, (_, target) in ways.items():
        middle = middle_of(ratios[name]).middle
        speed = f"{middle:.2f} x zlib, {fastest[name]:.2f} GB/s at best"
        due = f">= {target:g} x zlib" if target else f">= {PLAIN_GBPS:g} GB/s"
        met = middle >= target if target else fastest[name] >= PLAIN_GBPS
        found.append(Row(name, speed, due, met))
    return found


def main() -> int:
    """Measure, print; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default=None, help="where the file of values is written")
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.dir) as folder:
        path = Path(folder) / "values"
        # bfloat16 between 2^-63 and 2: none of them is Inf or NaN.
        piece = bytes(byte & 0xBF if at % 2 else byte
                      for at, byte in enumerate(os.urandom(1 << 20)))  # fmt: skip
        path.write_bytes(piece * (asked.bytes >> 20))
        found = rows(path, (asked.bytes >> 20) << 20, asked.rounds)
    return show("the scan of a checkpoint, one file in the page cache", found)


if __name__ == "__main__":
    sys.exit(main())
