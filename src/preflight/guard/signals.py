"""Signals that are caught beside whoever caught them before."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from .records import GuardError

#: What ends a process that has been forked off: it is not this run, and nothing is kept from it.
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def name_of(number: int) -> str:
    """As `kill -l` names it; a number where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def typed(number: int) -> str:
    """What stands behind `kill -`."""
    return name_of(number).replace("SIG", "") if " " not in name_of(number) else str(number)


def to_save() -> int:
    """The signal that asks for a save where none is named: SIGUSR1. In a job of Slurm where nobody
    has caught that yet, a real-time signal: frameworks requeue a job on SIGUSR1, and do without
    where they find it caught (Lightning's signal connector)."""
    free = signal.getsignal(signal.SIGUSR1) in (signal.SIG_DFL, signal.SIG_IGN, None)
    if "SLURM_JOB_ID" in os.environ and free and hasattr(signal, "SIGRTMIN"):
        return int(signal.SIGRTMIN) + 1
    return int(signal.SIGUSR1)


class Caught:
    """A signal while it is caught. `act` is called between two instructions of the main thread, so
    it only takes note; then whoever caught the signal before. `ends`: where nobody did, the process
    ends by it, as without a guard; but not where another has caught it since and passes it on:
    what follows is for that one to say (Lightning ends its loop, and then the run)."""

    def __init__(self, number: int, act: Callable[[str], None], *, ends: bool = False) -> None:
        self.number, self._act, self._ends = number, act, ends
        self._owner = os.getpid()
        self._active = True
        self._handler = self._on  # one object: a bound method is another at each look
        # faulthandler catches signals where Python does not see it.
        self._stacks = bool(faulthandler.unregister(number))  # type: ignore[func-returns-value]
        self._before: Any = signal.signal(number, self._handler)
        if self._stacks:
            _stacks_too(number, chain=True)

    def _on(self, number: int, frame: FrameType | None) -> None:
        mine = self._active and os.getpid() == self._owner
        if mine:
            self._act(name_of(number))
        if callable(self._before):
            self._before(number, frame)
        elif self._before == signal.SIG_DFL and self._fatal(mine):
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _fatal(self, mine: bool) -> bool:
        """A worker that was forked off lives on where a scheduler signals a whole job to save."""
        if os.getpid() != self._owner:
            return self.number in _ENDING
        if mine:
            return self._ends and not self.taken_by()
        return True

    def taken_by(self) -> str:
        """Who has taken the signal since; "" while it is ours."""
        now = signal.getsignal(self.number)
        if now is self._handler:
            return ""
        module, name = getattr(now, "__module__", ""), getattr(now, "__qualname__", repr(now))
        return f"{module}.{name}" if module else str(name)

    def release(self) -> None:
        """Put back who caught it before. Where another has come since, who may pass signals on to
        this one, it stays in the chain and only passes them on."""
        self._active = False
        if self._stacks:
            faulthandler.unregister(self.number)
        if signal.getsignal(self.number) is self._handler and self._before is not None:
            with contextlib.suppress(ValueError):  # another thread than the main one
                signal.signal(self.number, self._before)
        if self._stacks:
            _stacks_too(self.number, chain=callable(self._before))


def _stacks_too(number: int, *, chain: bool) -> None:
    """As the script had it; to standard error, as the file that it may have named is not told."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # none, or none that is a file
        faulthandler.register(number, chain=chain)


def refuse_other_threads() -> None:
    """Raise GuardError where signals cannot be caught."""
    if threading.current_thread() is not threading.main_thread():
        raise GuardError(
            f"guard.install() was called in the thread {threading.current_thread().name!r}, and "
            "Python lets only the main thread catch signals: call it in the main thread before "
            "this one starts, or install(..., signals=False) and ask with .request_save()"
        )
