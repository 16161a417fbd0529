"""Records two hundred healthy runs of the training loop, each with another seed, shape and noise of
its batches, as JSON lines: some minutes on one core.

    python -m bench.labelled.healthy
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from bench.labelled.record import keep
from preflight.payload.group.join import Place
from preflight.payload.training import clipping, loader, loop, shards
from preflight.payload.training.presets import chosen

RUNS = 200
STEPS = 160


def main() -> int:
    torch.set_num_threads(1)
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, RUNS + 1):
            files[f"healthy-{seed}.jsonl"] = _trained(seed, Path(folder) / str(seed))
            if seed % 20 == 0:
                print(seed, flush=True)
    keep("healthy", files)
    return 0


def _trained(seed: int, folder: Path) -> bytes:
    """A line for each step."""
    draw = random.Random(seed)
    shape = replace(
        chosen("cpu-tiny"), layers=1, width=32, heads=2, kv_heads=1, hidden=64,
        vocabulary=draw.choice((16, 32, 64)), length=draw.choice((16, 32)),
        batch=draw.choice((1, 2, 4, 8)), steps=STEPS, warmup=draw.choice((1, 10, 30)),
        learning_rate=draw.choice((1e-3, 3e-3, 1e-2)),
    )  # fmt: skip
    folder.mkdir()
    shards.write_synthetic(
        str(folder), vocabulary=shape.vocabulary, shards=2, seed=seed,
        tokens=shape.tokens_per_step(1) * STEPS + 4 * (shape.length + 1),
    )  # fmt: skip
    tokens = loader.Tokens(shards.open_shards(str(folder), shape.vocabulary), shape.length,
                           shape.vocabulary)  # fmt: skip
    place = Place(0, 1, 0, torch.device("cpu"))
    order = loader.Order(len(tokens), seed, shape.batch, 1, 0, 1)
    run = loop.Run(shape, place, "single", tokens, order, loader.Settings(0, 2, pin=False),
                   clip=clipping.policy("global:1"))  # fmt: skip
    lines = [
        json.dumps({"step": step.step + 1, "loss": round(step.loss, 5),
                    "grad_norm": round(step.norm, 5), "lr": float(f"{step.learning_rate:.5g}")})
        for step in loop.train(run, loop.begin(run, seed), STEPS)
    ]  # fmt: skip
    return ("\n".join(lines) + "\n").encode()


if __name__ == "__main__":
    sys.exit(main())
