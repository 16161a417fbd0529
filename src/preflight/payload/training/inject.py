"""Faults on purpose, for tests and drills: name -> what it does to a run.

Slow ones wait rather than compute, so that they cost no core. An argument follows a colon:
slow-rank:1 is rank 1. Where a step is asked for and none given, it is a third of the run.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import struct
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .loop import Run

#: What each does, for --help and for a name that is not known.
FAULTS = {
    "slow-rank": "rank N (default: the last) waits before each step, two steps long",
    "slow-loader": "a batch takes three steps to prepare, or every sample N ms",
    "pickle-heavy": "the loader hands N Python objects (3 million) from process to process",
    "stall": "the loader stands still for 5 s, once",
    "kill": "rank N (default: the last) is killed",
    "stop": "rank N (default: the last) is stopped by SIGSTOP",
    "flip-weight": "one bit of a weight of rank N (default: the last) is turned",
    "flip-gradient": "one bit of a gradient of rank N (default: the last) is turned",
    "nan": "a gradient is not a number at step K",
    "rate-x100": "the learning rate is a hundred times too high",
    "bad-batch": "the targets of one batch are noise",
    "lost-optimizer": "the resumed run begins with an empty optimizer",
    "repeated-data": "the resumed run begins with the first data again",
    "corrupt-checkpoint": "a byte of the checkpoint is changed before the resume",
    "half-checkpoint": "a file of the checkpoint is cut in half before the resume",
    "full-disk": "the checkpoint does not fit on its file system",
    "pageable": "batches are copied from memory that is not pinned",
    "tiny-kernels": "the step is interspersed with a thousand tiny operations",
    "churn": "the allocator is given blocks of ever other sizes",
    "gc-pauses": "Python's collector has a million objects to look through, at every step",
}

#: What does nothing on processors, and why.
ON_GPUS = {
    "pageable": "processors copy no batch",
    "tiny-kernels": "on processors an operation costs nothing to launch",
    "churn": "on processors torch has no allocator of its own",
}
#: What the number behind the colon is of; of the others it is a measure.
OF_RANK = frozenset({"slow-rank", "kill", "stop", "flip-weight", "flip-gradient"})
OF_STEP = frozenset({"stall", "nan", "bad-batch"})
OF_RESUME = frozenset({
    "lost-optimizer", "repeated-data", "corrupt-checkpoint", "half-checkpoint",
})  # fmt: skip
OF_SEVERAL = frozenset({"slow-rank", "flip-weight", "flip-gradient"})
OF_REPLICAS = frozenset({"flip-weight", "flip-gradient"})
#: The loss of a step is held against so many before it.
BEFORE_JUMP = 10
#: Moments between steps from which it is told how long these are.
_MEASURED = 6


def into(run: Run, faults: dict[str, str]) -> None:
    """Put the faults that act while training runs into it; those of a resume are the launcher's."""
    for name, argument in faults.items():
        builder = _BUILDERS.get(name)
        if builder:
            builder(run, argument)


def _rank(run: Run, argument: str) -> bool:
    wanted = int(argument) if argument else run.place.ranks - 1
    return run.place.rank == wanted


def _step(run: Run, argument: str) -> int:
    return int(argument) if argument else run.shape.steps // 3


def _before(run: Run, act: Callable[[int], None]) -> None:
    earlier = run.before

    def both(step: int) -> None:
        earlier(step)
        act(step)

    run.before = both


def _slow_rank(run: Run, argument: str) -> None:
    seen: list[float] = []

    def wait(_: int) -> None:
        if len(seen) < 4:  # the first one is longer than the others
            seen.append(time.perf_counter())
            return
        time.sleep(min(1.0, max(0.02, seen[3] - seen[1])))

    if _rank(run, argument):
        _before(run, wait)


def _slow_loader(run: Run, argument: str) -> None:
    each_s = float(argument or "20") / 1000.0
    if argument:
        run.tokens.tampered = lambda _: time.sleep(each_s)
        return
    # Three steps long, however long these are here; the loader's workers, which are forked, see it.
    told = mmap.mmap(-1, struct.calcsize("d"))
    seen: list[float] = []

    def measure(_: int) -> None:
        seen.append(time.perf_counter())
        if len(seen) == _MEASURED:
            # The first is longer than the others; of these the longest, lest a lucky few count.
            longest_s = max(after - before for before, after in zip(seen[1:], seen[2:]))  # noqa: B905, RUF007
            whole_s = min(1.0, max(0.1, 3.0 * longest_s))
            samples = run.shape.batch * run.shape.accumulation
            told[:] = struct.pack("d", whole_s * max(1, run.settings.workers) / samples)

    def prepare(_: int) -> None:
        time.sleep(each_s if run.tokens.alone else struct.unpack("d", told[:])[0])

    _before(run, measure)
    run.tokens.tampered = prepare


