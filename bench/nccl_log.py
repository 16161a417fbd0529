"""A training log of 100 MB, of which one line in twenty is NCCL's, judged: how fast, in how much
memory.

    python -m bench.nccl_log [--bytes 100000000] [--runs 5]

The whole command is timed, its start included; judged is the best run, for a shared machine only
ever adds time. Once with grep, once where there is none.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.fleet import Run, megabytes, watched
from bench.inputs import SAMPLES
from bench.programs import installed
from bench.table import Row, show

BYTES = 100_000_000
RUNS = 5
TARGET_MB_S = 100.0
#: Where nothing but Python looks for the lines.
TARGET_ALONE_MB_S = 50.0
PEAK_BYTES = 150_000_000
_ONE_IN = 20
#: The last line, which must be found: the exit status is that of a failure.
_ERROR = (
    "node-02:1:2 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer "
    "10.0.0.2<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)\n"
)
FAILED = 1
_OTHER = (
    "[2026-01-02 03:04:05] iteration {0:8}/ 500000 | consumed samples: {0:12} | elapsed time per "
    "iteration (ms): 2345.6 | lm loss: 2.345678E+00 | grad norm: 0.234 | skipped iterations: 0 |\n"
)


def write_log(path: Path, size: int) -> None:
    """Lines of training, and among them those of a real log of NCCL, over and over."""
    sample = SAMPLES / "nccl_debug" / "a100_x8_4nodes_omnipath.log"
    told = [line for line in sample.read_text(encoding="utf-8").splitlines(keepends=True)
            if "NCCL" in line]  # fmt: skip
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            ours = number % _ONE_IN == 0
            line = told[number // _ONE_IN % len(told)] if ours else _OTHER.format(number)
            written += file.write(line)
            number += 1
        file.write(_ERROR)


def judged(log: Path) -> Run:
    """preflight on the log; ends the benchmark where it saw nothing."""
    run = watched([str(installed()), "topo", "--from", str(log), "--only", "nccl.*"], log.parent)
    if run.rc != FAILED:
        sys.exit(f"error: preflight exited with {run.rc}:\n{run.stderr.rstrip()}")
    return run


def rows(name: str, log: Path, runs: int, target: float) -> list[Row]:
    """The rate of the best run, and the memory of the worst."""
    found = [judged(log) for _ in range(runs)]
    rates = sorted(log.stat().st_size / 1e6 / run.elapsed_s for run in found)
    reached = f"{rates[-1]:.0f} MB/s [{rates[0]:.0f}, {rates[-1]:.0f}]"
    return [
        Row(f"{name}, rate", reached, f"{target:.0f} MB/s", rates[-1] >= target),
        megabytes(f"{name}, peak memory", max(run.peak_bytes for run in found), PEAK_BYTES),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge a training log with lines of NCCL.")
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "train.log")
        write_log(log, options.bytes)
        found = rows("with grep", log, options.runs, TARGET_MB_S)
        os.environ["PATH"] = name  # where no grep is found
        found += rows("without grep", log, options.runs, TARGET_ALONE_MB_S)
        size = log.stat().st_size
    return show(f"A training log of {size / 1e6:.0f} MB judged", found)


if __name__ == "__main__":
    sys.exit(main())
