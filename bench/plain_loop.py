"""A plain training loop, as nanoGPT has it: what the bundled loop is held against.

The same model, samples, batch, precision and optimizer; nothing is timed, checked or saved. Batches
are cut from the mapped shards in the training process, and the loss is looked at every tenth step.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from preflight.payload.training import layout, loop

#: Steps from one look at the loss to the next.
LOOK = 10


class Plain:
    """One training, a step at a time."""

    def __init__(self, run: loop.Run, seed: int) -> None:
        self.run, self.at = run, 0
        self.losses: dict[int, float] = {}  # by step, where one was looked at
        shape, place = run.shape, run.place
        torch.manual_seed(seed)
        raw = layout.built(shape, place, seed)
        self.weights = list(raw.parameters())
        model = raw
        if place.ranks > 1:
            on = [place.local_rank] if place.gpu else None
            model = nn.parallel.DistributedDataParallel(
                model, device_ids=on, gradient_as_bucket_view=True
            )
        self.model = torch.compile(model) if run.compiled else model
        groups: list[dict[str, Any]] = [
            {"params": [one for one in self.weights if one.dim() > 1], "weight_decay": 0.1},
            {"params": [one for one in self.weights if one.dim() <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            groups, lr=shape.learning_rate, betas=(0.9, 0.95), fused=place.gpu or None
        )
        self.scaler = torch.amp.GradScaler(place.device.type, enabled=shape.precision == "fp16")
        self.shards = [one.mapped() for one in run.tokens.shards]

    def step(self) -> None:
        """One optimizer step."""
        shape, run = self.run.shape, self.run
        for group in self.optimizer.param_groups:
            group["lr"] = loop.learning_rate(self.at, shape)
        total = torch.zeros((), device=run.place.device)
        for micro, ids in enumerate(run.order.ids(self.at)):
            tokens, targets = self.batch(ids)
            with layout.together(self.model, last=micro + 1 == shape.accumulation):
                with layout.casting(run.place, run.sharding, shape.precision):
                    loss = self.model(tokens, targets) / shape.accumulation
                self.scaler.scale(loss).backward()
            total += loss.detach()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.weights, 1.0)  # as the policy global:1
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.at % LOOK == 0:
            if run.place.ranks > 1:
                dist.all_reduce(total)
            self.losses[self.at] = total.item() / run.place.ranks
        self.at += 1

    def batch(self, ids: list[int]) -> tuple[Tensor, Tensor]:
        """Tokens and those that follow, on the device."""
        found = torch.stack([self.sample(one) for one in ids])
        tokens, targets = found[:, :-1].contiguous(), found[:, 1:].contiguous()
        if not self.run.place.gpu:
            return tokens, targets
        moved = [one.pin_memory().to(self.run.place.device, non_blocking=True)
                 for one in (tokens, targets)]  # fmt: skip
        return moved[0], moved[1]

    def sample(self, at: int) -> Tensor:
        """`length` tokens and one more."""
        length = self.run.shape.length
        for shard, count in zip(self.shards, self.run.tokens.counts, strict=True):
            if at < count:
                return shard[at * length : (at + 1) * length + 1].long()
            at -= count
        raise IndexError(at)
