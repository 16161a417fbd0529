"""A kernel log of a gigabyte judged: how long against grep with the same patterns, and in how much
memory.

    python -m bench.kernel_log [--bytes 1000000000] [--pairs 5]

The log is a mixed syslog, of many programs' lines and, once in some 3,000, one of the real samples.
Each way of looking (grep, google-re2, bytes.find) runs in turn with grep itself, which writes its
count into a pipe: into /dev/null it stops at the first line. Judged is the median of the ratios.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench import inputs
from bench.fleet import Run, megabytes, watched
from bench.programs import REPORTED, installed
from bench.table import Row, show
from preflight import datafiles

BYTES = 1_000_000_000
PAIRS = 5
#: Times grep's own time: with grep as a sieve or with google-re2, and without both.
TARGET = 1.5
TARGET_ALONE = 12.0
PEAK_BYTES = 100_000_000
#: Fewer than twelve, lest the new year is mistaken for the old one.
MONTHS = ("Jun", "Jul", "Aug", "Sep", "Oct", "Nov")


def write_log(path: Path, size: int) -> None:
    """A mixed syslog of about that size: days alike but for their dates."""
    day = inputs.mixed_day()
    count = max(2, round(size / len(day)))
    with path.open("wb") as file:
        for number in range(count):
            month, of_month = MONTHS[number // 28 % len(MONTHS)], number % 28 + 1
            file.write(day.replace(b"Jan  1 ", b"%s %2d " % (month.encode(), of_month)))


def grep_seconds(grep: str, log: Path) -> float:
    """grep alone, its count into a pipe."""
    patterns = datafiles.root() / "checks" / "data" / "kernel_log.patterns"
    begun = time.perf_counter()
    done = subprocess.run(
        [grep, "-cE", "-f", str(patterns), str(log)],
        env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    took_s = time.perf_counter() - begun
    if int(done.stdout) < 100:
        sys.exit(f"error: grep found only {done.stdout!r} lines")
    return took_s


def judged(log: Path) -> Run:
    """preflight on the log; ends the benchmark where it saw nothing."""
    run = watched([str(installed()), "gpu-health", "--from", str(log)], log.parent)
    if run.rc not in REPORTED or run.rc == 0:
        sys.exit(f"error: preflight exited with {run.rc}:\n{run.stderr.rstrip()}")
    return run


def rows(name: str, grep: str, log: Path, pairs: int, target: float) -> list[Row]:
    """Both in turn, either first; the ratios and the memory."""
    ratios, peaks = [], []
    for number in range(pairs):
        alone = grep_seconds(grep, log) if number % 2 else 0.0
        run = judged(log)
        alone = alone or grep_seconds(grep, log)
        ratios.append(run.elapsed_s / alone)
        peaks.append(run.peak_bytes)
    middle = median(ratios)
    reached = f"{middle:.2f} x [{min(ratios):.2f}, {max(ratios):.2f}]"
    return [
        Row(f"{name}, time", reached, f"{target} x", middle <= target),
        megabytes(f"{name}, peak memory", max(peaks), PEAK_BYTES),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge a kernel log of a gigabyte.")
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args()
    grep = shutil.which("grep")
    if grep is None:
        print("note: there is no grep to measure against", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "syslog")
        write_log(log, options.bytes)
        found = rows("with grep", grep, log, options.pairs, TARGET)
        has_re2 = find_spec("re2") is not None
        os.environ["PATH"] = name  # where no grep is found
        alone = ("google-re2", TARGET) if has_re2 else ("neither", TARGET_ALONE)
        found += rows(f"with {alone[0]}", grep, log, 1 if not has_re2 else options.pairs, alone[1])
        size = log.stat().st_size
    return show(f"A mixed syslog of {size / 1e9:.1f} GB judged, against grep -cE", found)


if __name__ == "__main__":
    sys.exit(main())
