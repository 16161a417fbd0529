"""The loop of the training harness as a job of its own: it logs, saves every few steps, and goes on
from the checkpoint that `latest` names, whatever that is, as most trainers do.

    python -m tests.lab.long_run FOLDER UNTIL LOG [--rate FACTOR] [--spoil STEP]

From the step of --spoil on the learning rate is a hundred times too high.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from preflight.payload.group.join import Place
from preflight.payload.training import checkpoint, clipping, loader, loop, shards
from preflight.payload.training.presets import chosen

EVERY = 30
SHAPE = chosen(
    "cpu-tiny", layers=1, width=64, heads=2, kv_heads=1, hidden=128, vocabulary=32, length=32,
    batch=8, steps=400, learning_rate=1e-2, warmup=10,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("until", type=int)
    parser.add_argument("log", type=Path)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--spoil", type=int, default=-1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    place = Place(0, 1, 0, torch.device("cpu"))
    run = _run(asked.folder / "shards", place)
    saves = asked.folder / "ck"
    saves.mkdir(parents=True, exist_ok=True)
    state = loop.begin(run, seed=1)
    latest = saves / "latest"
    if latest.exists():
        checkpoint.resume(state, place, saves / latest.read_text())
    writer = checkpoint.Writer(str(saves), place, keep=1000)

    def before(step: int) -> None:
        run.rate_factor = asked.rate * (100.0 if 0 <= asked.spoil <= step else 1.0)

    def after(state: loop.State) -> None:
        if state.step % EVERY == 0:
            writer.begin(state)
            writer.wait()
            latest.write_text(f"step-{state.step:08d}")

    run.before, run.after = before, after
    with asked.log.open("w", encoding="utf-8") as log:
        for step in loop.train(run, state, asked.until):
            told = {"step": step.step + 1, "loss": step.loss, "grad_norm": step.norm,
                    "lr": step.learning_rate}  # fmt: skip
            print(json.dumps(told), file=log, flush=True)


def _run(folder: Path, place: Place) -> loop.Run:
    if not folder.exists():
        folder.mkdir(parents=True)
        tokens = SHAPE.tokens_per_step(1) * SHAPE.steps + 4 * (SHAPE.length + 1)
        shards.write_synthetic(str(folder), vocabulary=SHAPE.vocabulary, shards=2, seed=1,
                               tokens=tokens)  # fmt: skip
    tokens = loader.Tokens(shards.open_shards(str(folder), SHAPE.vocabulary), SHAPE.length,
                           SHAPE.vocabulary)  # fmt: skip
    order = loader.Order(len(tokens), 1, SHAPE.batch, SHAPE.accumulation, 0, 1)
    return loop.Run(SHAPE, place, "single", tokens, order, loader.Settings(0, 2, pin=False),
                    clip=clipping.policy("global:1"))  # fmt: skip


if __name__ == "__main__":
    main()
