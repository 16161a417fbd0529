"""A folder for what libraries leave behind: sockets of loaders, compiled kernels."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import process

#: The path of a socket has at most 107 bytes (unix(7)); what is put behind the folder takes 40.
_LONGEST = 60
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: What the sweeper reads folders from; -1 where there is none.
_sweeper = -1


def sweep(path: str) -> None:
    """Have the folder or file removed once this process and all of its ranks have ended, however:
    whoever interrupts a run, or a step of Slurm, ends all of it by SIGKILL."""
    if _sweeper >= 0:
        with contextlib.suppress(OSError):
            os.write(_sweeper, os.fsencode(path) + b"\0")


def _start_sweeper() -> int:
    """A process of a session of its own, and nobody's child: who ends a tree of processes does not
    find it. It waits for the end of a pipe that all of ours hold."""
    reading, writing = os.pipe()
    parent = os.fork()
    if parent:
        os.close(reading)
        os.waitpid(parent, 0)
        return writing
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        # Whoever waits for the end of our output must not wait for this process.
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.dup2(reading, 3)
        os.closerange(4, 256)
        _sweep_after(3)
    finally:
        os._exit(0)


def _sweep_after(fd: int) -> None:
    told = b""
    while data := os.read(fd, 4096):
        told += data
    for path in map(os.fsdecode, told.split(b"\0")[:-1]):
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108


@contextmanager
def scratch() -> Iterator[None]:
    """Processes that are killed remove nothing: what they made goes with this folder."""
    places = [tempfile.gettempdir(), "/tmp", "/dev/shm"]
    place = next((one for one in places if len(one) <= _LONGEST and os.access(one, os.W_OK)), None)
    global _sweeper
    _sweeper = _start_sweeper()
    folder = tempfile.mkdtemp(prefix=".preflight-", dir=place)
    sweep(folder)
    process.current_process()._config["tempdir"] = folder  # type: ignore[attr-defined]
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
