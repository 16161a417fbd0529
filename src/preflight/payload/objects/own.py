"""A folder of its own below what the user named, which goes with the run, however that ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator

from .. import owner
from .remove import Removed, removed, swept
from .store import Store, opened

_PREFIX = ".preflight-objects"
_NAMED = re.compile(rf"({re.escape(_PREFIX)}-(\d{{9,11}}))\.[0-9a-f]{{12}}\.[\w-]+\.\d+\.\d*")
#: No run takes longer.
_LONGEST_S = 86400.0
#: What ends the keeper if the store does not answer.
_KEEPS_S = 120
#: What was under way when the run was ended comes within so long.
_LATE_S = 2.0
#: So long a removal may take; where nothing was answered before, so long.
_REMOVES_S, _TRIES_S = 60.0, 8.0


def own_name() -> str:
    """Tells when, which host and which process."""
    return owner.name(f"{_PREFIX}-{int(time.time())}")


def is_left(name: str) -> bool:
    """Whether a folder is of a run that is no more: its process is gone, or it is older than any
    run lasts, of whatever host."""
    told = _NAMED.fullmatch(name)
    if not told:
        return False
    return owner.runs(name, told[1]) is False or float(told[2]) < time.time() - _LONGEST_S


class Own:
    """A run's own folder, and whether anything was put into it and removed again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reached = False
        #: An upload in parts was begun, and may not have ended.
        self.uploads = False
        #: What was put, or may have been: a list may tell less.
        self.names: list[str] = []


@contextlib.contextmanager
def own_folder(store: Store, url: str, tell: Callable[[Removed], None]) -> Iterator[Own]:
    """A process apart removes it where this one cannot any more."""
    own = Own(f"{store.root}/{own_name()}")
    is_kept = store.protocol != "memory"  # that goes with this process
    keeper = Keeper(lambda: removed(opened(url), own.path, _KEEPS_S)) if is_kept else None
    try:
        yield own
    finally:
        limit_s = _REMOVES_S if own.reached else _TRIES_S
        found = removed(store, own.path, limit_s, own.names, uploads=own.uploads)
        if found.left == 0 and keeper:
            keeper.dismiss()
        tell(found)


def sweep_left(store: Store) -> int:
    """Remove folders of runs that are no more; how many there were."""
    return swept(store, _PREFIX, is_left)


class Keeper:
    """A process of a session of its own, and nobody's child, that waits for the end of this one:
    whoever interrupts a run ends all of it by SIGKILL."""

    def __init__(self, remove: Callable[[], object]) -> None:
        reading, self._writing = os.pipe()
        child = os.fork()
        if child:
            os.close(reading)
            os.waitpid(child, 0)
            return
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            _alone(reading)
            if not _read(3):
                signal.alarm(_KEEPS_S)
                remove()
                time.sleep(_LATE_S)
                remove()
        finally:
            os._exit(0)

    def dismiss(self) -> None:
        """Nothing is left."""
        with contextlib.suppress(OSError):
            os.write(self._writing, b"gone")


def _alone(reading: int) -> None:
    """Nothing of the run is held open: neither its output nor its lock. The payload itself is, for
    modules of it that are imported later."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    payload = os.path.basename(sys.argv[0])  # noqa: PTH119
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    kept = int(payload) if sys.argv[0].startswith("/proc/self/fd/") and payload.isdigit() else 0
    if kept == 3:
        kept = os.dup(3)
        sys.argv[0] = ""
    os.dup2(reading, 3)
    for fd in range(4, 256):
        if fd != kept:
            with contextlib.suppress(OSError):
                os.close(fd)


def _read(fd: int) -> bytes:
    told = b""
    while data := os.read(fd, 64):
        told += data
    return told
