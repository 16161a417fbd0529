"""Communication that a step waits for, taken out of forward and backward.

What overlaps with computing costs nothing and is not counted. With DDP the wait is what backward
takes after its last gradient; with FSDP2 it is what gathering a block's weights takes before the
block can run, and what is left to reduce when backward has come to the embedding. Gathers within
FSDP2's backward stay in "backward": nothing marks where they end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .clock import Clock


class Exposed:
    """Marks in a step's clock, set by hooks on the model."""

    def __init__(self, model: nn.Module, sharding: str, clock: Clock) -> None:
        self.clock, self._averages, self._forward, self._last = clock, False, False, None
        self._handles: list[Any] = []
        # A compiled model would trace them.
        reached, computed, gathered = map(
            torch.compiler.disable, (self._reached, self._computed, self._gathered)
        )
        if sharding == "ddp":
            for weight in model.parameters():
                self._handles.append(weight.register_post_accumulate_grad_hook(reached))
        elif sharding == "fsdp":
            for part in (model, *model.blocks):
                self._handles += [
                    part.register_forward_pre_hook(computed, prepend=True),
                    part.register_forward_pre_hook(gathered),
                ]
            self._handles.append(model.embedding.register_full_backward_pre_hook(reached))

    def begin(self, *, averages: bool) -> None:
        """A micro-batch begins; `averages`: its gradients are averaged over the ranks."""
        self._averages, self._forward = averages, True

    def end_forward(self) -> None:
        self.clock.mark("forward")
        self._forward = False

    def end_backward(self) -> None:
        """Backward has returned: what it took after its last gradient was a wait."""
        if self._last is not None:
            self.clock.mark("backward", self._last)
            self.clock.mark("communication")
            self._last = None
        else:
            self.clock.mark("backward")

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _reached(self, *_: Any) -> None:
        if self._averages:
            self._last = self.clock.now()

    def _computed(self, *_: Any) -> None:
        if self._forward:  # not where backward computes activations again
            self.clock.mark("forward")

    def _gathered(self, *_: Any) -> None:
        if self._forward:
            self.clock.mark("communication")