def _pickle_heavy(run: Run, argument: str) -> None:
    # So many that to make them takes twice as long as a step of cpu-tiny, on the same processor.
    run.settings.extra["collate_fn"] = _Heavy(int(argument or "3000000"))


class _Heavy:
    """Batches that are Python numbers on their way, with as many others as careless collating
    hands over beside them: the training process has to make objects of all."""

    def __init__(self, beside: int) -> None:
        self.beside = list(range(100_000, 100_000 + beside))

    def __call__(self, samples: list[torch.Tensor]) -> Any:
        listed = [sample.tolist() for sample in samples]
        if torch.utils.data.get_worker_info() is None:
            return _rebuilt(listed, self.beside)
        return _Listed(listed, self.beside)


class _Listed:
    def __init__(self, *what: Any) -> None:
        self.what = what

    def __reduce__(self) -> Any:
        return _rebuilt, self.what


def _rebuilt(listed: list[list[int]], _: list[int]) -> torch.Tensor:
    return torch.tensor(listed)


def _stall(run: Run, argument: str) -> None:
    at, left = _step(run, argument) * run.shape.batch, [1]

    def stand(_: int) -> None:
        left[0] += not run.tokens.alone
        if left[0] == at:
            time.sleep(5.0)

    run.tokens.tampered = stand


def _signalled(number: int) -> Callable[[Run, str], None]:
    def build(run: Run, argument: str) -> None:
        at = _step(run, "")
        if _rank(run, argument):
            _before(run, lambda step: os.kill(os.getpid(), number) if step == at else None)

    return build


def _flip_weight(run: Run, argument: str) -> None:
    at = _step(run, "")
    if not _rank(run, argument):
        return

    def flip(step: int, model: nn.Module) -> None:
        if step == at:
            _turn(next(model.parameters()).data)

    _on_gradients(run, flip)


def _flip_gradient(run: Run, argument: str) -> None:
    at = _step(run, "")
    if not _rank(run, argument):
        return

    def flip(step: int, model: nn.Module) -> None:
        gradient = next(model.parameters()).grad
        if step == at and gradient is not None:
            _turn(gradient)

    _on_gradients(run, flip)


def _turn(tensor: torch.Tensor) -> None:
    """Turn a high bit of the mantissa of the first element: the value changes by a quarter."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    bits = local.view(torch.int32 if local.element_size() == 4 else torch.int16).flatten()
    bits[0] ^= 1 << (21 if local.element_size() == 4 else 5)


def _on_gradients(run: Run, act: Callable[[int, nn.Module], None]) -> None:
    earlier = run.on_gradients

    def both(step: int, model: nn.Module) -> None:
        earlier(step, model)
        act(step, model)

    run.on_gradients = both


def _nan(run: Run, argument: str) -> None:
    at = _step(run, argument)

    def spoil(step: int, model: nn.Module) -> None:
        gradient = next(model.parameters()).grad
        if step == at and gradient is not None:
            local = gradient.to_local() if hasattr(gradient, "to_local") else gradient
            local.flatten()[0] = float("nan")

    _on_gradients(run, spoil)


def _rate(run: Run, argument: str) -> None:
    run.rate_factor = float(argument or "100")


def _bad_batch(run: Run, argument: str) -> None:
    run.spoiled_step = _step(run, argument)


def _pageable(run: Run, _: str) -> None:
    run.settings.pin = False


def _tiny(run: Run, argument: str) -> None:
    count = int(argument or "1000")
    one = torch.ones((), device=run.place.device)

    def many(_: int) -> None:
        for _ in range(count):
            one.add_(1.0).mul_(0.5)

    _before(run, many)


def _churn(run: Run, _: str) -> None:
    held: list[torch.Tensor] = []

    def allocate(step: int) -> None:
        held.append(torch.empty((7919 * (step % 61 + 1),), device=run.place.device))
        if len(held) > 40:
            del held[::2]

    _before(run, allocate)


def _gc(run: Run, argument: str) -> None:
    kept = [[number] for number in range(int(argument or "1000000"))]

    def collect(_: int) -> None:
        assert kept
        gc.collect()

    _before(run, collect)


_BUILDERS: dict[str, Callable[[Run, str], None]] = {
    "slow-rank": _slow_rank, "slow-loader": _slow_loader, "pickle-heavy": _pickle_heavy,
    "stall": _stall, "kill": _signalled(signal.SIGKILL), "stop": _signalled(signal.SIGSTOP),
    "flip-weight": _flip_weight, "flip-gradient": _flip_gradient, "nan": _nan, "rate-x100": _rate,
    "bad-batch": _bad_batch, "pageable": _pageable, "tiny-kernels": _tiny, "churn": _churn,
    "gc-pauses": _gc,
}  # fmt: skip
