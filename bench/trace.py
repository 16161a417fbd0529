"""A trace of torch.profiler read and analysed: how long against HolisticTraceAnalysis, in how much
memory; one of a gigabyte; one that is damaged all over.

    python -m bench.trace [--pairs 7] [--bytes 1000000000] [--hta PYTHON]

The trace is a real one, repeated with later times and other correlations, gzip. Both programs are
started anew each time and take turns, either first; judged is the median of the ratios. --hta names
the Python of an environment that has HolisticTraceAnalysis; by itself it is this one. Like with
like: it is told to keep the last step, which it drops by default, and does its temporal breakdown
alone, where preflight does all that it does.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from bench.fleet import megabytes
from bench.programs import ROOT, environment
from bench.table import Row, show

PAIRS = 7
BYTES = 1_000_000_000
#: Of the trace that is compared, at least: whole copies are some 50 MB and 203,000 events.
COMPARED_BYTES = 45_000_000
SAMPLE = ROOT / "tests" / "samples" / "kineto" / "nccl_args.json.gz"
FASTER, LEANER, DAMAGED = 8.0, 6.0, 2.0
PEAK_BYTES = 250_000_000

#: What VmHWM tells is of the program alone; getrusage begins with the peak of who started it.
_PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
OURS = f"""
import sys
from pathlib import Path
from preflight.traces.kineto import read
trace = read(Path(sys.argv[1]), print)
busy_us = sum(step.busy_us for step in trace.steps)
print(round(trace.device_last_us - trace.device_first_us - busy_us))
{_PEAK}"""
HTA = f"""
import logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={{0: sys.argv[1]}}, trace_dir="/",
                         include_last_profiler_step=True)
