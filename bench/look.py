"""What a look at a running process takes from it: how many steps less it makes while looked at.

    python -m bench.look [--pairs 20]

A loop that counts its steps runs, alone and as one on each processor; windows of two seconds with
a look and without one alternate, three to a round in another order each time: with, without, and
without once more, which is how far two equal windows are apart here. The look is what travels to a
host, with py-spy where that is; its start is not in a window, and has a row of its own: all that
one of ten seconds takes of the processors, and when the user's command has its answer.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.table import Row, show
from bench.turns import middle_of

PAIRS = 20
WINDOW_S = 2.0
LOSS_PERCENT = 2.0
#: Of one processor, over a look of ten seconds, its start too.
PROCESSOR_PERCENT = 2.0
LOOK_S = 10
ANSWER_S = 15.0
_SETTLE_S = 0.2
#: A step is about a millisecond of Python.
_LOOP = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    count = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
def step():
    total = 0
    for number in range(20_000):
        total += number * number
    return total
while True:
    step()
    count[0] += 1
"""


class Rates(NamedTuple):
    """Steps in a second of the clock, and of the loops' own processors: that is what neighbours on
    the machine hardly change."""

    of_clock: float
    of_processor: float


class Loop:
    """The loop in a process of its own; it has a RANK, as one that trains."""

    def __init__(self, file: Path, rank: int) -> None:
        file.write_bytes(bytes(8))
        with file.open("r+b") as shared:
            self._count = memoryview(mmap.mmap(shared.fileno(), 8)).cast("q")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(file)], env={**os.environ, "RANK": str(rank)}
        )

    def steps(self) -> int:
        """So far."""
        return self._count[0]

    def busy_s(self) -> float:
        """Seconds of processor so far (sched-stats.rst)."""
        told = Path(f"/proc/{self.process.pid}/schedstat").read_text(encoding="ascii")
        return int(told.split()[0]) / 1e9

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def loops(count: int) -> Iterator[list[Loop]]:
    """So many of them at work."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ended:
        made = []
        for rank in range(count):
            made.append(Loop(Path(folder, str(rank)), rank))
            ended.callback(made[-1].end)
        while not all(one.steps() > 10 for one in made):
            time.sleep(0.05)
        yield made


def look_argv(made: list[Loop], seconds: float) -> list[str]:
    """The payload's own command: what a host runs."""
    plan = json.dumps({"pids": [one.process.pid for one in made], "seconds": seconds})
    return [sys.executable, "-m", "preflight.payload", "look", "--plan", plan]


def window(made: list[Loop], *, looked: bool) -> Rates:
    """Steps of all loops, with a look or without."""
    if not looked:
        return _rates(made)
    with subprocess.Popen(
        look_argv(made, WINDOW_S + _SETTLE_S), stdout=subprocess.PIPE, text=True
    ) as look:
        assert look.stdout is not None
        look.stdout.readline()  # its start is over
        rates = _rates(made)
        if look.poll() is not None:
            sys.exit("error: the look was over before the window")
        told = [json.loads(line) for line in look.stdout]
    seen = {one["pid"] for one in told if one["kind"] == "process" and one["looks"]}
    if not seen >= {one.process.pid for one in made}:
        sys.exit(f"error: the look saw not all processes: {told}")
    return rates


def _rates(made: list[Loop]) -> Rates:
    began_s, busy_s = time.perf_counter(), sum(one.busy_s() for one in made)
    before = sum(one.steps() for one in made)
    time.sleep(WINDOW_S)
    done = sum(one.steps() for one in made) - before
    if not done or any(one.process.poll() is not None for one in made):
        sys.exit("error: a loop has ended, or did nothing for a whole window")
    return Rates(
        done / (time.perf_counter() - began_s), done / (sum(one.busy_s() for one in made) - busy_s)
    )


def rounds(count: int, pairs: int) -> list[dict[str, Rates]]:
    """By window: "look", "none", "again"."""
    draw, found = random.Random(1), []
    with loops(count) as made:
        for _ in range(pairs):
            order, rates = ["look", "none", "again"], {}
            draw.shuffle(order)
            for name in order:
                time.sleep(_SETTLE_S)
                rates[name] = window(made, looked=name == "look")
            found.append(rates)
    return found


def steps_rows(count: int, pairs: int) -> Iterator[Row]:
    """Lost in percent; beside what two equal windows lose."""
    found = rounds(count, pairs)
    who = "one process" if count == 1 else f"one on each of {count} processors"
    for at, of in enumerate(("a second", "a second of its processor")):
        looked, equal = (middle_of([one[name][at] / one["none"][at] for one in found])
                         for name in ("look", "again"))  # fmt: skip
        lost = 100 * (1 - looked.middle)
        # Where the machine is not steady a loss within what equal windows differ by is none.
        spread = 100 * max(abs(equal.low - 1), abs(equal.high - 1))
        yield Row(
            f"{who}: steps {of} (without, twice: {equal.percent()})", looked.percent(),
            f">= -{LOSS_PERCENT:g} %, or the spread", lost <= max(LOSS_PERCENT, spread),
        )  # fmt: skip


def cost_rows() -> list[Row]:
    """Of a look of ten seconds: the processors' time, and the seconds to the answer."""
    with loops(1) as made:
        look = subprocess.Popen(look_argv(made, LOOK_S), stdout=subprocess.DEVNULL)
        _, look.returncode, used = os.wait4(look.pid, 0)
        if look.returncode:
            sys.exit(f"error: the look ended with {look.returncode}")
        began_s = time.perf_counter()
        pid = str(made[0].process.pid)
        subprocess.run(
            [sys.executable, "-m", "preflight", "diagnose-step-time", pid, "--duration",
             f"{LOOK_S}s", "--quiet"], stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        answer_s = time.perf_counter() - began_s
    share = 100 * (used.ru_utime + used.ru_stime) / LOOK_S
    return [
        Row(f"a look of {LOOK_S} s, of one processor, start and all", f"{share:.2f} %",
            f"{PROCESSOR_PERCENT:g} %", share <= PROCESSOR_PERCENT),
        Row(f"the answer of --duration {LOOK_S}s", f"{answer_s:.1f} s", f"{ANSWER_S:g} s",
            answer_s <= ANSWER_S),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.look")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    pairs = parser.parse_args().pairs
    counts = dict.fromkeys((1, len(os.sched_getaffinity(0))))
    title = f"A look at running processes: medians of {pairs} paired ratios [95 % by bootstrap]"
    return show(
        title, [*(row for count in counts for row in steps_rows(count, pairs)), *cost_rows()]
    )


if __name__ == "__main__":
    sys.exit(main())
