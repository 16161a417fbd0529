"""What preflight io-bench measures, beside the same job file run by hand.

    python -m bench.storage [--dir DIR] [--rounds 10] [--size 1G] [--runtime 12s]

Both take turns, each in files of its own; by hand the job file of the report runs as fio takes it.
They agree where the median of each lies among the other's runs. The machine must have nothing else
to do: a disk that is busy for one of them is no difference between them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.programs import REPORTED, environment, installed
from bench.table import Row, show
from preflight.capture import Reader

ROUNDS = 10
STANDARD_S = 10.0
Found = dict[str, list[float]]


class Asked(NamedTuple):
    """`folder`: on the file system in question."""

    folder: Path
    rounds: int
    size: str
    runtime: str


def by_preflight(asked: Asked) -> tuple[dict[str, float], str]:
    """Figures by job, and the job file; ends the benchmark where there are none."""
    argv = [str(installed()), "io-bench", "--dir", str(asked.folder), "--size", asked.size,
            "--runtime", asked.runtime, "--patterns", "fio", "--only", "io.*",
            "--format", "json"]  # fmt: skip
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    tables = json.loads(done.stdout).get("measurements", []) if done.returncode in REPORTED else []
    table = next((one for one in tables if one.get("job_file")), None)
    if table is None:
        sys.exit(f"error: {' '.join(argv)} exited with {done.returncode}:\n{done.stderr.rstrip()}")
    found = dict[str, float]()
    for name, told in table["numbers"].items():
        if "iops" in told:
            found |= {f"{name}, MB/s": told["bandwidth_mbps"], f"{name}, IOPS": told["iops"]}
    return found, str(table["job_file"])


def by_hand(asked: Asked, job_file: str) -> dict[str, float]:
    """The same of fio alone, in a fresh folder."""
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        Path(name, "job.fio").write_text(job_file, encoding="utf-8")
        argv = ["fio", "--output-format=json", "job.fio"]
        done = subprocess.run(argv, cwd=name, capture_output=True, text=True, check=True)
    found = dict[str, float]()
    for job in json.loads(done.stdout[done.stdout.index("{") :])["jobs"]:
        ways = [way for way in ("read", "write") if job[way]["io_bytes"]]
        for way in ways:
            called = f"{job['jobname']} {way}" if len(ways) > 1 else job["jobname"]
            found[f"{called}, MB/s"] = job[way]["bw_bytes"] / 1e6
            found[f"{called}, IOPS"] = job[way]["iops"]
    return found


def in_turns(asked: Asked) -> tuple[Found, Found]:
    """Figures of all rounds: of preflight, and by hand. Who begins changes every round."""
    ours, theirs = Found(), Found()
    _, job_file = by_preflight(asked)  # the first fills caches of the device
    for number in range(asked.rounds):
        turns: list[Callable[[], Any]] = [
            lambda: _add(ours, by_preflight(asked)[0]),
            lambda: _add(theirs, by_hand(asked, job_file)),
        ]
        for turn in turns if number % 2 else reversed(turns):
            turn()
        print(f"round {number + 1} of {asked.rounds}", file=sys.stderr, flush=True)
    return ours, theirs


def _add(found: Found, figures: dict[str, float]) -> None:
    for name, value in figures.items():
        found.setdefault(name, []).append(value)


def agreement(name: str, ours: list[float], theirs: list[float]) -> Row:
    """Whether each one's median lies among the other's runs."""
    one, other = median(ours), median(theirs)
    met = min(theirs) <= one <= max(theirs) and min(ours) <= other <= max(ours)
    return Row(
        name, f"{_told(ours)}, by hand {_told(theirs)}", "each median among the other's", met
    )


def _told(values: list[float]) -> str:
    return f"{median(values):,.4g} [{min(values):,.4g}, {max(values):,.4g}]"


def of_standard(folder: Path) -> Row:
    """How long the jobs of `run --level standard` take, of the largest size that it has."""
    capture = folder / "standard.capture.gz"
    argv = [str(installed()), "run", "--level", "standard", "--only", "io.*", "--save",
            str(capture)]  # fmt: skip
    done = subprocess.run(argv, env={**environment(), "TMPDIR": str(folder)}, capture_output=True,
                          text=True, check=False)  # fmt: skip
    raws = Reader(capture, "standard") if done.returncode in REPORTED else ()
    took_s = next((raw.elapsed_s for raw in raws if raw.probe == "io-bench"), None)
    if took_s is None:
        sys.exit(f"error: {' '.join(argv)} exited with {done.returncode}:\n{done.stderr.rstrip()}")
    met = took_s <= STANDARD_S
    return Row("the jobs of run --level standard", f"{took_s:.1f} s", f"{STANDARD_S:.0f} s", met)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare io-bench with fio by hand.")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--size", default="1G")
    parser.add_argument("--runtime", default="12s")
    options = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("error: fio is not installed\nhint: sudo apt install fio")
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        asked = Asked(Path(name), options.rounds, options.size, options.runtime)
        ours, theirs = in_turns(asked)
        standard = of_standard(asked.folder)
    alone = sorted(set(ours) ^ set(theirs))
    rows = [agreement(name, ours[name], theirs[name]) for name in ours if name in theirs]
    rows += [Row(name, "of one of them alone", "of both", met=False) for name in alone]
    rows.append(standard)
    return show(f"io-bench and fio by hand in {options.dir}, {options.rounds} turns of each", rows)


if __name__ == "__main__":
    sys.exit(main())
