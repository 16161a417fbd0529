"""What watching costs the training loop, and what the loop costs beside a plain one.

    python -m bench.training [--device cuda] [--preset NAME] [--rounds 300]

Four trainings of one model take turns within one process: the bundled loop as it is, the same
without its clocks and lines, that once more (how far two equal ones are apart: the floor), and a
plain loop in the manner of nanoGPT. All four see the same samples and end with the same loss. What
watching holds: the clock, a line for each step, norms by layer at every tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Any
from unittest import mock

import torch

from bench.plain_loop import LOOK, Plain
from bench.table import Row, show
from bench.turns import PROCESSOR, WARM, Rounds, ratio, taken
from preflight.payload.group.join import Place, join
from preflight.payload.ranks import Launch
from preflight.payload.training import layout, loader, loop, norms, shards
from preflight.payload.training.presets import Preset, chosen

OVERHEAD_PERCENT = 2.0
PLAIN_SHARE = 0.97
STEP_MS = 20.0
SEED = 1
#: So many steps have samples of their own; then they come again.
_STEPS_OF_DATA = 50


@dataclass(frozen=True)
class Asked:
    """What is compared: a turn is `turn` steps."""

    preset: str = "cpu-tiny"
    device: str = "cpu"
    ranks: int = 1
    rounds: int = 300
    turn: int = 1
    compiled: bool = False
    changes: tuple[tuple[str, Any], ...] = ()

    def shape(self) -> Preset:
        """Long enough that no turn meets the end."""
        steps = (self.rounds + WARM + 2) * self.turn + 2
        return replace(chosen(self.preset, **dict(self.changes)), steps=steps)


class _NoClock:
    """A clock that looks at nothing."""

    def __init__(self, **_: Any) -> None:
        pass

    def nothing(self, *_: Any) -> Any:
        return dict

    now = begin = mark = end = nothing


class _NoMarks:
    """Marks that are not set."""

    def __init__(self, *_: Any) -> None:
        pass

    def nothing(self, **_: Any) -> None:
        pass

    begin = end_forward = end_backward = close = nothing


@contextmanager
def unwatched() -> Iterator[None]:
    """A loop that begins within has no clocks."""
    with mock.patch.multiple(loop, Clock=_NoClock, Exposed=_NoMarks):
        yield


def norms_looked_at(run: loop.Run) -> loop.Run:
    """With norms by layer every few steps, as a run has them."""
    how = layout.Spread(run.sharding)

    def look(step: int, model: torch.nn.Module) -> None:
        if step % LOOK == 0:
            norms.by_layer(model, run.place, how)

    return replace(run, on_gradients=look)


class Bundled:
    """The bundled loop, a step at a time; watched, it tells a line for each step, as a run does."""

    def __init__(self, run: loop.Run, *, watched: bool) -> None:
        run = norms_looked_at(run) if watched else run
        self.steps = loop.train(run, loop.begin(run, SEED), run.shape.steps)
        self.watched = watched
        self.losses: dict[int, float] = {}
        self.sink = os.open(os.devnull, os.O_WRONLY)
        if watched:
            self.step()
        else:
            with unwatched():
                self.step()

    def step(self) -> None:
        """One optimizer step."""
        told = next(self.steps)
        self.losses[told.step] = told.loss
        if self.watched:
            os.write(self.sink, json.dumps({"kind": "step", **told.line()}).encode())


def compared(asked: Asked, folder: str) -> tuple[Rounds, float]:
    """In this process: seconds by training and round, and how far the losses are apart, relative,
    at the last step that all have told."""
    torch.set_num_threads(1)
    place = join(asked.device)
    run = _run(asked, place, folder)
    trainings: dict[str, Any] = {
        "ours": Bundled(run, watched=True),
        "bare": Bundled(run, watched=False),
        "bare again": Bundled(run, watched=False),
        "plain": Plain(run, SEED),
    }
    turns = {name: _turn(one.step, asked.turn) for name, one in trainings.items()}
    found = taken(turns, asked.rounds, torch.cuda.synchronize if place.gpu else _nothing)
    last = max(set.intersection(*(set(one.losses) for one in trainings.values())))
    losses = [one.losses[last] for one in trainings.values()]
    return found, (max(losses) - min(losses)) / min(losses)


def _nothing() -> None:
    pass


def _turn(step: Callable[[], object], times: int) -> Callable[[], None]:
    def several() -> None:
        for _ in range(times):
            step()

    return several


def _run(asked: Asked, place: Place, folder: str) -> loop.Run:
    shape = asked.shape()
    tokens = loader.Tokens(
        shards.open_shards(folder, shape.vocabulary), shape.length, shape.vocabulary
    )
    order = loader.Order(
        len(tokens), SEED, shape.batch, shape.accumulation, place.rank, place.ranks
    )
    settings = loader.Settings(workers=1, pin=place.gpu)
    sharding = "ddp" if place.ranks > 1 else "single"
    return loop.Run(shape, place, sharding, tokens, order, settings, compiled=asked.compiled)


def measured(asked: Asked) -> tuple[Rounds, float]:
    """The same in ranks of their own, which end with it."""
    shape = asked.shape()

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        found, apart = compared(asked, folder)
        tell({"kind": "rounds", "rounds": found, "apart": apart})

    with tempfile.TemporaryDirectory() as folder:
        tokens = shape.tokens_per_step(asked.ranks) * _STEPS_OF_DATA
        shards.write_synthetic(
            folder, vocabulary=shape.vocabulary, tokens=tokens, shards=2, seed=SEED
        )
        launch = Launch(asked.ranks, work, silent_s=900.0)
        try:
            told = list(launch.lines())
        finally:
            launch.kill()
    found = [one for one in told if one["kind"] == "rounds" and one["rank"] == 0]
    if not found:
        sys.exit(f"error: {asked}: {told}")
    return found[0]["rounds"], found[0]["apart"]


def rows(asked: Asked) -> list[Row]:
    """What was asked for, and what came of it."""
    found, apart = measured(asked)
    where = f"{asked.preset}, {asked.ranks} x {asked.device}" + ", compiled" * asked.compiled
    step_ms = 1000 * median(one["bare"] for one in found) / asked.turn
    told = [
        Row(f"{where}: step", f"{step_ms:.1f} ms", f">= {STEP_MS:.0f} ms", step_ms >= STEP_MS),
        Row(f"{where}: losses of the four apart", f"{apart:.1e}", "<= 1e-3", apart <= 1e-3),
        *_ratios(where, found),
    ]
    if asked.device == "cpu" and asked.ranks == 1:  # several wait for each other on the processor
        told += _ratios(f"{where}, processor time", found, PROCESSOR)
    return told


def _ratios(where: str, found: Rounds, what: str = "") -> list[Row]:
    floor = ratio(found, "bare again" + what, "bare" + what)
    cost = ratio(found, "ours" + what, "bare" + what)
    beyond = 100 * (cost.middle - 1) - 100 * abs(floor.middle - 1)
    share = ratio(found, "plain" + what, "ours" + what)
    return [
        Row(f"{where}: watched / bare (bare / bare: {floor.percent()})", cost.percent(),
            f"{OVERHEAD_PERCENT:+.0f} % beyond the floor", beyond <= OVERHEAD_PERCENT),
        Row(f"{where}: speed beside a plain loop",
            f"{share.middle:.3f} [{share.low:.3f}, {share.high:.3f}]", f">= {PLAIN_SHARE}",
            share.middle >= PLAIN_SHARE),
    ]  # fmt: skip


def title(asked: Asked) -> str:
    """What the figures are of."""
    return (
        f"The training loop by alternate steps: medians of {asked.rounds} paired ratios"
        f" [95 % by bootstrap], torch {torch.__version__}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.training")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--ranks", type=int, action="append", help="default: 1 and 2")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")  # of torch, about itself: they would be told per rank
    counts = asked.ranks or [1, 2]
    each = [Asked(device=asked.device, ranks=count, rounds=asked.rounds) for count in counts]
    return show(title(each[0]), [row for one in each for row in rows(one)])


if __name__ == "__main__":
    sys.exit(main())