print(round(analysis.get_temporal_breakdown(visualize=False)["idle_time(us)"][0]))
{_PEAK}"""


class Run(NamedTuple):
    """What a program took; `idle_us` is its answer."""

    seconds: float
    idle_us: int
    peak_bytes: int


def run(python: str, program: str, trace: Path) -> Run:
    """Start to end; ends the benchmark where it failed."""
    begun = time.perf_counter()
    done = subprocess.run(
        [python, "-c", program, str(trace)], env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    if done.returncode:
        sys.exit(f"error: {python} exited with {done.returncode}:\n{done.stderr.rstrip()}")
    idle, peak = done.stdout.split()[-2:]
    return Run(seconds, int(idle), int(peak) * 1024)


def copies(size: int) -> Iterator[bytes]:
    """The trace of about that size, in pieces: the sample over and over, each copy later."""
    document = msgspec.json.decode(gzip.decompress(SAMPLE.read_bytes()))
    events: list[dict[str, Any]] = document.pop("traceEvents")
    timed = [one for one in events if one["ph"] == "X" and one.get("cat") != "Trace"]
    span = max(one["ts"] + one["dur"] for one in timed) - min(one["ts"] for one in timed)
    head = msgspec.json.encode(document)
    yield head[:-1] + b',"traceEvents":[\n'
    written, number = 0, 0
    while written < size:
        _shift(events, span + 50.0 if number else 0.0, number)
        text = msgspec.json.format(msgspec.json.encode(events), indent=1).strip()[1:-1]
        yield (b",\n" if number else b"") + text
        written += len(text)
        number += 1
    yield b"\n]}\n"


def _shift(events: list[dict[str, Any]], by_us: float, number: int) -> None:
    """Later, with correlations and steps that no other copy has."""
    for one in events:
        one["ts"] = round(one["ts"] + by_us, 3)
        arguments = one.get("args", {})
        if number and "correlation" in arguments:
            arguments["correlation"] += 1_000_000
        if number and one["name"].startswith("ProfilerStep#"):
            one["name"] = f"ProfilerStep#{int(one['name'][13:]) + 3}"


def damaged(text: bytes) -> bytes:
    """The same with bare words, bad bytes and quotes within names, each some times a megabyte."""
    pieces = re.split(rb'(?=\n "name": )', text)
    if len(pieces) < 1000:
        pieces = re.split(rb'(?="name": )', text)
    for at in range(500, len(pieces), 1000):
        pieces[at] = pieces[at].replace(b'"name": "', b'"name": "a "quoted" ', 1)
    for at in range(100, len(pieces), 700):
        pieces[at] = pieces[at].replace(b'"name": "', b'"name": "\xff\xfe ', 1)
    return re.sub(rb'("blocks per SM": )[\d.e+-]+', rb"\1N/A", b"".join(pieces))


def compared(hta: str, trace: Path, pairs: int) -> list[Row]:
    """Both in turn, either first; the ratios of time and of memory."""
    times, memories = [], []
    for number in range(pairs):
        if number % 2:
            other, ours = run(hta, HTA, trace), run(sys.executable, OURS, trace)
        else:
            ours, other = run(sys.executable, OURS, trace), run(hta, HTA, trace)
        times.append(other.seconds / ours.seconds)
        memories.append(other.peak_bytes / ours.peak_bytes)
        off = abs(other.idle_us - ours.idle_us) / ours.idle_us
        if off > 0.02:  # it cuts times to whole microseconds
            sys.exit(f"error: idle is {ours.idle_us} us, and {other.idle_us} us to the other")
    faster, leaner = median(times), median(memories)
    return [
        Row("times as fast", _range(faster, times), f"{FASTER:.0f}", faster >= FASTER),
        Row("times less memory", _range(leaner, memories), f"{LEANER:.0f}", leaner >= LEANER),
    ]


def _range(middle: float, values: list[float]) -> str:
    return f"{middle:.1f} [{min(values):.1f}, {max(values):.1f}]"


def mended(folder: Path, sound: Path, pairs: int) -> list[Row]:
    """The damaged trace against the sound one, in turn."""
    text = gzip.decompress(sound.read_bytes())
    plain, broken = folder / "sound.json", folder / "broken.json"
    plain.write_bytes(text)
    broken.write_bytes(damaged(text))
    ratios = []
    for _ in range(pairs):
        whole = run(sys.executable, OURS, plain)
        found = run(sys.executable, OURS, broken)
        if found.idle_us != whole.idle_us:
            sys.exit(f"error: damaged, idle is {found.idle_us} us and not {whole.idle_us}")
        ratios.append(found.seconds / whole.seconds)
    middle = median(ratios)
    target = f"{DAMAGED:.0f} x a sound one"
    return [Row("damaged all over", f"{_range(middle, ratios)} x", target, middle <= DAMAGED)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Read and analyse traces of torch.profiler.")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--bytes", type=int, default=BYTES)
    parser.add_argument("--hta", default=sys.executable)
    options = parser.parse_args()
    has = subprocess.run([options.hta, "-c", "import hta"], capture_output=True, check=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace, large = folder / "trace.json.gz", folder / "large.json"
        with gzip.open(trace, "wb", compresslevel=6) as file:
            file.writelines(copies(COMPARED_BYTES))
        rows = mended(folder, trace, options.pairs)
        if has.returncode:
            print("note: HolisticTraceAnalysis is not installed here: --hta PYTHON", flush=True)
        else:
            rows = [*compared(options.hta, trace, options.pairs), *rows]
        with large.open("wb") as plain:
            plain.writelines(copies(options.bytes))
        size = large.stat().st_size
        found = run(sys.executable, OURS, large)
    rows.append(megabytes(f"{size / 1e9:.1f} GB, peak memory", found.peak_bytes, PEAK_BYTES))
    rows.append(Row(f"{size / 1e9:.1f} GB, seconds", f"{found.seconds:.1f}", "-", True))
    return show("Traces of torch.profiler read and analysed", rows)


if __name__ == "__main__":
    sys.exit(main())
