"""What one rank does in a bench: every collective in every size, proved once and timed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from ..group.join import Place, join
from ..ranks import Tell
from . import timing
from .operations import COLLECTIVES, IN_PIECES, Ring, wrong
from .plan import Plan

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Sizes:
    """From .. to, each so many times the one before, and the last whatever it is; a size is
    repeated for so many seconds."""

    begin: int
    end: int
    factor: int
    seconds: float

    def __iter__(self) -> Iterator[int]:
        size = self.begin
        while size < self.end:
            yield size
            size *= self.factor
        yield self.end


#: Where none are asked for. On a CPU what is timed is memory and scheduler: a few suffice.
SIZES = {"cuda": Sizes(8, 1 << 33, 4, 0.5), "cpu": Sizes(1 << 10, 1 << 24, 1 << 7, 0.2)}
#: A size that would take longer is left out, and those above it: no rank may be silent for long.
_MOST_S = 30.0
_CALLS = timing.WARM + timing.LEAST + 1
#: Of a GPU's free memory buffers may take so much.
_SHARE = 0.4


def sizes_of(plan: Plan) -> Sizes:
    """Those of the plan, and what it left open."""
    own = SIZES[plan.device]
    begin, end = plan.begin_bytes or own.begin, plan.end_bytes or own.end
    return Sizes(begin, max(begin, end), plan.factor or own.factor, plan.size_s or own.seconds)


def work(plan: Plan, tell: Tell) -> None:
    """All of it, from the first word to the others to the last."""
    torch.set_num_threads(plan.threads)
    began = time.monotonic()
    place = join(plan.device, lambda: tell({"kind": "joined"}))
    joined = time.monotonic()
    tell({"kind": "started", "join_s": round(joined - began, 4), **_first_two(place),
          "device": _name(place)})  # fmt: skip
    number = 0
    for name in plan.collectives or COLLECTIVES:
        calls_s = 0.0  # that the next size would take at least
        for size in sizes_of(plan):
            # A rank that is behind is found by the number.
            tell({"kind": "step", "step": number, "name": f"{name}, {size} bytes"})
            found = _measured(plan, place, name, size, calls_s)
            calls_s = found.get("median_us", 0.0) / 1e6 * _CALLS * sizes_of(plan).factor
            tell({"kind": "size", **found})
            number += 1
    dist.destroy_process_group()


def measured(plan: Plan, name: str, size: int, repeats: int, tell: Tell) -> None:
    """One collective in one size, so many times: a test of a search. Of several interfaces gloo
    takes the next for each call: a time is the mean of one over each of them."""
    torch.set_num_threads(plan.threads)
    place = join(plan.device)
    make, _ = COLLECTIVES[name]
    dtype = TYPES[plan.dtype]
    call = make(Ring(place.rank, place.ranks, place.device, dtype), size // dtype.itemsize)
    turns = 1 if place.gpu else os.environ.get("GLOO_SOCKET_IFNAME", "").count(",") + 1

    def over_each() -> None:
        for _ in range(turns):
            call.run()

    seconds = timing.repeated(over_each, place, repeats)
    tell({"kind": "measured", "seconds": [one / turns for one in seconds]})
    dist.destroy_process_group()


def _name(place: Place) -> str:
    return str(torch.cuda.get_device_name(place.device)) if place.gpu else "processors"


def _first_two(place: Place) -> dict[str, float]:
    """Connections are made by the first collective on new buffers; a second one finds them."""
    seconds = []
    for _ in range(2):
        one = torch.ones(1 << 18, device=place.device)
        began = time.monotonic()
        dist.all_reduce(one)
        if place.gpu:
            torch.cuda.synchronize(place.device)
        seconds.append(round(time.monotonic() - began, 4))
    return {"first_s": seconds[0], "second_s": seconds[1]}


def _measured(plan: Plan, place: Place, name: str, size: int, calls_s: float) -> dict[str, Any]:
    make, buffers = COLLECTIVES[name]
    dtype = TYPES[plan.dtype]
    count = size // dtype.itemsize
    if name in IN_PIECES:
        count -= count % place.ranks
    about = {"collective": name, "bytes": count * dtype.itemsize, "asked_bytes": size,
             "dtype": plan.dtype}  # fmt: skip
    if not count:
        return {**about, "skipped": f"less than one element for each of {place.ranks} ranks"}
    if calls_s > _MOST_S:
        return {**about, "skipped": f"it would take about {calls_s:.0f} s"}
    if not _fits(place, buffers * size):
        return {**about, "skipped": "its buffers would not fit into the free memory"}
    call = make(Ring(place.rank, place.ranks, place.device, dtype), count)
    call.fill()
    call.run()
    bad = _summed(wrong(call), place)
    seconds = timing.timed(call.run, place, sizes_of(plan).seconds)
    return {**about, "ranks": place.ranks, "count": count, "wrong": bad, **timing.told(seconds)}


def _fits(place: Place, size: int) -> bool:
    """What the first rank finds counts for all: they go on together."""
    fits = torch.ones((), device=place.device, dtype=torch.int32)
    if place.gpu:
        fits.fill_(int(size < _SHARE * torch.cuda.mem_get_info(place.device)[0]))
    dist.all_reduce(fits, op=dist.ReduceOp.MIN)
    return bool(fits.item())


def _summed(found: int, place: Place) -> int:
    told = torch.tensor(found, device=place.device, dtype=torch.int64)
    dist.all_reduce(told)
    return int(told.item())
