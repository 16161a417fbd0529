"""Where a step's time goes. Parts follow each other without a gap: they add up to all of it.

On a GPU the parts are taken by events in its stream and read a step later, so that nothing waits
for them.
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
        self._marks: list[tuple[str, Any]] = [("", self.now())]

    def begin(self) -> None:
        """A step begins where the one before it ended: what was told in between is its rest."""
        self._marks = self._marks[-1:]
        self.mark("rest")

    def mark(self, part: str, at: Any = None) -> None:
        """The part that ends now, or at an earlier moment; a part may come several times."""
        self._marks.append((part, self.now() if at is None else at))

    def end(self) -> Callable[[], dict[str, float]]:
        """The step ends. What is returned gives its seconds by part, and on a GPU waits until it
        has come so far."""
        self.mark("rest")
        marks = self._marks
        return lambda: self._spent(marks)

    def _spent(self, marks: list[tuple[str, Any]]) -> dict[str, float]:
        spent = dict.fromkeys(PARTS, 0.0)
        for (_, before), (part, after) in zip(marks, marks[1:]):  # noqa: B905, RUF007
            spent[part] += self._between(before, after)
        return spent


class Pauses:
    """Pauses by Python's garbage collector, from here to close()."""

    def __init__(self) -> None:
        self.seconds = self.longest_s = self._began_s = 0.0
        gc.callbacks.append(self._on_collection)

    def close(self) -> None:
        gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began_s = now
        else:
            self.seconds += now - self._began_s
            self.longest_s = max(self.longest_s, now - self._began_s)


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between_events(before: Any, after: Any) -> float:
    after.synchronize()  # of the step before: it has long been reached
    return before.elapsed_time(after) / 1000.0


def _between_times(before: float, after: float) -> float:
    return after - before
