"""What DDP makes of gradients on their way between the ranks, and how many bytes a rank sends.

Bytes are of a ring: an all-reduce of B bytes sends 2 (n - 1) / n B from each of n ranks, an
all-gather to which each adds b bytes sends (n - 1) b (Thakur, Rabenseifner and Gropp 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

#: Of all gradients, what top-k sends: the largest hundredth.
_SHARE = 0.01
#: Rank of the matrices that PowerSGD sends, and from which step on: DDP orders its buckets anew
#: after the first (Vogels et al. 2019; torch's hook asks for two).
_RANK, _FROM_STEP = 2, 2
#: Bytes of a gradient as it is sent; an index of top-k takes as much as a gradient.
_SIZES = {"none": 4, "fp16": 2, "bf16": 2}
_FP32 = 4

HOOKS = ("none", "fp16", "bf16", "powersgd", "topk")


def register(ddp: nn.parallel.DistributedDataParallel, name: str) -> Callable[[], int]:
    """Put the hook into place; what is returned gives the bytes that this rank has sent in a step,
    once there was one."""
    if name == "powersgd":
        return _powersgd(ddp)
    if name == "topk":
        state = TopK()
        # Not the method itself: torch reads its annotations, which are texts here.
        ddp.register_comm_hook(state, lambda each, bucket: each.averaged(bucket))
        return lambda: (dist.get_world_size() - 1) * 2 * _FP32 * state.sent
    if name != "none":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        ddp.register_comm_hook(None, getattr(default_hooks, f"{name}_compress_hook"))
    count = sum(one.numel() for one in ddp.parameters() if one.requires_grad)
    return lambda: _reduced(count * _SIZES[name])


def _reduced(count: int) -> int:
    """Bytes that an all-reduce of so many sends from each rank."""
    ranks = dist.get_world_size()
    return 2 * (ranks - 1) * count // ranks


def _powersgd(ddp: nn.parallel.DistributedDataParallel) -> Callable[[], int]:
    """torch's own, with error feedback."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd

    state = powersgd.PowerSGDState(
        None, matrix_approximation_rank=_RANK, start_powerSGD_iter=_FROM_STEP
    )
    ddp.register_comm_hook(state, powersgd.powerSGD_hook)

    def sent() -> int:
        count = sum(one.numel() for one in ddp.parameters() if one.requires_grad)
        steps = state.total_numel_before_compression // count
        whole = state.total_numel_after_compression // steps if steps else count
        return _reduced(_FP32 * whole)

    return sent


class TopK:
    """Sends the largest hundredth of the gradients, each with its index; what was not sent is added
    to the gradients of the next step (error feedback, Stich et al. 2018)."""

    def __init__(self) -> None:
        self._left: dict[int, Tensor] = {}  # by bucket
        self._counts: dict[int, int] = {}
        self._gathered: dict[int, Tensor] = {}

    @property
    def sent(self) -> int:
        """Gradients that this rank sends in a step."""
        return sum(self._counts.values())

    def averaged(self, bucket: Any) -> Any:
        """One bucket: its mean over the ranks, as a future."""
        whole = bucket.buffer()
        left = self._left.get(bucket.index())
        if left is not None and left.shape == whole.shape:  # buckets are ordered anew once
            whole.add_(left)
        count = max(1, int(_SHARE * whole.numel()))
        at = whole.abs().topk(count).indices
        values = whole[at]
        # What is not finite (a loss scale that is too high) must not stay for ever.
        self._left[bucket.index()] = whole.index_fill(0, at, 0.0).nan_to_num_(0.0, 0.0, 0.0)
        self._counts[bucket.index()] = count
        ranks = dist.get_world_size()
        # Value and index in one message, the bits of the index as those of a number.
        mine = torch.cat((values.float(), at.int().view(torch.float32)))
        all_of_them = torch.empty(ranks * len(mine), dtype=mine.dtype, device=mine.device)
        self._gathered[bucket.index()] = all_of_them  # another stream reads it, until the next step
        sent = dist.all_gather_into_tensor(all_of_them, mine, async_op=True)

        def summed(_: Any) -> Tensor:
            found = all_of_them.view(ranks, 2, count)
            indices = found[:, 1].contiguous().view(torch.int32).long()
            whole.zero_().index_add_(0, indices.flatten(), found[:, 0].flatten().to(whole.dtype))
            return whole.div_(ranks)

        return sent.get_future().then(summed)
