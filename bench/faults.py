"""Which check sees which injected fault of training, and what runs without one raise.

    python -m bench.faults [--seeds 3] [--clean 20] [--only NAME,...]

Every fault of payload/training/inject.py on a small model, spread in each way it acts on, with
several seeds; and runs of the preset cpu-tiny without a fault, killed and resumed. What each told
is judged as a recorded run is. It wants a machine on which nobody else works: times count too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.fault_runs import told
from bench.fault_table import FAULTS, SHARDINGS, SMALL, Fault, Seen, clean
from bench.table import Row, show
from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Check, Raw, Status

#: A run with all its launches may take so long where others work too.
_RUN_S = 180.0


class Tried(NamedTuple):
    """One run that is to be made."""

    name: str
    fault: Fault | None
    plan: dict[str, Any]


@cache
def checks() -> tuple[Check, ...]:
    """Those of training."""
    return tuple(load(("training",)).checks)


def seen(text: str) -> Seen:
    """The report on a run's lines."""
    report = examine("host", [Raw("host", "micro-train", stdout=text)], checks())
    by: dict[Status, set[str]] = defaultdict(set)
    for one in report.results:
        by[one.status].add(one.check)
    return Seen(frozenset(by[Status.FAIL] | by[Status.ERROR]), frozenset(by[Status.WARN]))


def with_faults(
    faults: Sequence[Fault],
    seeds: Sequence[int],
    shape: dict[str, Any],
    shardings: Sequence[str] = SHARDINGS,
) -> list[Tried]:
    """Each fault, in each way that it acts on, with each seed."""
    return [
        Tried(f"{fault.name}-{sharding}-{seed}", fault, fault.asked(sharding, seed, shape))
        for fault in faults
        for sharding in fault.shardings
        if sharding in shardings
        for seed in seeds
    ]  # fmt: skip


def without(number: int, shape: dict[str, Any]) -> list[Tried]:
    """Runs without a fault, spread in turn in each way, killed and resumed."""
    found = []
    for seed in range(1, number + 1):
        sharding = SHARDINGS[seed % len(SHARDINGS)]
        plan = clean(sharding, seed, shape, resume=True)
        found.append(Tried(f"clean-{sharding}-{seed}", None, plan))
    return found


def judged(runs: Sequence[Tried], *, steady: bool = True) -> dict[str, str]:
    """What is wrong with the report of each run, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        texts = told({one.name: one.plan for one in runs}, Path(folder),
                     timeout_s=_RUN_S * len(runs))  # fmt: skip
    return {one.name: seen(texts[one.name]).wrong(one.fault, steady=steady) for one in runs}


def rows(runs: Sequence[Tried], wrong: dict[str, str]) -> list[Row]:
    """One for each fault and way."""
    groups: dict[str, list[str]] = defaultdict(list)
    for one in runs:
        what = one.name.rpartition("-")[0] if one.fault else "no fault"
        groups[what].append(wrong[one.name])
    return [_row(what, found) for what, found in groups.items()]


def _row(what: str, found: list[str]) -> Row:
    right = found.count("")
    why = "; ".join(f"{times} x {text}" for text, times in Counter(found).items() if text)
    reached = f"{right} of {len(found)}" + (f" ({why})" if why else "")
    return Row(what, reached, f"{len(found)} of {len(found)}", right == len(found))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--only", default="", help="faults, by name")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else [fault.name for fault in FAULTS]
    unknown = set(names) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"--only: no such fault: {', '.join(sorted(unknown))}")
    faults = [fault for fault in FAULTS if fault.name in names]
    runs = [
        *with_faults(faults, range(1, asked.seeds + 1), SMALL),
        *without(asked.clean, {}),
    ]
    title = "Reports that are as they should be, with an injected fault and without"
    return show(title, rows(runs, judged(runs)))


if __name__ == "__main__":
    sys.exit(main())
