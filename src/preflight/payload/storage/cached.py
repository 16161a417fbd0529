"""How much of a file is in the page cache, and whether it goes when it is told to."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

#: Of a file that was told to go, so much may stay: parts of large folios, and pages that others
#: look at.
_STAYS = 0.02
_MAPPED = 1 << 30
#: Of what is told of a page the lowest bit alone counts.
_LOWEST = bytes(one & 1 for one in range(256))


def dropped(paths: Iterable[str]) -> bool:
    """Have files that are on their device leave the page cache; whether they did. False where it
    cannot be told."""
    whole = stays = 0
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            whole += size
            stays += resident(fd, size)
        except (OSError, ValueError):
            return False
        finally:
            os.close(fd)
    return stays <= _STAYS * whole


def resident(fd: int, size: int) -> int:
    """Bytes of the file's first `size` that are in the page cache (mincore(2)). Raises OSError."""
    return sum(_resident(fd, at, min(_MAPPED, size - at)) for at in range(0, size, _MAPPED))


def _resident(fd: int, begin: int, size: int) -> int:
    pages = -(-size // mmap.PAGESIZE)
    told = (ctypes.c_ubyte * pages)()
    # A private map: ctypes asks for one that may be written, and nothing is.
    with mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE,
                   offset=begin) as mapped:  # fmt: skip
        start = ctypes.c_char.from_buffer(mapped)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            done = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size),
                                told)  # fmt: skip
            if done:
                raise OSError(ctypes.get_errno(), "mincore")
        finally:
            del start
    return min(size, bytes(told).translate(_LOWEST).count(1) * mmap.PAGESIZE)
