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
#: Steps for which onebit averages as DDP does: a quarter of those of a sweep.
_PLAIN_STEPS = 15
#: Bytes of a gradient as it is sent; an index of top-k takes as much as a gradient.
_SIZES = {"none": 4, "fp16": 2, "bf16": 2}
_FP32 = 4

HOOKS = ("none", "fp16", "bf16", "powersgd", "topk", "onebit")


def register(ddp: nn.parallel.DistributedDataParallel, name: str) -> Callable[[], int]:
    """Put the hook into place; what is returned gives the bytes that this rank has sent in a step,
    once there was one."""
    if name == "powersgd":
        return _powersgd(ddp)
    if name in _OWN:
        state = _OWN[name]()
        # Not the method itself: torch reads its annotations, which are texts here.
        ddp.register_comm_hook(state, lambda each, bucket: each.averaged(bucket))
        return lambda: state.sent_bytes
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


class HeldBack:
    """Sends less than the gradients of a bucket in one gather; what was not sent is added to those
    of the next step (error feedback, Stich et al. 2018)."""

    def __init__(self) -> None:
        self._left: dict[int, Tensor] = {}  # by bucket
        self._sent: dict[int, int] = {}
        self._gathered: dict[int, Tensor] = {}

    @property
    def sent_bytes(self) -> int:
        """What this rank sends in a step, by its last one."""
        return sum(self._sent.values())

    def averaged(self, bucket: Any) -> Any:
        """One bucket: its mean over the ranks, as a future."""
        at, whole, ranks = bucket.index(), bucket.buffer(), dist.get_world_size()
        left = self._left.get(at)
        if left is not None and left.shape == whole.shape:  # buckets are ordered anew once
            whole.add_(left)
        sizes = [one.numel() for one in bucket.gradients()]
        mine, left = self.cut(whole, sizes)
        # What is not finite (a loss scale that is too high) must not stay for ever.
        self._left[at] = left.nan_to_num_(0.0, 0.0, 0.0)
        self._sent[at] = (ranks - 1) * mine.numel() * mine.element_size()
        every = torch.empty(ranks * len(mine), dtype=mine.dtype, device=mine.device)
        self._gathered[at] = every  # another stream reads it, until the next step
        sent = dist.all_gather_into_tensor(every, mine, async_op=True)

        def summed(_: Any) -> Tensor:
            self.add(whole.zero_(), every.view(ranks, -1), sizes)
            return whole.div_(ranks)

        return sent.get_future().then(summed)

    def cut(self, whole: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
        """What is sent, and what is left."""
        raise NotImplementedError

    def add(self, whole: Tensor, every: Tensor, sizes: list[int]) -> None:
        """Add up what all ranks have sent."""
        raise NotImplementedError


class TopK(HeldBack):
    """Sends the largest hundredth of the gradients, each with its index."""

    def cut(self, whole: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
        at = whole.abs().topk(max(1, int(_SHARE * whole.numel()))).indices
        # Value and index in one message, the bits of the index as those of a number.
        mine = torch.cat((whole[at].float(), at.int().view(torch.float32)))
        return mine, whole.index_fill(0, at, 0.0)

    def add(self, whole: Tensor, every: Tensor, sizes: list[int]) -> None:
        values, indices = every.chunk(2, dim=1)
        at = indices.contiguous().view(torch.int32).long()
        whole.index_add_(0, at.flatten(), values.flatten().to(whole.dtype))


class OneBit(HeldBack):
    """Sends the sign of each gradient and one scale for each tensor, the mean of its magnitudes.
    For some steps before it is the plain mean of DDP.

    It is the compression of 1-bit Adam (Tang et al. 2021), and not that optimizer: which keeps its
    variance as it is after such steps, and compresses momentum. Here AdamW goes on with both."""

    def __init__(self) -> None:
        super().__init__()
        self._steps: dict[int, int] = {}

    def averaged(self, bucket: Any) -> Any:
        at, whole = bucket.index(), bucket.buffer()
        self._steps[at] = self._steps.get(at, 0) + 1
        if self._steps[at] > _PLAIN_STEPS:
            return super().averaged(bucket)
        self._sent[at] = _reduced(whole.numel() * whole.element_size())
        sent = dist.all_reduce(whole, async_op=True)
        return sent.get_future().then(lambda _: whole.div_(dist.get_world_size()))

    def cut(self, whole: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
        mine, kept = compressed(whole, sizes)
        return mine, whole - kept

    def add(self, whole: Tensor, every: Tensor, sizes: list[int]) -> None:
        for one in every:
            whole.add_(restored(one, sizes))


def compressed(whole: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
    """What is sent of tensors that lie behind each other: their scales and their signs, eight to a
    byte; and what is read from it."""
    scales = torch.stack([one.abs().mean() for one in whole.float().split(sizes)])
    positive = nn.functional.pad(whole >= 0, (0, -len(whole) % 8)).view(-1, 8)
    packed = (positive * _bits(whole)).sum(1, dtype=torch.uint8)
    mine = torch.cat((scales.view(torch.uint8), packed))
    return mine, restored(mine, sizes)


def restored(sent: Tensor, sizes: list[int]) -> Tensor:
    """The tensors as one rank has sent them: each gradient plus or minus the scale of its own."""
    count = _FP32 * len(sizes)
    # A copy: bytes of a rank need not begin where a number may.
    scales = sent[:count].clone().view(torch.float32)
    signs = (sent[count:, None] & _bits(sent)).flatten()[: sum(sizes)].ne(0)
    pairs = zip(scales.unbind(), sizes)  # noqa: B905 - Python 3.9 has no strict
    each = torch.cat([scale.expand(size) for scale, size in pairs])
    return torch.where(signs, each, -each)


def _bits(like: Tensor) -> Tensor:
    return 1 << torch.arange(8, dtype=torch.uint8, device=like.device)


_OWN: dict[str, type[HeldBack]] = {"topk": TopK, "onebit": OneBit}
