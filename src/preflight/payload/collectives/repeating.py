"""What the ranks do for a long time: one collective again and again, told in windows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from ..group.join import Place, join
from ..ranks import Tell
from . import timing
from .growing import Growing
from .operations import COLLECTIVES, IN_PIECES, Ring
from .plan import Plan
from .work import TYPES

#: Seconds of calls in a row at most, a quarter of a window, after which all ranks agree how to go
#: on; and the most calls of them.
_IN_A_ROW_S, _MOST_IN_A_ROW = 0.25, 1000
#: A word of each rank so often, whatever a window lasts: one that says nothing is lost.
_ALIVE_S = 5.0
#: Calls of a window of which the time is kept; of more, every second one, every fourth ...
_KEPT = 4096
_ON, _NEXT, _OVER = 0, 1, 2


class Kept:
    """Times of calls: all of them, or evenly spread ones of very many."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.count, self.most, self.every = 0, 0.0, 1

    def take(self, seconds: Sequence[float]) -> None:
        for one in seconds:
            if self.count % self.every == 0:
                self.seconds.append(one)
            self.count += 1
            self.most = max(self.most, one)
        while len(self.seconds) > _KEPT:
            self.seconds, self.every = self.seconds[::2], 2 * self.every

    def told(self) -> dict[str, Any]:
        """In microseconds; `n`: all calls."""
        return {**timing.told(self.seconds), "n": self.count, "most_us": round(1e6 * self.most, 1)}


def repeating(plan: Plan, order: dict[str, Any], tell: Tell) -> None:
    """A rank's part; the first one's clock decides for all."""
    torch.set_num_threads(plan.threads)
    place = join(plan.device, lambda: tell({"kind": "joined"}))
    call = _call(plan, order, place)
    for _ in range(timing.WARM):
        call()
    calls, began_s, word, many = timing.in_a_row(place), time.monotonic(), _ON, 1
    heard_s, growing = 0.0, Growing(plan)
    for number in itertools.count():
        dist.barrier()  # a rank that looked at its counters is late
        window, at_s = Kept(), time.monotonic() - began_s
        word = _ON
        while word == _ON:
            seconds = timing.of_the_slowest(calls(call, place, many), place)
            window.take(seconds)
            now_s = time.monotonic() - began_s
            if now_s > heard_s + _ALIVE_S or not heard_s:
                heard_s = now_s
                tell({"kind": "step", "step": int(now_s), "name": f"{now_s:.0f} s"})
            word = _OVER if now_s >= order["lasting_s"] else _ON
            word = _NEXT if not word and now_s >= (number + 1) * order["window_s"] else word
            word, many = _agreed(place, word, _fitting(seconds, order["window_s"] / 4))
        lasts_s = time.monotonic() - began_s - at_s
        tell({"kind": "window", "window": number, "at_s": round(at_s, 3),
              "lasts_s": round(lasts_s, 3), **window.told()})  # fmt: skip
        if more := growing.grew():
            tell({"kind": "counted", "window": number, "at_s": round(at_s, 3), "grew": more})
        if word == _OVER:
            break
    dist.destroy_process_group()


def _call(plan: Plan, order: dict[str, Any], place: Place) -> Callable[[], Any]:
    make, _ = COLLECTIVES[order["collective"]]
    dtype = TYPES[plan.dtype]
    count = order["bytes"] // dtype.itemsize
    if order["collective"] in IN_PIECES:
        count = max(1, count // place.ranks) * place.ranks
    call: Callable[[], Any] = make(Ring(place.rank, place.ranks, place.device, dtype), count).run
    return call


def _fitting(seconds: Sequence[float], most_s: float) -> int:
    """Calls in a row that take as long as they should."""
    aim_s = min(_IN_A_ROW_S, most_s)
    return min(_MOST_IN_A_ROW, max(1, int(aim_s / max(median(seconds), 1e-6))))


def _agreed(place: Place, word: int, many: int) -> tuple[int, int]:
    told = torch.tensor([word, many], device=place.device)
    dist.broadcast(told, 0)
    word, many = told.tolist()
    return int(word), int(many)
