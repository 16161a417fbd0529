"""How long a collective takes: repeated until its median is known, or until the time is over.

On a GPU the calls follow each other on the stream and events stand between them, as in training; on
a CPU each call is waited for. All ranks repeat equally often, for the first of them decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from ..group.join import Place

#: Calls before those that count: connections are made, kernels are loaded, buffers are taken.
WARM = 3
#: Calls in a row before all ranks agree whether to go on, and least and most of them all together.
_IN_A_ROW, LEAST, MOST = 5, 5, 1000
#: The median is known where half of its interval is below so much of it: 1.25 x the spread over
#: the square root of the number is a standard error of a median (of a normal distribution; the
#: spread as 1.4826 x the median distance).
_KNOWN = 0.01


def timed(call: Callable[[], Any], place: Place, most_s: float) -> list[float]:
    """Seconds of each call, of the rank that took longest."""
    for _ in range(WARM):
        call()
    calls = in_a_row(place)
    seconds: list[float] = []
    until_s = time.monotonic() + most_s
    while _go_on(seconds, place, until_s):
        seconds += calls(call, place, _IN_A_ROW)
    return of_the_slowest(seconds, place)


def repeated(call: Callable[[], Any], place: Place, times: int) -> list[float]:
    """The same of so many calls."""
    for _ in range(WARM):
        call()
    return of_the_slowest(in_a_row(place)(call, place, times), place)


def in_a_row(place: Place) -> Callable[[Callable[[], Any], Place, int], list[float]]:
    """What times so many calls on this device, as this rank sees them."""
    return _events if place.gpu else _waited


def of_the_slowest(seconds: list[float], place: Place) -> list[float]:
    """A rank that only sends is done before the others have it all."""
    told = torch.tensor(seconds, dtype=torch.float64, device=place.device)
    dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return [float(one) for one in told.tolist()]


def _events(call: Callable[[], Any], place: Place, times: int) -> list[float]:
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    marks[0].record()
    for mark in marks[1:]:
        call()
        mark.record()
    torch.cuda.synchronize(place.device)
    pairs = zip(marks, marks[1:])  # noqa: B905, RUF007 - Python 3.9
    return [before.elapsed_time(after) / 1000 for before, after in pairs]


def _waited(call: Callable[[], Any], _: Place, times: int) -> list[float]:
    seconds = []
    for _number in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds


def _go_on(seconds: list[float], place: Place, until_s: float) -> bool:
    """What the first rank decides."""
    enough = len(seconds) >= LEAST and (
        len(seconds) >= MOST or time.monotonic() > until_s or known(seconds)
    )
    word = torch.tensor(0 if enough else 1, device=place.device)
    dist.broadcast(word, 0)
    return bool(word.item())


def known(seconds: list[float]) -> bool:
    """Whether more of them would not change the median."""
    middle = median(seconds)
    return bool(1.25 * spread_of(seconds) / len(seconds) ** 0.5 < _KNOWN * middle)


def spread_of(seconds: list[float]) -> float:
    """The median distance from the median, as the standard deviation of a normal distribution."""
    middle = median(seconds)
    return 1.4826 * median(abs(one - middle) for one in seconds)


def told(seconds: list[float]) -> dict[str, Any]:
    """In microseconds."""
    low, high = (sorted(seconds)[int(share * (len(seconds) - 1))] for share in (0.1, 0.9))
    return {
        "n": len(seconds), "median_us": round(1e6 * median(seconds), 2),
        "mad_us": round(1e6 * spread_of(seconds) / 1.4826, 2),
        "low_us": round(1e6 * low, 2), "high_us": round(1e6 * high, 2),
    }  # fmt: skip
