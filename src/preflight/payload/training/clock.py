"""Where a step's time goes. Parts follow each other and cover the step: they add up to all of it.

On a GPU the parts are taken by events in its stream and read a step later, so that nothing waits
for them; what the host does meanwhile (data, checkpoint) is taken by its own clock.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

#: In the order in which they come.
PARTS = ("data", "copy", "forward", "backward", "communication", "optimizer", "checkpoint", "rest")


class Clock:
    """One step after the other: begin(), mark(part) at the end of each part, end()."""

    def __init__(self, *, gpu: bool) -> None:
        #: A moment, to be marked later.
        self.now: Callable[[], Any] = _event if gpu else time.perf_counter
        self._between: Callable[[Any, Any], float] = _between_events if gpu else _between_times
        self._marks: list[tuple[str, Any]] = []
        self._last: tuple[list[tuple[str, Any]], float] | None = None
        self._began_s = 0.0
        self.collected_s = 0.0  # by Python's garbage collector, within the step
        self._collecting_s = 0.0
        gc.callbacks.append(self._on_collection)

    def begin(self) -> None:
        """A step begins, and with it what is first in it."""
        self._began_s = time.perf_counter()
        self._marks = [("", self.now())]

    def mark(self, part: str, at: Any = None) -> None:
        """The part that ends now, or at an earlier moment; a part may come several times."""
        self._marks.append((part, self.now() if at is None else at))

    def end(self) -> dict[str, float] | None:
        """The step ends. Seconds by part of the step before it on a GPU, of this one on a CPU;
        None where there is none yet."""
        self.mark("rest")
        now = (self._marks, time.perf_counter() - self._began_s)
        told, self._last = (self._last, now) if self.now is _event else (now, None)
        return self._told(*told) if told else None

    def rest(self) -> dict[str, float] | None:
        """The last step, once no other follows."""
        told, self._last = self._last, None
        return self._told(*told) if told else None

    def close(self) -> None:
        gc.callbacks.remove(self._on_collection)

    def _told(self, marks: list[tuple[str, Any]], wall_s: float) -> dict[str, float]:
        spent = dict.fromkeys(PARTS, 0.0)
        for (_, before), (part, after) in zip(marks, marks[1:]):  # noqa: B905, RUF007
            spent[part] += self._between(before, after)
        # What the stream does not show, such as Python between two steps, is rest as well.
        spent["rest"] = max(0.0, wall_s - sum(spent.values()) + spent["rest"])
        return spent

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_s = time.perf_counter()
        else:
            self.collected_s += time.perf_counter() - self._collecting_s


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between_events(before: Any, after: Any) -> float:
    after.synchronize()  # of the step before: it has long been reached
    return before.elapsed_time(after) / 1000.0


def _between_times(before: float, after: float) -> float:
    return after - before
