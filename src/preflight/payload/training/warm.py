"""What torch imports on first use, imported before the ranks are forked: each launch would else
spend seconds on it, in every rank."""

from __future__ import annotations

import contextlib
import gc
from importlib import import_module

import torch

_ON_FIRST_USE = (
    "torch._dynamo",
    "torch._dynamo.polyfills.loader",
    "torch._decomp.decompositions_for_rng",
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
    "torch.distributed.checkpoint._fsspec_filesystem",
    "torch.distributed.device_mesh",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.utils.data",
    "multiprocessing.popen_fork",
    "multiprocessing.queues",
)


def warm() -> None:
    """Imports only, and a step of the optimizer on one number: nothing starts CUDA or a thread."""
    for name in _ON_FIRST_USE:
        with contextlib.suppress(ImportError):  # another torch has other parts
            import_module(name)
    one = torch.zeros((), requires_grad=True)
    one.grad = torch.zeros(())
    torch.optim.AdamW([one]).step()
    # What is imported stays: each collection in a rank would look through all of it, and copy it.
    gc.collect()
    gc.freeze()
