"""What preflight.guard costs a training loop: microseconds a step while nothing happens.

    python -m bench.guard

With all five figures given each step, and the line that goes to the file: seconds of this process's
processors, of ten pieces the quickest, as others on the machine only add. And one of two ranks of
gloo on this machine, which agree about once a second: by the clock.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.table import Row, show
from preflight import guard
from preflight.guard.ring import Ring

STEPS, PIECES = 10_000, 10
TARGET_US = 10.0

_RANKS = """
import os, sys, time
import torch.distributed as dist
from preflight import guard

def rank(number, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=number, world_size=2)
    with guard.install(save=print, folder=folder, tell=lambda text: None) as watch:
        for step in range(40):  # how long a step takes is known
            time.sleep(0.02)
            watch.step(step)
        spent = 0
        for step in range(40, 240):
            time.sleep(0.02)
            began = time.perf_counter_ns()
            watch.step(step, loss=2.0, grad_norm=1.0, loss_scale=1.0, lr=1e-4)
            spent += time.perf_counter_ns() - began
    if number == 0:
        print(spent / 200 / 1000)

if os.fork() == 0:
    rank(1, sys.argv[1])
    os._exit(0)
rank(0, sys.argv[1])
os.wait()
"""


def figures() -> list[tuple[float, float]]:
    """Losses and gradient norms of healthy steps."""
    draw = random.Random(1)
    return [(2 + draw.gauss(0, 0.05), draw.lognormvariate(0, 0.3)) for _ in range(STEPS)]


def step_us(folder: str) -> float:
    """Of .step() of one process."""
    given, pieces = figures(), []
    with guard.install(save=print, folder=folder, tell=lambda text: None) as watch:
        for piece in range(PIECES):
            began = time.process_time()
            for at, (loss, norm) in enumerate(given):
                watch.step(
                    piece * STEPS + at, loss=loss, grad_norm=norm, loss_scale=65536.0, lr=1e-4
                )
            pieces.append((time.process_time() - began) / STEPS * 1e6)
    return min(pieces)


def flush_us(folder: str) -> float:
    """Of a row's way to the file."""
    ring = Ring(Path(folder, "ring.jsonl"), STEPS, 3600, print)
    pieces = []
    for _ in range(PIECES):
        for at, (loss, norm) in enumerate(figures()):
            ring.add((at, 1.7e9 + at, loss, norm, 65536.0, 1e-4))
        began = time.process_time()
        ring.flush()
        pieces.append((time.process_time() - began) / STEPS * 1e6)
    ring.close(keep=False)
    return min(pieces)


def ranks_us(folder: str) -> float:
    """Of .step() of one of two ranks, by the clock: agreement is waiting too."""
    argv, env = [sys.executable, "-c", _RANKS, folder], {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=120, env=env)
    return float(ran.stdout)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        step, flush, ranks = step_us(folder), flush_us(folder), ranks_us(folder)
    share = 100 * ranks / 20_000
    rows = [
        Row(".step(), its line in the file", f"{step + flush:.1f} us ({step:.1f} + {flush:.1f})",
            f"{TARGET_US:.0f} us", step + flush < TARGET_US),
        Row("two ranks, steps of 20 ms", f"{ranks:.0f} us, {share:.2f} %", "1 %", share < 1),
    ]  # fmt: skip
    return show("preflight.guard, a step without an event", rows)


if __name__ == "__main__":
    sys.exit(main())
