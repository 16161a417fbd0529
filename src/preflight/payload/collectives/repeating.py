"""What the ranks do for a long time: one collective again and again, told in windows."""

from __future__ import annotations

import heapq
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
#: The longest of a window are told with their times.
_LONGEST = 8
_ON, _NEXT, _OVER = 0, 1, 2


class Kept:
    """Times of calls: all of them, or evenly spread ones of very many."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.count, self.sum, self.most, self.every = 0, 0.0, 0.0, 1
        self.longest: list[tuple[float, float]] = []

    def take(self, seconds: Sequence[float], at_s: float) -> None:
        """Calls in a row, the first of them at this time."""
        for one in seconds:
            if self.count % self.every == 0:
                self.seconds.append(one)
            self.count += 1
            self.most = max(self.most, one)
            self.sum += one
            self.waited(one, at_s)
            at_s += one
        while len(self.seconds) > _KEPT:
            self.seconds, self.every = self.seconds[::2], 2 * self.every

    def waited(self, seconds: float, at_s: float) -> None:
        """For a call, or for a rank that is late between calls; nothing where none was."""
        if seconds <= 0:
            return
        keep = heapq.heappush if len(self.longest) < _LONGEST else heapq.heappushpop
        keep(self.longest, (seconds, at_s))

    def told(self) -> dict[str, Any]:
        """In microseconds; `n`: all calls; `sum_s`: of all of them; `longest`: when those that took
        longest began, and their seconds."""
        longest = [[round(at_s, 3), round(one, 6)] for one, at_s in sorted(self.longest)[::-1]]
        return {**timing.told(self.seconds), "n": self.count, "most_us": round(1e6 * self.most, 1),
                "sum_s": round(self.sum, 6), "longest": longest}  # fmt: skip


def repeating(plan: Plan, order: dict[str, Any], tell: Tell) -> None:
    """A rank's part; the first one's clock decides for all."""
    torch.set_num_threads(plan.threads)
    place = join(plan.device, lambda: tell({"kind": "joined"}))
    call = _call(plan, order, place)
    for _ in range(timing.WARM):
        call()
    run, growing = _Run(call, place, order, tell), Growing(plan)
    run.began_s = time.monotonic()
    ended_s = looked_s = 0.0
    for number in itertools.count():
        dist.barrier()  # a rank that looked at its counters is late
        window, at_s = Kept(), run.now_s()
        window.waited(at_s - ended_s - 2 * looked_s, ended_s)
        word = run.window(window, number)
        ended_s = run.now_s()
        tell({"kind": "window", "window": number, "at_s": round(at_s, 3),
              "lasts_s": round(ended_s - at_s, 3), **window.told()})  # fmt: skip
        if more := growing.grew():
            tell({"kind": "counted", "window": number, "at_s": round(at_s, 3), "grew": more})
        looked_s = run.now_s() - ended_s
        if word == _OVER:
            break
    dist.destroy_process_group()


class _Run:
    """The calls of a rank, in rows after each of which all ranks agree how to go on."""

    def __init__(
        self, call: Callable[[], Any], place: Place, order: dict[str, Any], tell: Tell
    ) -> None:
        self.call, self.place, self.order, self.tell = call, place, order, tell
        self.calls, self.many = timing.in_a_row(place), 1
        self.began_s = self.heard_s = 0.0

    def now_s(self) -> float:
        return time.monotonic() - self.began_s

    def window(self, window: Kept, number: int) -> int:
        """Rows to the end of this window; the word with which it ends."""
        word, until_s = _ON, (number + 1) * self.order["window_s"]
        while word == _ON:
            at_s = self.now_s()
            seconds = timing.of_the_slowest(self.calls(self.call, self.place, self.many),
                                            self.place)  # fmt: skip
            window.take(seconds, at_s)
            now_s = self.now_s()
            self._alive(now_s)
            word = _OVER if now_s >= self.order["lasting_s"] else _ON
            word = _NEXT if not word and now_s >= until_s else word
            fit = _fitting(seconds, self.order["window_s"] / 4)
            word, self.many = _agreed(self.place, word, fit)
            called_s = at_s + sum(seconds)
            window.waited(self.now_s() - called_s, called_s)
        return word

    def _alive(self, now_s: float) -> None:
        if now_s > self.heard_s + _ALIVE_S or not self.heard_s:
            self.heard_s = now_s
            self.tell({"kind": "step", "step": int(now_s), "name": f"{now_s:.0f} s"})


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
