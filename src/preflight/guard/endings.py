"""What is done when a run ends as it should not: an exception that nobody caught, an early exit."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from types import TracebackType


class Endings:
    """While active, `write` is called with why the process ends. Hooks that were there are called,
    and are put back."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._owner = os.getpid()
        self._active = True
        self._before = sys.excepthook
        self._hook = self._on_exception
        sys.excepthook = self._hook
        atexit.register(self._at_exit)

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._last_word(told(error))
        self._before(kind, error, trace)

    def _at_exit(self) -> None:
        self._last_word("the process ended without uninstall()")

    def _last_word(self, why: str) -> None:
        if self._active and os.getpid() == self._owner:
            self._active = False
            self._write(why)

    def release(self) -> None:
        """Put back what was there; where another hook has come since it only passes on."""
        self._active = False
        atexit.unregister(self._at_exit)
        if sys.excepthook is self._hook:
            sys.excepthook = self._before


def told(error: BaseException) -> str:
    """ValueError: its first line."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
