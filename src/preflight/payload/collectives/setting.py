"""What the ranks do with one value of a variable: a collective in some sizes."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist

from ..group.join import join
from ..ranks import Tell
from . import timing
from .operations import COLLECTIVES, IN_PIECES, Ring
from .plan import Plan
from .work import TYPES

#: A size is repeated for so many seconds in each process.
_SIZE_S = 0.3
#: Read when torch is loaded, which was long ago: torch is told by itself.
_THREADS = "OMP_NUM_THREADS"
#: What the bench itself sets for its ranks: not set is then as the bench sets it.
_OF_BENCH = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA")


def setting(plan: Plan, order: dict[str, Any], tell: Tell) -> None:
    """The variable is set in this process, or it is not there at all."""
    name, chosen = order["unset"], order["environment"]
    if name not in chosen and name not in _OF_BENCH:
        os.environ.pop(name, None)
    torch.set_num_threads(int(chosen.get(_THREADS, plan.threads)))
    place = join(plan.device, lambda: tell({"kind": "joined"}))
    make, _ = COLLECTIVES[order["collective"]]
    dtype = TYPES[plan.dtype]
    for step, size in enumerate(order["sizes"]):
        tell({"kind": "step", "step": step, "name": f"{name}={chosen.get(name, '')}, {size} bytes"})
        count = size // dtype.itemsize
        if order["collective"] in IN_PIECES:
            count = max(1, count // place.ranks) * place.ranks
        call = make(Ring(place.rank, place.ranks, place.device, dtype), count)
        seconds = timing.timed(call.run, place, _SIZE_S)
        tell({"kind": "size", "bytes": size, **timing.told(seconds)})
    dist.destroy_process_group()
