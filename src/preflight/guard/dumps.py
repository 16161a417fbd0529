"""Stacks of all threads, and the memory of this process and its GPU, into one file."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
from pathlib import Path
from typing import Any

#: Lines of /proc/self/status: memory that is held, the most there was, what was swapped out.
_LINES = ("VmRSS", "VmHWM", "VmSwap", "Threads")


class Dumps:
    """The file of one rank. It is open from the start: where a process hangs nothing can be opened.

    Where nobody else has asked for the stacks of a crash (of a signal such as SIGSEGV or SIGABRT),
    they go here too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers: list[int] = []
        self._file = path.open("ab", buffering=0)
        self._crashes = not faulthandler.is_enabled()
        if self._crashes:
            faulthandler.enable(self._file)

    def listen(self, number: int) -> None:
        """From now on faulthandler writes the stacks at this signal, from within C: also where the
        main thread hangs in a collective. Who caught it before is called after it."""
        faulthandler.unregister(number)  # else it would keep whom it called before this handler
        faulthandler.register(number, self._file, all_threads=True, chain=True)
        self._numbers.append(number)

    def stacks(self) -> None:
        """Write the stacks now."""
        with contextlib.suppress(OSError):
            faulthandler.dump_traceback(self._file, all_threads=True)

    def memory(self, why: str) -> None:
        """Write the memory, and to what it and the stacks above belong."""
        head = f"== {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}, {why}\n"
        with contextlib.suppress(OSError):
            self._file.write((head + memory_text() + "\n").encode())

    def close(self) -> None:
        """Put faulthandler back; to be called before the signal is given back."""
        for number in self._numbers:
            faulthandler.unregister(number)
        if self._crashes:
            faulthandler.disable()
        self.leave_no_empty()
        self._file.close()

    def leave_no_empty(self) -> None:
        """A file that holds nothing so far is removed."""
        if os.fstat(self._file.fileno()).st_size == 0:
            self._path.unlink(missing_ok=True)


def memory_text() -> str:
    """Memory of this process in kB, as the kernel tells it, and torch's own summary of its GPU
    where it has begun to use one."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        status = []
    told = [one for one in status if one.split(":")[0] in _LINES]
    torch: Any = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            told.append(torch.cuda.memory_summary())
    except Exception as error:  # noqa: BLE001 (of a GPU that is gone anything may come)
        told.append(f"no memory of the GPU: {type(error).__name__}: {error}")
    return "\n".join(told)
