"""From shards to batches. Which sample is when is a pure function of seed and step: the position in
the data is the step, and a resumed run reads on where the interrupted one stopped."""

from __future__ import annotations

import ctypes
import math
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from ..parent import die_with_launcher
from .shards import Shard, ShardError

#: The loader alone is timed over so many micro-batches, or so long.
_ALONE_BATCHES, _ALONE_S = 24, 1.0


@dataclass(frozen=True)
class Order:
    """Which samples each rank sees at each step: all of them once before any comes again."""

    samples: int
    seed: int
    batch: int
    accumulation: int
    rank: int
    ranks: int
    behind: int = 0  # steps by which the data is behind: an injected fault

    def ids(self, step: int) -> list[list[int]]:
        """The ids of each micro-batch of this rank at a step."""
        each = self.batch * self.ranks
        first = (step - self.behind) * each * self.accumulation
        return [
            [self._id(first + micro * each + self.rank * self.batch + at)
             for at in range(self.batch)]
            for micro in range(self.accumulation)
        ]  # fmt: skip

    def _id(self, place: int) -> int:
        """A permutation of the samples for each pass: i -> a i + b, a coprime to their number."""
        epoch, at = divmod(place, self.samples)
        mixed = (self.seed * 0x9E3779B1 + epoch * 0x85EBCA77) & 0xFFFFFFFF
        factor = mixed % self.samples or 1
        while math.gcd(factor, self.samples) != 1:
            factor += 1
        return (factor * at + mixed // 7) % self.samples


class Tokens(Dataset[Tensor]):
    """Samples: the id of one, its `length` tokens, and the one that follows, all in one tensor.
    Shards are opened where they are read: in the loader's worker."""

    def __init__(self, shards: list[Shard], length: int, vocabulary: int) -> None:
        self.shards, self.length, self.vocabulary = shards, length, vocabulary
        self.counts = [(one.tokens - 1) // length for one in shards]
        self.tampered: Callable[[int], None] | None = None  # injected faults
        self.alone = False  # nobody trains: faults that come once wait
        self._mapped: dict[int, Tensor] = {}
        if not sum(self.counts):
            raise ShardError(f"no shard holds a sample of {length + 1} tokens")

    def __len__(self) -> int:
        return sum(self.counts)

    def __getitem__(self, index: int) -> Tensor:
        if self.tampered:
            self.tampered(index)
        at = index
        for number, count in enumerate(self.counts):  # noqa: B007
            if at < count:
                break
            at -= count
        if number not in self._mapped:
            self._mapped[number] = self.shards[number].mapped()
        ids = self._mapped[number][at * self.length : (at + 1) * self.length + 1].long()
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= self.vocabulary:
            path = self.shards[number].path
            odd = high if high >= self.vocabulary else low
            raise ShardError(f"{path}: token id {odd}, and the vocabulary is {self.vocabulary}")
        return torch.cat((torch.tensor([index]), ids))


class _Ahead(Sampler[list[int]]):
    """The micro-batches from a step on, for as long as somebody asks."""

    def __init__(self, order: Order, first_step: int, steps: int) -> None:
        self.order, self.first_step, self.steps = order, first_step, steps

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self.first_step, self.steps):
            yield from self.order.ids(step)

    def __len__(self) -> int:
        return (self.steps - self.first_step) * self.order.accumulation


@dataclass
class Settings:
    """How samples are prepared; `workers` 0 prepares them in the training process."""

    workers: int = 1
    prefetch: int = 2
    pin: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def batches(
    tokens: Tokens, order: Order, first_step: int, steps: int, settings: Settings
) -> Iterator[Tensor]:
    """Micro-batches in host memory, from a step to the last; ids() and pair() take them apart."""
    several: dict[str, Any] = {}
    if settings.workers:
        several = {
            "prefetch_factor": settings.prefetch,
            "persistent_workers": True,
            "multiprocessing_context": "fork",
        }
    loader: DataLoader[Tensor] = DataLoader(
        tokens,
        batch_sampler=_Ahead(order, first_step, steps),
        num_workers=settings.workers,
        pin_memory=settings.pin,
        worker_init_fn=_quiet,
        **{"collate_fn": _collated, **several, **settings.extra},
    )
    return iter(loader)


def _collated(samples: list[Tensor]) -> Any:
    """A micro-batch of samples."""
    batch = torch.stack(samples)
    return batch if get_worker_info() is None else _Carried(batch)


class _Carried:
    """A micro-batch on its way from a worker: its bytes go through the pipe, and it is a tensor
    again where they are read. torch would open a file of shared memory for each and pass it through
    a socket: three times the work for so few bytes, and a trace where a rank is killed."""

    def __init__(self, batch: Tensor) -> None:
        self.batch = batch

    def __reduce__(self) -> Any:
        data = ctypes.string_at(self.batch.data_ptr(), self.batch.nbytes)
        return _arrived, (bytearray(data), len(self.batch))


def _arrived(data: bytearray, samples: int) -> Tensor:
    return torch.frombuffer(data, dtype=torch.long).view(samples, -1)


def ids(batch: Tensor) -> list[int]:
    """Of the samples in a micro-batch."""
    return [int(one) for one in batch[:, 0].tolist()]


def pair(batch: Tensor) -> tuple[Tensor, Tensor]:
    """Its tokens, and those that follow them: (batch, length) each."""
    return batch[:, 1:-1], batch[:, 2:]


def _quiet(_worker: int) -> None:
    """A worker prepares batches on one thread, for the cores are the ranks'; it ends with its rank,
    and what limits the files of a rank does not limit the memory through which it hands batches."""
    torch.set_num_threads(1)
    die_with_launcher(signal.SIGKILL)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def told_by(error: Exception) -> str:
    """What a shard's error says, without the trace that a worker puts around it."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].rpartition(f"{ShardError.__name__}: ")[2] if lines else type(error).__name__


def loader_alone(tokens: Tokens, order: Order, settings: Settings) -> float:
    """Tokens a second that the loader gives when nobody trains: after what was prefetched."""
    skipped = 1 + settings.workers * settings.prefetch
    steps = -(-(skipped + _ALONE_BATCHES) // order.accumulation)
    tokens.alone = True
    found = batches(tokens, order, 0, steps, settings)
    for _ in range(skipped):
        next(found)
    began, count, elapsed_s = time.perf_counter(), 0, 0.0
    for batch in found:
        count += pair(batch)[0].numel()
        elapsed_s = time.perf_counter() - began
        if elapsed_s > _ALONE_S:
            break
    tokens.alone = False
    return count / elapsed_s
