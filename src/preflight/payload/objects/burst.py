"""Requests, so many at once, until they are done or their time is up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .faults import words

#: Beyond its time a request may take so long; and so long once the run is interrupted.
GRACE_S, _ENDS_S = 15.0, 5.0
#: Where so many failed and none was answered, no more are tried. Texts of failures that are told.
_HOPELESS, _SAID = 16, 3


class Burst:
    """One way of asking: each name once. `prepare` makes what `act` takes, and `look` is given
    what it yields; only `act` is timed."""

    def __init__(
        self, names: Sequence[str], act: Callable[[str, Any], Any],
        prepare: Callable[[str], Any], look: Callable[[str, Any], None],
    ) -> None:  # fmt: skip
        self.names = names
        self.act, self.prepare, self.look = act, prepare, look
        self.taken_us: list[int] = []
        self.done: list[str] = []
        self.failed, self.hung = 0, 0
        self.lost = 0  # of what is got: not there
        self.said: dict[str, None] = {}
        self.elapsed_s = 0.0
        self._queue: Iterator[str] = iter(names)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._last_s = 0.0

    def run(self, at_once: int, seconds: float) -> Burst:
        """To its end, or so long and what is under way then."""
        began_s = time.monotonic()
        until_s = began_s + seconds
        threads = [
            threading.Thread(target=self._work, args=(until_s,), daemon=True)
            for _ in range(at_once)
        ]
        for one in threads:
            one.start()
        grace_s = _ENDS_S
        try:
            _join(threads, until_s + GRACE_S)
            grace_s = 0.0
        finally:  # interrupted: what is under way would come after the removal
            self._stop.set()
            _join(threads, time.monotonic() + grace_s)
        with self._lock:
            self.hung = sum(one.is_alive() for one in threads)
            self.elapsed_s = max(self._last_s - began_s, 0.0)
        return self

    def _work(self, until_s: float) -> None:
        while not self._stop.is_set() and time.monotonic() < until_s:
            with self._lock:
                name = next(self._queue, None)
            if name is None or (self.failed >= _HOPELESS and not self.done):
                return
            self._ask(name, self.prepare(name))

    def _ask(self, name: str, given: Any) -> None:
        began_s = time.monotonic()
        try:
            found = self.act(name, given)
        except Exception as error:  # noqa: BLE001 - a library may raise anything
            with self._lock:
                self._last_s = time.monotonic()
                if _is_gone(error):
                    self.lost += 1
                else:
                    self.failed += 1
                if len(self.said) < _SAID:
                    self.said[words(error)] = None
            return
        ended_s = time.monotonic()
        with self._lock:
            self._last_s = ended_s
            self.taken_us.append(round((ended_s - began_s) * 1e6))
            self.done.append(name)
        self.look(name, found)


def _is_gone(error: Exception) -> bool:
    """The store answers, and has no such object."""
    return isinstance(error, FileNotFoundError) and not words(error).startswith("no such bucket: N")


def _join(threads: Sequence[threading.Thread], until_s: float) -> None:
    for one in threads:
        one.join(max(0.0, until_s - time.monotonic()))
