"""What one rank does in one launch, and tells about it."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from . import checkpoint, inject, layout, loader, loop, memory, proofs, shards
from .plan import KILLED, RESUMED, WHOLE, Plan
from .presets import Preset, chosen

Tell = Callable[[dict[str, Any]], None]
#: Steps between two looks at what costs time: norms by layer, hashes of the replicas.
_LOOK = 10
#: A file of a rank may be so large where the disk is to be full.
_FULL_BYTES = 64 * 1024


def shape_of(plan: Plan) -> Preset:
    return chosen(plan.preset, **plan.changes)


def saved_at(shape: Preset) -> tuple[int, int, int]:
    """The steps after which a checkpoint is begun: twice in the whole run; once more in the one
    that is killed while it writes."""
    quarter = max(1, shape.steps // 4)
    return quarter, 2 * quarter, 3 * quarter


def work(plan: Plan, launch: str, tell: Tell) -> None:
    """One launch of one rank, from its first line to its last."""
    torch.set_num_threads(plan.threads)
    shape = shape_of(plan)
    place = layout.join(plan.device)
    run = _run(plan, shape, place)
    inject.into(run, plan.inject)
    if launch == WHOLE:
        for line in proofs.proofs(run, plan.seed):
            tell(line)
    state = loop.begin(run, plan.seed)
    if launch == WHOLE:
        tell(proofs.membership(state))
    writer = checkpoint.Writer(str(Path(plan.folder) / "checkpoints"), place)
    if launch != WHOLE:
        _resume(plan, run, state, launch, tell)
    run.after = _watched(run, launch, writer, tell)
    if "full-disk" in plan.inject:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FULL_BYTES, _FULL_BYTES))
    for step in loop.train(run, state, shape.steps):
        tell({"kind": "step", **_short(asdict(step))})
    writer.wait()
    tell({"kind": "memory", **memory.of(state, place)})
    tell({"kind": "done", "digest": checkpoint.digest(state.model), "failed": writer.failed,
          "staged_s": writer.staged_s, "written_s": writer.written_s})  # fmt: skip
    if place.ranks > 1:
        dist.destroy_process_group()


def _run(plan: Plan, shape: Preset, place: layout.Place) -> loop.Run:
    folder = plan.data or str(Path(plan.folder) / "shards")
    tokens = loader.Tokens(shards.open_shards(folder, shape.vocabulary), shape.length,
                           shape.vocabulary)  # fmt: skip
    order = loader.Order(
        len(tokens), plan.seed, shape.batch, shape.accumulation, place.rank, place.ranks
    )
    settings = loader.Settings(workers=plan.workers, pin=place.gpu)
    return loop.Run(shape, place, plan.sharding if place.ranks > 1 else "single", tokens, order,
                    settings, compiled=plan.compiled)  # fmt: skip


def _resume(plan: Plan, run: loop.Run, state: loop.State, launch: str, tell: Tell) -> None:
    began = time.perf_counter()
    at, wrong = checkpoint.newest_sound(str(Path(plan.folder) / "checkpoints"))
    checkpoint.resume(state, run.place, at)
    if launch == RESUMED and "lost-optimizer" in plan.inject:
        state.optimizer.state.clear()
    if launch == RESUMED and "repeated-data" in plan.inject:
        run.order = replace(run.order, behind=state.step)
    digest = checkpoint.digest(state.model)
    tell({"kind": "resumed", "from": at.name, "step_from": state.step, "wrong": wrong,
          "digest": digest, "elapsed_s": time.perf_counter() - began})  # fmt: skip


def _watched(
    run: loop.Run, launch: str, writer: checkpoint.Writer, tell: Tell
) -> Callable[[loop.State], None]:
    """What is looked at between two steps, and when a checkpoint is begun."""
    first, second, third = saved_at(run.shape)
    due = {WHOLE: (first, second), KILLED: (third,)}.get(launch, ())

    def after(state: loop.State) -> None:
        if state.step in due:
            tell({"kind": "saved", "step_at": state.step, "digest": checkpoint.digest(state.model)})
            writer.begin(state)
            tell({"kind": "saving", "step_at": state.step})
        if run.sharding == "ddp" and state.step % _LOOK == 0:
            tell({"kind": "replica", "step_at": state.step,
                  "digest": checkpoint.digest(state.model)})  # fmt: skip

    return after


def _short(step: dict[str, Any]) -> dict[str, Any]:
    """Times to a microsecond: a line is read by people too."""
    return {**step, "seconds": {key: round(one, 6) for key, one in step["seconds"].items()}}
