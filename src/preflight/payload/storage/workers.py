"""Processes that read or write at the same time: forked, begun together, ended in time."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Any

from ..parent import die_with_launcher

Told = dict[str, Any]
#: So long a child may take beyond its time, for a sync at its end, before it counts as hung.
BEYOND_S = 30.0
_ENDS_S = 2.0
_NOTHING = {"trouble": "it told nothing"}
#: What ends a process: the signal, and what that says.
_BY = {
    "SIGBUS": "a mapped page could not be read, as by an error of the device",
    "SIGKILL": "it was killed, as where memory is short",
}


def together(
    count: int, work: Callable[[int], Told], seconds: float, beyond_s: float = BEYOND_S
) -> list[Told]:
    """What each of `count` processes tells of its `work(number)`, which takes so many seconds at
    most; {"trouble": why} of one that failed, died or hung. They begin at the same time: what takes
    preparation is done before. A child that hangs in the kernel is left to it."""
    reading, writing = os.pipe()
    children: dict[int, tuple[int, int]] = {}
    told: list[Told] = [_NOTHING for _ in range(count)]
    try:
        for number in range(count):
            children[number] = _begun(number, work, reading, writing)
        os.close(reading)
        os.close(writing)  # all begin
        reading = writing = -1
        _read(children, told, seconds + beyond_s)
    finally:
        for fd in (reading, writing):
            with contextlib.suppress(OSError):
                os.close(fd)
        ended = _ended(children)
    for number, by in ended.items():
        if told[number] == _NOTHING:
            told[number] = {"trouble": f"{by}: {_BY.get(by, 'it was ended by this signal')}"}
    return told


def _begun(number: int, work: Callable[[int], Told], reading: int, writing: int) -> tuple[int, int]:
    """Its process and where it tells."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return pid, ours
    status = 1
    try:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, signal.SIG_DFL)
        os.close(ours)
        os.close(writing)
        die_with_launcher(signal.SIGKILL)
        os.read(reading, 1)  # its end: all have begun
        with os.fdopen(theirs, "w", encoding="utf-8") as file:
            json.dump(_done(work, number), file)
        status = 0
    finally:
        os._exit(status)


def _done(work: Callable[[int], Told], number: int) -> Told:
    try:
        return work(number)
    except OSError as error:
        return {"trouble": trouble_of(error)}
    except Exception as error:  # noqa: BLE001  told in place of a traceback that nobody reads
        return {"trouble": f"{type(error).__name__}: {error}"}


def trouble_of(error: OSError) -> str:
    """ENOSPC: No space left on device."""
    return f"{errno.errorcode.get(error.errno or 0, 'error')}: {error.strerror or error}"


def _read(children: dict[int, tuple[int, int]], told: list[Told], within_s: float) -> None:
    texts: dict[int, bytes] = dict.fromkeys(children, b"")
    until = time.monotonic() + within_s
    with selectors.DefaultSelector() as selector:
        for number, (_, fd) in children.items():
            selector.register(fd, selectors.EVENT_READ, number)
        while selector.get_map() and time.monotonic() < until:
            for key, _ in selector.select(max(0.0, until - time.monotonic())):
                data = os.read(key.fd, 65536)
                texts[key.data] += data
                if not data:
                    selector.unregister(key.fd)
        hung = {key.data for key in selector.get_map().values()}
    for number, text in texts.items():
        if number in hung:
            told[number] = {"trouble": f"it gave no answer in {within_s:.0f} s", "hung": True}
        else:
            with contextlib.suppress(ValueError):  # ended while it told
                told[number] = json.loads(text)


def _ended(children: dict[int, tuple[int, int]]) -> dict[int, str]:
    """The signals that ended them. A process that the kernel does not let go is not waited for."""
    for pid, fd in children.values():
        os.close(fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    left, by = {number: pid for number, (pid, _) in children.items()}, dict[int, str]()
    until = time.monotonic() + _ENDS_S
    while left and time.monotonic() < until:
        for number, pid in list(left.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del left[number]
                if os.WIFSIGNALED(status):
                    by[number] = signal.Signals(os.WTERMSIG(status)).name
        if left:
            time.sleep(0.01)
    return by
