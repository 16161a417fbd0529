"""Many small files, as data sets of images and caches of compiled kernels are: how often in a
second one is created, listed, looked at, read, renamed and deleted, and how long that takes.

Names are in memory once they were made, of shares in the client's cache of attributes: that is
told. The content is read from the device where the page cache lets go of it.
"""

from __future__ import annotations

import ctypes
import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .cached import dropped
from .mounts import is_shared, mount_of
from .room import Room, Row, times
from .workers import Told, together

_FILE_BYTES = 16 << 10
_PROCESSES, _MOST_FILES = 8, 2000
#: Files of a directory, and directories of one above: as data sets of classes have them.
_IN_ONE, _BRANCHES = 100, 10
#: Of the time, for creating; what follows has as many files as came to be.
_CREATING = 0.4
#: Seconds for what was created to come to the device.
_SYNCS_S = 10.0
#: Of so many files it is looked whether they left the page cache.
_LOOKED_AT = 200
_DATA = os.urandom(_FILE_BYTES)
Call = Callable[[str], object]


def small_files(room: Room) -> Iterator[Row]:
    """A row of each kind of call, all processes together."""
    processes = max(1, min(_PROCESSES, len(os.sched_getaffinity(0))))
    files = max(1, min(_MOST_FILES, room.size_bytes // _FILE_BYTES // processes))
    names = [_names(f"{room.folder}/{number}", files) for number in range(processes)]
    for one in names:
        _prepare(one)
    through = _through(room)
    for part, call in _CALLS.items():
        seconds = room.seconds * (_CREATING if part == "create" else (1 - _CREATING) / 5)
        asked = [_directories(one) for one in names] if part == "list" else names
        if part == "read":
            through["read"] = _read_from(room, names)
        if part == "list":
            told = together(processes, _listing(asked, names, seconds), seconds)
        else:
            told = together(processes, _work(call, asked, seconds), seconds)
        counts = [int(one.get("count", 0)) for one in told]
        if part == "create":
            names = [one[:count] for one, count in zip(names, counts)]  # noqa: B905
        if part == "rename":
            names = [[f"{name}.new" for name in one[:count]] + list(one[count:])
                     for one, count in zip(names, counts)]  # noqa: B905  # fmt: skip
        hung = any(one.get("hung") for one in told)
        yield {**_row(part, told, processes, through[part]), **({"hung": True} if hung else {})}
        if hung:
            return


def _names(place: str, files: int) -> Sequence[str]:
    return [
        f"{place}/{number // _IN_ONE // _BRANCHES:03}/{number // _IN_ONE % _BRANCHES}/{number:06}"
        for number in range(files)
    ]


def _directories(names: Sequence[str]) -> Sequence[str]:
    return list(dict.fromkeys(name.rpartition("/")[0] for name in names))


def _prepare(names: Sequence[str]) -> None:
    for place in _directories(names):
        os.makedirs(place)  # noqa: PTH103


def _create(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, _DATA)
    finally:
        os.close(fd)


def _list(path: str) -> Sequence[str]:
    with os.scandir(path) as entries:
        return [entry.name for entry in entries]


def _read(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.read(fd, _FILE_BYTES)
    finally:
        os.close(fd)


def _rename(path: str) -> None:
    os.rename(path, f"{path}.new")  # noqa: PTH104


_CALLS: dict[str, Call] = {
    "create": _create, "list": _list, "stat": os.stat, "read": _read, "rename": _rename,
    "delete": os.unlink,
}  # fmt: skip
#: Those of one file with content.
_WITH_DATA = ("create", "read")


def _through(room: Room) -> dict[str, str]:
    """Where each kind of call ends: a server has to hear of what changes, and a client remembers
    what it has seen."""
    if room.memory:
        return dict.fromkeys(_CALLS, "memory")
    if not is_shared(mount_of(os.path.realpath(room.folder))):
        return dict.fromkeys(_CALLS, "page cache")
    seen = dict.fromkeys(("list", "stat"), "client's cache")
    return {**dict.fromkeys(_CALLS, "server"), **seen}


def _read_from(room: Room, names: Sequence[Sequence[str]]) -> str:
    """The device, where the files could be had there in time and left the page cache."""
    if room.memory:
        return "memory"
    every = [name for one in names for name in one]

    def look(_number: int) -> Told:
        _synced(room.folder)
        for name in every:
            _let_go(name)
        some = every[:: 1 + len(every) // _LOOKED_AT]
        return {"left": dropped(some)}

    [told] = together(1, look, _SYNCS_S, beyond_s=0.0)
    return "device" if told.get("left") else "page cache"


def _synced(folder: str) -> None:
    """All of its file system (syncfs(2)): a sync for each file takes far longer."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd):
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(fd)


def _let_go(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def _work(call: Call, names: Sequence[Sequence[str]], seconds: float) -> Callable[[int], Told]:
    return lambda number: _timed(call, names[number], seconds)


def _listing(
    asked: Sequence[Sequence[str]], names: Sequence[Sequence[str]], seconds: float
) -> Callable[[int], Told]:
    """As _work; `wrong`: names that were created and are not listed, or are otherwise."""

    def work(number: int) -> Told:
        listed: list[Sequence[str]] = []
        told = _timed(lambda path: listed.append(_list(path)), asked[number], seconds)
        return {**told, "wrong": _otherwise(asked[number], listed, names[number])}

    return work


def _otherwise(
    places: Sequence[str], listed: Sequence[Sequence[str]], created: Sequence[str]
) -> int:
    """Names too few, too many, or told twice, of the directories that were listed."""
    found: Counter[str] = Counter()
    for place, each in zip(places, listed):  # noqa: B905  those that there was time for
        found.update(f"{place}/{name}" for name in each)
    seen = set(places[: len(listed)])
    made = Counter(name for name in created if name.rpartition("/")[0] in seen)
    return sum(((found - made) + (made - found)).values())


def _timed(call: Call, names: Sequence[str], seconds: float) -> Told:
    took, now = array("d", bytes(8 * len(names))), time.perf_counter
    done, began, clock = 0, now(), time.monotonic()
    last, until = began, began + seconds
    for name in names:
        call(name)
        then = now()
        took[done] = then - last
        last = then
        done += 1
        if last > until:
            break
    return {"took_s": [round(one, 8) for one in took[:done]], "count": done, "began_s": clock,
            "ended_s": time.monotonic()}  # fmt: skip


def _row(part: str, told: Sequence[Any], processes: int, through: str) -> Row:
    took = [each for one in told for each in one.get("took_s", ())]
    done = [one for one in told if one.get("count")]
    began = min((one["began_s"] for one in done), default=0.0)
    elapsed = max((one["ended_s"] for one in done), default=0.0) - began
    return {
        "part": part, "way": "files", "processes": processes, "count": len(took),
        "elapsed_s": round(elapsed, 6), "us": times(took), "through": through,
        "trouble": next((one["trouble"] for one in told if one.get("trouble")), ""),
        **({"wrong": sum(one.get("wrong", 0) for one in told)} if part == "list" else {}),
        **({"block_bytes": _FILE_BYTES} if part in _WITH_DATA else {}),
    }  # fmt: skip
