"""A file of 500 MB of fio's reports, judged: how fast, in how much memory.

    python -m bench.fio_log [--bytes 500000000] [--runs 3]

Reports of one run, as json+ with --status-interval writes them: each has a line for every latency
that occurred. The whole command is timed, its start included; judged is the best run, for a shared
machine only ever adds time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench.fleet import Run, megabytes, watched
from bench.programs import installed
from bench.table import Row, show
from tests.fio_text import job, report, side

BYTES, RUNS = 500_000_000, 3
TARGET_MB_S = 50.0
PEAK_BYTES = 150_000_000
#: Latencies in a report: some 400 kB of it.
_BINS = 20_000
#: The last report tells of an error, which must be found: the exit status is that of a failure.
FAILED = 1


def write_log(path: Path, size: int) -> None:
    """Reports that grow, the last with an error."""
    bins = {str(9000 + 7 * one): one % 97 + 1 for one in range(_BINS)}
    held = json.dumps(bins, indent=2)
    written = seconds = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            seconds += 1
            written += file.write(_report(seconds, 0).replace('"HERE"', held))
        file.write(_report(seconds + 1, 5))


def _report(seconds: int, error: int) -> str:
    moved = side(io_bytes=81920000 * seconds, runtime=1000 * seconds)
    moved["clat_ns"] = {**moved["clat_ns"], "bins": "HERE"}
    row = job(elapsed=seconds, eta=0 if error else 3600, error=error, read=moved)
    return report(row, at_ms=10**12 + 1000 * seconds)


def judged(log: Path) -> Run:
    """preflight on the file; ends the benchmark where it saw nothing."""
    run = watched([str(installed()), "io-bench", "--from", str(log), "--only", "io.*"], log.parent)
    if run.rc != FAILED:
        sys.exit(f"error: preflight exited with {run.rc}:\n{run.stderr.rstrip()}")
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge a large file of fio's reports.")
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "fio.json")
        write_log(log, options.bytes)
        size = log.stat().st_size
        found = [judged(log) for _ in range(options.runs)]
    rates = sorted(size / 1e6 / run.elapsed_s for run in found)
    reached = f"{rates[-1]:.0f} MB/s [{rates[0]:.0f}, {rates[-1]:.0f}]"
    rows = [
        Row("rate", reached, f"{TARGET_MB_S:.0f} MB/s", rates[-1] >= TARGET_MB_S),
        megabytes("peak memory", max(run.peak_bytes for run in found), PEAK_BYTES),
    ]
    return show(f"{size / 1e6:.0f} MB of fio's reports judged", rows)


if __name__ == "__main__":
    sys.exit(main())
