"""Many small files, as data sets of images and caches of compiled kernels are: how often in a
second one is created, looked at, read, renamed and deleted, and how long that takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from .room import Room, Row, times
from .workers import together

_FILE_BYTES = 16 << 10
_PROCESSES, _MOST_FILES = 8, 2000
#: Of the time, for creating; what follows has as many files as came to be.
_CREATING = 0.4
_DATA = os.urandom(_FILE_BYTES)


def small_files(room: Room) -> Iterator[Row]:
    """A row of each kind of call, all processes together."""
    processes = max(1, min(_PROCESSES, len(os.sched_getaffinity(0))))
    files = max(1, min(_MOST_FILES, room.size_bytes // _FILE_BYTES // processes))
    counts = [files] * processes
    for part, call in _CALLS.items():
        seconds = room.seconds * (_CREATING if part == "create" else (1 - _CREATING) / 4)

        told = together(processes, _work(call, room.folder, counts, seconds), seconds)
        if part == "create":
            counts = [len(one.get("took_s", ())) for one in told]
        yield _row(part, told, processes, memory=room.memory)


def _work(
    call: Callable[[str, str], None], folder: str, counts: list[int], seconds: float
) -> Callable[[int], Row]:
    def work(number: int) -> Row:
        place = f"{folder}/{number}"
        os.makedirs(place, exist_ok=True)  # noqa: PTH103
        return _timed(call, place, counts[number], seconds)

    return work


def _create(place: str, name: str) -> None:
    fd = os.open(f"{place}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, _DATA)
    finally:
        os.close(fd)


def _look(place: str, name: str) -> None:
    os.stat(f"{place}/{name}")  # noqa: PTH116


def _read(place: str, name: str) -> None:
    with open(f"{place}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        file.read()


def _rename(place: str, name: str) -> None:
    os.rename(f"{place}/{name}", f"{place}/new-{name}")  # noqa: PTH104
    os.rename(f"{place}/new-{name}", f"{place}/{name}")  # noqa: PTH104


def _delete(place: str, name: str) -> None:
    os.unlink(f"{place}/{name}")  # noqa: PTH108


_CALLS: dict[str, Callable[[str, str], None]] = {
    "create": _create, "stat": _look, "read": _read, "rename": _rename, "delete": _delete,
}  # fmt: skip


def _timed(call: Callable[[str, str], None], place: str, files: int, seconds: float) -> Row:
    took, until = list[float](), time.monotonic() + seconds
    began = time.perf_counter()
    last = began
    for number in range(files):
        call(place, f"{number:06}")
        now = time.perf_counter()
        took.append(now - last)
        last = now
        if time.monotonic() > until:
            break
    return {"took_s": took, "elapsed_s": last - began}


def _row(part: str, told: list[dict[str, Any]], processes: int, *, memory: bool) -> Row:
    took = [each for one in told for each in one.get("took_s", ())]
    return {
        "part": part, "way": "files", "processes": processes, "block_bytes": _FILE_BYTES,
        "count": len(took), "elapsed_s": max(one.get("elapsed_s", 0.0) for one in told),
        "us": times(took), "through": "memory" if memory else "page cache",
        "trouble": next((one["trouble"] for one in told if one.get("trouble")), ""),
    }  # fmt: skip
