"""Training logs of a gigabyte read: how long against grep counting one word, how fast where every
line is a step, and in how much memory.

    python -m bench.training_log [--bytes 1000000000] [--pairs 5]

Of the first log one line in a hundred is a step; grep -c and the reader take turns, and the median
of the ratios is judged. Of the second every line is one: megabytes a second of the processor, by
the reader alone. The first is read once more where there is no grep.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.fleet import Run, megabytes, watched
from bench.table import Row, show

BYTES = 1_000_000_000
PAIRS = 5
#: Times grep -c; without grep, of a smaller log.
TARGET = 4.0
TARGET_ALONE = 100.0
TARGET_MB_S = 80.0
PEAK_BYTES = 120_000_000
_ALONE_BYTES = 100_000_000
_ONE_IN = 100
#: Reads one log, and says how many seconds of the processor that took, and how many steps it has.
_READ = """
import sys, time
from pathlib import Path
from preflight.logs.training.log import read
found = read(Path(sys.argv[1]), lambda _: None)
print(time.process_time(), sum(one.lines for one in found.series), file=sys.stderr)
"""
_STEP = (
    " [2026-01-02 03:04:{0:02}.678901] iteration {1:8}/ 9000000 | consumed samples: {2:12} | "
    "elapsed time per iteration (ms): {3:.1f} | throughput per GPU (TFLOP/s/GPU): {4:.1f} | "
    "learning rate: 2.900000E-04 | global batch size:   256 | lm loss: {5:.6E} | "
    "loss scale: 1.0 | grad norm: {6:.3f} | num zeros: 0 | params norm: 812.444 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
_WORDS = ("the", "model", "rank", "loading", "worker", "queue", "tensor", "buffer", "data", "init",
          "parallel", "group", "cache", "node", "memory", "config", "value", "size", "shape",
          "debug", "info", "batch", "fetch", "done", "time", "wait")  # fmt: skip


def lines(*, dense: bool) -> Iterator[str]:
    """Lines of a run without an end."""
    draw, number = random.Random(1), 0
    while True:
        number += 1
        if dense or number % _ONE_IN == 0:
            yield _STEP.format(
                number % 60, number, number * 256, draw.gauss(1200, 20), draw.gauss(388, 4),
                draw.gauss(2.5, 0.1), draw.gauss(0.7, 0.1),
            )  # fmt: skip
        else:
            words = " ".join(draw.choices(_WORDS, k=draw.randrange(5, 25)))
            yield f"2026-01-02 03:04:05,678 [INFO] worker {number % 8}: {words}\n"


def write_log(path: Path, size: int, *, dense: bool) -> None:
    """A log of about that size: pieces of it repeat, but for the numbers of steps in the first."""
    made, length = [], 0
    for line in lines(dense=dense):
        made.append(line)
        length += len(line)
        if length > min(size, 20_000_000):
            break
    piece = "".join(made).encode()
    with path.open("wb") as file:
        for _ in range(max(1, round(size / len(piece)))):
            file.write(piece)


def grep_seconds(log: Path) -> float:
    """grep alone, its count into a pipe: into /dev/null it stops at the first line."""
    begun = time.perf_counter()
    env = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        ["grep", "-c", "loss", str(log)], env=env, stdout=subprocess.PIPE, check=True
    )
    took_s = time.perf_counter() - begun
    if int(done.stdout) < 100:
        sys.exit(f"error: grep found only {done.stdout!r} lines")
    return took_s


def taken(log: Path) -> Run:
    """The reader in a process of its own."""
    run = watched([sys.executable, "-c", _READ, str(log)], log.parent)
    if run.rc or int(run.stderr.split()[1]) < 100:
        sys.exit(f"error: the reader exited with {run.rc}:\n{run.stderr.rstrip()}")
    return run


def against_grep(name: str, log: Path, pairs: int, target: float) -> list[Row]:
    """Both in turn, either first; the ratios and the memory."""
    ratios, peaks = [], []
    path = os.environ["PATH"]
    for number in range(pairs):
        alone = grep_seconds(log) if number % 2 else 0.0
        os.environ["PATH"] = "" if name == "without grep" else path
        run = taken(log)
        os.environ["PATH"] = path
        ratios.append(run.elapsed_s / (alone or grep_seconds(log)))
        peaks.append(run.peak_bytes)
    middle = median(ratios)
    reached = f"{middle:.2f} x [{min(ratios):.2f}, {max(ratios):.2f}]"
    return [
        Row(f"one line in {_ONE_IN} a step, {name}", reached, f"{target} x", middle <= target),
        megabytes(f"one line in {_ONE_IN} a step, {name}, peak memory", max(peaks), PEAK_BYTES),
    ]


def all_steps(log: Path, runs: int) -> list[Row]:
    """Megabytes a second of the processor's time; the best run, for a shared machine only adds."""
    found = [taken(log) for _ in range(runs)]
    rates = sorted(log.stat().st_size / 1e6 / float(run.stderr.split()[0]) for run in found)
    reached = f"{rates[-1]:.0f} MB/s [{rates[0]:.0f}, {rates[-1]:.0f}]"
    peak = max(run.peak_bytes for run in found)
    return [
        Row("every line a step", reached, f"{TARGET_MB_S:.0f} MB/s", rates[-1] >= TARGET_MB_S),
        megabytes("every line a step, peak memory", peak, PEAK_BYTES),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Read training logs of a gigabyte.")
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "train.log")
        write_log(log, options.bytes, dense=False)
        found = against_grep("with grep", log, options.pairs, TARGET)
        write_log(log, min(options.bytes, _ALONE_BYTES), dense=False)
        found += against_grep("without grep", log, min(options.pairs, 2), TARGET_ALONE)
        write_log(log, options.bytes, dense=True)
        found += all_steps(log, min(options.pairs, 3))
    return show(f"Training logs of {options.bytes / 1e9:.1f} GB read, against grep -c", found)


if __name__ == "__main__":
    sys.exit(main())
