"""python -m fuzz: N mutated inputs over every reader, and whole hosts; exit status 1 on a failure.

The same seed gives the same inputs, whatever the number of processes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random

from msgspec import Struct, field

from fuzz import drawn, pipeline
from fuzz.mutations import mutated
from fuzz.seeds import ROOT, seeds
from fuzz.targets import Target, targets
from fuzz.trial import judged, least, tried, watched

#: Inputs of one task of a process.
CHUNK = 2_000
REPRODUCERS = ROOT / "build" / "fuzz"
#: Of so many inputs of a reader one more goes through a whole host.
HOSTS_SHARE = 100
HOSTS = (*pipeline.NAMES, drawn.NAME)


class Tally(Struct):
    """What came of the inputs of one target."""

    name: str
    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0  # as a share of the bound: of a second per megabyte, for a parser
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)  # place: (what, input)

    def add(self, other: Tally) -> None:
        self.inputs += other.inputs
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.failures = {**other.failures, **self.failures}


def fuzzed(name: str, chunk: int, count: int, seed: int) -> Tally:
    """`count` inputs into one target."""
    target, tally = targets()[name], Tally(name)
    rng, begin = Random(f"{seed}:{name}:{chunk}"), seeds(targets()[name])
    with watched():
        for _ in range(count):
            _one(target, mutated(rng, rng.choice(begin)), tally)
    return tally


def _one(target: Target, text: str, tally: Tally) -> None:
    outcome = judged(target, text)
    tally.inputs += 1
    tally.refused += outcome.refused
    tally.slowest = max(tally.slowest, outcome.elapsed_s / target.limit_s(text))
    if outcome.failure and outcome.place not in tally.failures:
        place = outcome.place
        shorter = text
        if place not in ("slow", "hang"):
            shorter = least(text, lambda part: tried(target, part).place == place)
        tally.failures[place] = (outcome.failure, shorter)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("-n", type=int, default=1_000_000, help="inputs in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(len(os.sched_getaffinity(0)), 2))
    parser.add_argument("--only", default="", help="targets whose name holds this")
    asked = parser.parse_args()
    names = [name for name in targets() if asked.only in name]
    if not names:
        parser.error(f"--only {asked.only}: one of {', '.join(targets())}")
    begun = time.monotonic()
    tallies = _all(names, asked.n, asked.seed, asked.jobs)
    _show(list(tallies.values()))
    print("slowest: the longest time as a share of the bound; a parser's is 1 s/MB, 20 ms at least")
    failed = sum(len(tally.failures) for tally in tallies.values())
    took = time.monotonic() - begun
    inputs = sum(tally.inputs for tally in tallies.values())
    print(f"{inputs:,} inputs in {took:.0f} s, seed {asked.seed}: {failed} failures")
    return 1 if failed else 0


def _all(names: list[str], count: int, seed: int, jobs: int) -> dict[str, Tally]:
    tallies = {name: Tally(name) for name in [*names, *HOSTS]}
    each = -(-count // len(names))
    tasks = [
        (fuzzed, name, start // CHUNK, min(CHUNK, each - start))
        for start in range(0, each, CHUNK)
        for name in names
    ]
    # fork: every process needs the samples, which are read and cut once for that.
    for name in names:
        seeds(targets()[name])
    hosts = max(count // HOSTS_SHARE // len(HOSTS), 1)
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        running = [pool.submit(task, name, chunk, n, seed) for task, name, chunk, n in tasks]
        whole = [pool.submit(_hosts, name, hosts, seed) for name in HOSTS]
        for future in [*running, *whole]:
            done = future.result()
            tallies[done.name].add(done)
    return tallies


def _hosts(name: str, count: int, seed: int) -> Tally:
    tally = Tally(name)
    rng = Random(f"{seed}:{name}")
    if name == drawn.NAME:
        target, inputs = drawn.target(), drawn.inputs(rng)
    else:
        target, inputs = pipeline.target(name), pipeline.inputs(name, rng)
    with watched():
        for _, text in zip(range(count), inputs, strict=False):
            _one(target, text, tally)
    return tally


def _show(tallies: list[Tally]) -> None:
    print(f"{'reader':<28}{'inputs':>10}{'read':>10}{'refused':>10}{'slowest':>9}  failures")
    for tally in tallies:
        read = tally.inputs - tally.refused
        counts = f"{tally.inputs:>10,}{read:>10,}{tally.refused:>10,}{tally.slowest:>9.2f}"
        print(f"{tally.name:<28}{counts}  {len(tally.failures) or '-'}")
    for tally in tallies:
        for what, text in tally.failures.values():
            print(f"\n{tally.name}: {what}\n  input: {_kept(tally.name, text)}")


def _kept(name: str, text: str) -> Path:
    """The input that fails, in a file."""
    REPRODUCERS.mkdir(parents=True, exist_ok=True)
    data = text.encode("utf-8", "surrogatepass")
    stem = f"{name.replace(' ', '-')}-{hashlib.sha256(data).hexdigest()[:8]}"
    path = REPRODUCERS / f"{stem}.txt"
    path.write_bytes(data)
    return path.relative_to(ROOT)


if __name__ == "__main__":
    sys.exit(main())
