"""What one rank does in one launch, and tells about it."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

from ..group.join import Place, join
from ..ranks import Tell
from . import (
    checkpoint,
    clipping,
    devices,
    inject,
    layout,
    loader,
    loop,
    measured,
    memory,
    norms,
    proofs,
    shards,
)
from .clock import Pauses
from .plan import KILLED, RESUMED, SWEPT, WHOLE, Plan
from .presets import Preset, chosen

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
    place = join(plan.device, lambda: tell({"kind": "joined"}))
    try:
        _work(plan, shape, place, launch, tell)
    except (torch.cuda.OutOfMemoryError, MemoryError, RuntimeError) as error:
        text = memory.exhausted(error)
        if not text:
            raise
        told = {"kind": "failed", "error": "OutOfMemoryError", "text": text[:2000]}
        tell({**told, **({"memory": memory.allocator(place)} if place.gpu else {})})
        raise SystemExit(1) from error
    except shards.ShardError as error:
        raise shards.ShardError(loader.told_by(error)) from None
    if place.ranks > 1:
        dist.destroy_process_group()


def _work(plan: Plan, shape: Preset, place: Place, launch: str, tell: Tell) -> None:
    run = _run(plan, shape, place)
    inject.into(run, plan.inject)
    if plan.compiled:
        tell({"kind": "compiling"})
    if launch == SWEPT:
        measured.few_steps(run, plan, tell)
        return
    if launch == WHOLE:
        for line in proofs.proofs(run, plan.seed):
            tell(line)
        alone = loader.loader_alone(run.tokens, run.order, run.settings)
        tell({"kind": "loader_alone", "tokens_per_s": round(alone, 1)})
    state = loop.begin(run, plan.seed)
    if launch == WHOLE:
        tell(proofs.membership(state))
    writer = checkpoint.Writer(plan.checkpoints, place)
    if launch != WHOLE:
        _resume(plan, run, state, launch, tell)
    run.after = _watched(plan, run, launch, writer, tell)
    _norms_told(run, tell)
    if "full-disk" in plan.inject:
        _fill_disk()
    _train(run, state, place, tell)
    writer.wait()
    tell({"kind": "memory", **memory.of(state, place)})
    tell({"kind": "done", "digest": checkpoint.digest(state.model), "failed": writer.failed,
          "failed_by": writer.failed_by, "staged_s": writer.staged_s,
          "written_s": writer.written_s})  # fmt: skip


def _train(run: loop.Run, state: loop.State, place: Place, tell: Tell) -> None:
    """The loop, and beside it the collector's pauses, the device, the changes of the loss scale."""
    pauses, sampler = Pauses(), devices.Sampler(place, tell)
    before: loop.Step | None = None
    for step in loop.train(run, state, run.shape.steps):
        if before is not None and step.scale != before.scale:
            tell({"kind": "scale", "step": before.step, "from": before.scale, "to": step.scale})
        tell({"kind": "step", **step.line()})
        before = step
    sampler.close()
    pauses.close()
    tell({"kind": "gc", "seconds": round(pauses.seconds, 6),
          "longest_s": round(pauses.longest_s, 6)})  # fmt: skip


def _norms_told(run: loop.Run, tell: Tell) -> None:
    """Norms by layer every few steps."""
    how = layout.Spread(run.sharding, run.mesh)

    def look(step: int, model: torch.nn.Module) -> None:
        if step % _LOOK == 0:
            layers = norms.by_layer(model, run.place, how)
            tell({"kind": "norms", "step": step, "layers": layers})

    run.on_unscaled = look


def _fill_disk() -> None:
    """An injected fault: what is written beyond some bytes fails. Not in the loader's workers."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FULL_BYTES, hard))


def _run(plan: Plan, shape: Preset, place: Place) -> loop.Run:
    folder = plan.data or str(Path(plan.folder) / "shards")
    tokens = loader.Tokens(shards.open_shards(folder, shape.vocabulary), shape.length,
                           shape.vocabulary)  # fmt: skip
    order = loader.Order(
        len(tokens), plan.seed, shape.batch, shape.accumulation, place.rank, place.ranks
    )
    pin = place.gpu if plan.pin is None else plan.pin
    settings = loader.Settings(plan.workers, plan.prefetch, pin=pin)
    return loop.Run(shape, place, plan.sharding if place.ranks > 1 else "single", tokens, order,
                    settings, mesh=plan.mesh, comm_hook=plan.comm_hook, compiled=plan.compiled,
                    recompute=plan.recompute, clip=clipping.policy(plan.clip))  # fmt: skip


def _resume(plan: Plan, run: loop.Run, state: loop.State, launch: str, tell: Tell) -> None:
    began = time.perf_counter()
    at, wrong = checkpoint.agreed(plan.checkpoints, run.place)
    checkpoint.resume(state, run.place, at)
    if launch == RESUMED and "lost-optimizer" in plan.inject:
        state.optimizer.state.clear()
    if launch == RESUMED and "repeated-data" in plan.inject:
        run.order = replace(run.order, behind=state.step)
    digest = checkpoint.digest(state.model)
    tell({"kind": "resumed", "from": at.name, "step_from": state.step, "wrong": wrong,
          "digest": digest, "elapsed_s": time.perf_counter() - began})  # fmt: skip


def _watched(
    plan: Plan, run: loop.Run, launch: str, writer: checkpoint.Writer, tell: Tell
) -> Callable[[loop.State], None]:
    """What is looked at between two steps, and when a checkpoint is begun."""
    first, second, third = saved_at(run.shape)
    due = {WHOLE: (first, second), KILLED: (third,)}.get(launch, ()) if plan.checkpoints else ()

    replicated = run.sharding == "ddp" or layout.Spread(run.sharding, run.mesh).replicas > 1

    def after(state: loop.State) -> None:
        if state.step in due:
            tell({"kind": "saved", "step_at": state.step, "digest": checkpoint.digest(state.model)})
            writer.begin(state)
            tell({"kind": "saving", "step_at": state.step})
        if replicated and state.step % _LOOK == 0:
            tell({"kind": "replica", "step_at": state.step,
                  "digest": checkpoint.digest(state.model)})  # fmt: skip

    return after
