"""Ending together with whoever started us."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading

#: prctl(2): the signal that this process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


def die_with_launcher(number: int = signal.SIGTERM) -> None:
    """Get a signal when the parent ends; at once where it has ended already."""
    before = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    except (OSError, AttributeError):
        return  # no Linux: the closed pipe tells it too
    if os.getppid() != before:
        os.kill(os.getpid(), number)


def end_with_reader(fd: int, number: int = signal.SIGTERM) -> None:
    """Get a signal when nobody reads what we write any more: over SSH the launcher is a shell that
    may outlive the connection."""
    poll = select.poll()
    poll.register(fd, 0)  # an error or the end of the reader is told unasked

    def wait() -> None:
        events = poll.poll()
        if any(mask & (select.POLLERR | select.POLLHUP) for _, mask in events):
            os.kill(os.getpid(), number)

    threading.Thread(target=wait, daemon=True).start()
