"""What a checkpoint takes for granted of a file system, tried in a directory of its own: that a
rename is seen whole, that fsync comes back, that locks hold, that a map and a link can be made.

It writes less than a megabyte and takes about two seconds at most, a hanging call apart.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable
from statistics import median
from typing import Any

#: Whole versions of a file that take each other's place: larger than a page, each of one byte.
_SIZE = 64 << 10
_RENAMES, _RENAMING_S = 200, 0.6
_FSYNCS, _FSYNCING_S = 50, 0.8
_BLOCK = 4096
#: Word for a call that did what it is for.
WORKS = "works"


def proof(folder: str) -> dict[str, Any]:
    """One line: of each trial WORKS, or the name of the error (ENOSYS), or what was seen instead.
    `folder` is empty and nobody else's; what is left in it is its owner's to remove."""
    tried: dict[str, Callable[[str], Any]] = {
        "fsync": _fsync, "directory_fsync": _directory_fsync, "read_back": _read_back,
        "flock": _flock, "posix_lock": _posix_lock, "direct": _direct, "unnamed": _unnamed,
        "map": _map, "symlink": _symlink, "case": _case, "rename": _rename,
    }  # fmt: skip
    told: dict[str, Any] = {"kind": "proof"}
    for name, trial in tried.items():
        place = f"{folder}/{name}"
        try:
            os.mkdir(place)  # noqa: PTH102
            found = trial(place)
        except OSError as error:
            found = errno.errorcode.get(error.errno or 0, str(error))
        told.update(found if isinstance(found, dict) else {name: found})
    return told


def _put(path: str, data: bytes) -> None:
    """Written, and on the device."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _get(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _fsync(place: str) -> dict[str, Any]:
    """How long a block that is appended takes until it is on the device, one after another."""
    took: list[float] = []
    fd = os.open(f"{place}/log", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        until = time.monotonic() + _FSYNCING_S
        while len(took) < _FSYNCS and (not took or time.monotonic() < until):
            _write_all(fd, b"x" * _BLOCK)
            began = time.perf_counter()
            os.fsync(fd)
            took.append(time.perf_counter() - began)
    except OSError as error:
        return {"fsync": errno.errorcode.get(error.errno or 0, str(error))}
    finally:
        os.close(fd)
    return {
        "fsync": WORKS,
        "fsync_n": len(took),
        "fsync_s": median(took),
        "fsync_most_s": max(took),
    }


def _directory_fsync(place: str) -> str:
    """Without it a rename may be lost with the power, though the file itself is there."""
    _put(f"{place}/new", b"x")
    os.rename(f"{place}/new", f"{place}/old")  # noqa: PTH104
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return WORKS


def _read_back(place: str) -> str:
    """What was written, as far as possible from the device and not from memory."""
    wanted = os.urandom(_SIZE)
    _put(f"{place}/data", wanted)
    fd = os.open(f"{place}/data", os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        found = b""
        while part := os.read(fd, _SIZE):
            found += part
    finally:
        os.close(fd)
    return WORKS if found == wanted else "what was read is not what was written"


def _rename(place: str) -> dict[str, Any]:
    """Versions take each other's place by rename while another process opens the file again and
    again: it sees one of them, whole, each time."""
    _put(f"{place}/file", b"\0" * _SIZE)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(writing)
        _watch_renames(f"{place}/file", reading)
    os.close(reading)
    done, until = 0, time.monotonic() + _RENAMING_S
    try:
        while done < _RENAMES and (not done or time.monotonic() < until):
            fd = os.open(f"{place}/next", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                _write_all(fd, bytes([done % 255 + 1]) * _SIZE)
            finally:
                os.close(fd)
            os.rename(f"{place}/next", f"{place}/file")  # noqa: PTH104
            done += 1
        last = _get(f"{place}/file") == bytes([(done - 1) % 255 + 1]) * _SIZE
    finally:
        os.close(writing)
        _, status = os.waitpid(child, 0)
    seen = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 255
    words = {0: WORKS, 1: "a reader saw a part of it", 2: "a reader found no file"}
    found = words.get(seen, "a reader could not open it")
    return {"rename": found if last else "the last version is not there", "renames": done}


def _watch_renames(path: str, told: int) -> None:
    """Ends when the other side of the pipe is closed: 0 all was whole, 1 a part, 2 no file."""
    status = 3
    try:
        os.set_blocking(told, False)
        while True:
            data = _get(path)
            if len(data) != _SIZE or data.count(data[:1]) != _SIZE:
                status = 1
                break
            with contextlib.suppress(BlockingIOError):
                if not os.read(told, 1):
                    status = 0
                    break
    except FileNotFoundError:
        status = 2
    finally:
        os._exit(status)


def _flock(place: str) -> str:
    """flock(2): of two who have opened the file one waits."""
    _put(f"{place}/lock", b"")
    first, second = (os.open(f"{place}/lock", os.O_RDWR) for _ in range(2))
    try:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return WORKS
        return "two hold it at once"
    finally:
        os.close(first)
        os.close(second)


def _posix_lock(place: str) -> str:
    """fcntl(2): of two processes one waits."""
    _put(f"{place}/lock", b"x")
    fd = os.open(f"{place}/lock", os.O_RDWR)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child = os.fork()
        if not child:
            _try_lock(f"{place}/lock")
        _, status = os.waitpid(child, 0)
    finally:
        os.close(fd)
    return WORKS if status == 0 else "two hold it at once"


def _try_lock(path: str) -> None:
    """Ends with 0 where somebody else holds the lock."""
    status = 1
    try:
        fd = os.open(path, os.O_RDWR)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        status = 0 if error.errno in (errno.EAGAIN, errno.EACCES) else 1
    finally:
        os._exit(status)


def _direct(place: str) -> str:
    """O_DIRECT, past the page cache: from memory on the border of a page."""
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_DIRECT", 0)
    fd = os.open(f"{place}/data", flags, 0o600)
    try:
        with mmap.mmap(-1, _BLOCK) as block:
            os.write(fd, block)
    finally:
        os.close(fd)
    return WORKS


def _unnamed(place: str) -> str:
    """O_TMPFILE: a file that nobody sees until it is given a name."""
    fd = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        os.write(fd, b"x")
    finally:
        os.close(fd)
    return WORKS


def _map(place: str) -> str:
    """What is written through a shared map is read, as memory-mapped data sets do."""
    _put(f"{place}/data", b"\0" * _BLOCK)
    fd = os.open(f"{place}/data", os.O_RDWR)
    try:
        with mmap.mmap(fd, _BLOCK) as mapped:
            mapped[:8] = struct.pack("<Q", 0x1122334455667788)
            mapped.flush()
    finally:
        os.close(fd)
    seen = _get(f"{place}/data")[:8]
    return WORKS if seen == struct.pack("<Q", 0x1122334455667788) else "a map is not what is read"


def _symlink(place: str) -> str:
    """Caches of models name their files by links."""
    _put(f"{place}/data", b"x")
    os.symlink("data", f"{place}/link")  # noqa: PTH211
    return WORKS if _get(f"{place}/link") == b"x" else "a link leads elsewhere"


def _case(place: str) -> str:
    """`kept`: Weights.bin and weights.bin are two files."""
    _put(f"{place}/Name", b"x")
    return "folded" if os.path.exists(f"{place}/name") else "kept"  # noqa: PTH110
