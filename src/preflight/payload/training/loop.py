"""The training loop: read it from top to bottom.

A step is: a batch from the loader, to the device, forward, backward (gradients averaged over the
ranks in its last micro-batch), clip, AdamW, a learning rate that warms up and falls by a cosine;
and now and then a checkpoint that is written beside it. All that a resumed run needs is in State.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..group.join import Place
from . import clipping, layout, loader
from .clock import Clock
from .exposed import Exposed
from .presets import Preset

#: Of AdamW's moments.
BETAS = (0.9, 0.95)


@dataclass
class State:
    """What training changes, and a checkpoint holds."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: Any
    step: int = 0  # the next one; the position in the data too


@dataclass
class Step:
    """What one step tells; what `numbers` waits for, once it is read."""

    step: int
    learning_rate: float
    samples: list[int]  # the ids that were read for it
    numbers: Callable[[], list[float]] = field(repr=False)
    scaled: bool
    times: Callable[[], dict[str, float]] = field(repr=False)
    loss: float = math.nan
    norm: float = math.nan  # of the gradients, before they are clipped
    scale: float = 1.0  # of the loss; 1 where it is not scaled
    skipped: bool = False  # gradients were not finite: the scaler left the weights alone
    seconds: dict[str, float] = field(default_factory=dict)

    def read(self) -> Step:
        """Waits until the step is done everywhere: first its times, then the numbers are there."""
        self.seconds = self.times()
        self.loss, self.norm, self.scale = self.numbers()
        self.skipped = self.scaled and not math.isfinite(self.norm)
        return self

    def line(self) -> dict[str, Any]:
        """As it is told: times to a microsecond, for a line is read by people too."""
        first, rest = ("step", "loss", "norm"), ("learning_rate", "scale", "skipped", "samples")
        seconds = {part: round(one, 6) for part, one in self.seconds.items()}
        told = {name: getattr(self, name) for name in first} | {"seconds": seconds}
        return told | {name: getattr(self, name) for name in rest}


@dataclass
class Run:
    """What is trained, where and how."""

    shape: Preset
    place: Place
    sharding: str
    tokens: loader.Tokens
    order: loader.Order
    settings: loader.Settings
    clip: clipping.Policy = field(default_factory=lambda: clipping.policy("global:1"))
    mesh: str = ""
    comm_hook: str = "none"
    compiled: bool = False
    recompute: float = 0.0  # share of the blocks whose activations are computed twice
    rate_factor: float = 1.0
    spoiled_step: int = -1  # whose targets are noise
    #: Called with the step before it begins, and with its gradients as they are: injected faults.
    before: Callable[[int], None] = lambda _: None
    on_gradients: Callable[[int, nn.Module], None] = lambda _, __: None
    #: Called with its gradients before they are clipped: to look at them.
    on_unscaled: Callable[[int, nn.Module], None] = lambda _, __: None
    #: Called after each step; a checkpoint is begun here.
    after: Callable[[State], None] = lambda _: None


def begin(run: Run, seed: int) -> State:
    """A model, spread over the ranks, and the optimizer of all that is trained in it."""
    model = layout.built(run.shape, run.place, seed, recompute=run.recompute)
    how = layout.Spread(run.sharding, run.mesh, run.comm_hook)
    model = layout.spread(model, run.place, how, run.shape.precision)
    decay = [weight for weight in model.parameters() if weight.dim() > 1]
    plain = [weight for weight in model.parameters() if weight.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        lr=run.shape.learning_rate, betas=BETAS, fused=run.place.gpu or None,
    )  # fmt: skip
    scaler = torch.amp.GradScaler(run.place.device.type, enabled=run.shape.precision == "fp16")
    return State(model, optimizer, scaler)


def train(run: Run, state: State, last_step: int) -> Iterator[Step]:
    """Steps until `last_step`, each told when that waits for nothing: where the device or other
    ranks are still at it, a step later."""
    before: Step | None = None
    for step in steps(run, state, last_step):
        if run.place.gpu or run.place.ranks > 1:
            before, step = step, before
        if step is not None:
            yield step.read()
    if before is not None:
        yield before.read()


def steps(run: Run, state: State, last_step: int) -> Iterator[Step]:
    """The loop itself: each step once all of it is begun."""
    shape, place = run.shape, run.place
    forward = torch.compile(state.model) if run.compiled else state.model
    batches = loader.batches(run.tokens, run.order, state.step, last_step, run.settings)
    clock = Clock(gpu=place.gpu)
    exposed = Exposed(state.model, run.sharding, clock)
    while state.step < last_step:
        clock.begin()
        run.before(state.step)
        rate = run.rate_factor * learning_rate(state.step, shape)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        clock.mark("rest")

        total, samples = torch.zeros((), device=place.device), []
        for micro in range(shape.accumulation):
            batch = next(batches)
            samples += loader.ids(batch)
            clock.mark("data")
            tokens, targets = loader.pair(batch.to(place.device, non_blocking=True))
            if state.step == run.spoiled_step:
                targets = targets.flip(0).roll(7, 1)
            clock.mark("copy")
            last = micro + 1 == shape.accumulation
            exposed.begin(averages=last)
            with layout.together(state.model, last=last):
                with layout.casting(place, run.sharding, shape.precision):
                    # The mean over micro-batches, not their sum: k x 1 is 1 x k.
                    loss = forward(tokens, targets) / shape.accumulation
                exposed.end_forward()
                state.scaler.scale(loss).backward()
            exposed.end_backward()
            total += loss.detach()

        run.on_gradients(state.step, state.model)
        state.scaler.unscale_(state.optimizer)
        run.on_unscaled(state.step, state.model)
        norm = run.clip(state.model)
        scale = state.scaler.scale(torch.ones((), device=place.device))
        state.scaler.step(state.optimizer)
        state.scaler.update()
        state.optimizer.zero_grad(set_to_none=True)
        clock.mark("optimizer")

        state.step += 1
        run.after(state)
        clock.mark("checkpoint")
        numbers = _numbers(total, norm, scale, place)
        clock.mark("communication" if place.ranks > 1 else "rest")
        yield Step(state.step - 1, rate, samples, numbers, state.scaler.is_enabled(), clock.end())
    exposed.close()


def learning_rate(step: int, shape: Preset) -> float:
    """Linear warm-up, then a cosine to a tenth."""
    if step < shape.warmup:
        return shape.learning_rate * (step + 1) / shape.warmup
    share = (step - shape.warmup) / max(1, shape.steps - shape.warmup)
    return shape.learning_rate * (0.55 + 0.45 * math.cos(math.pi * min(1.0, share)))


def _numbers(loss: Tensor, norm: Tensor, scale: Tensor, place: Place) -> Callable[[], list[float]]:
    """Loss, gradient norm and loss scale, averaged over the ranks, on their way to the host: the
    step does not wait for them."""
    whole = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    found = torch.stack([loss.float(), whole.detach().float(), scale.float()])
    summed = place.ranks > 1 and dist.all_reduce(found, async_op=not place.gpu)
    here = torch.empty(3, pin_memory=True).copy_(found, non_blocking=True) if place.gpu else found

    def averaged() -> list[float]:
        if summed:
            summed.wait()
        return [one / place.ranks for one in here.tolist()]

    return averaged
