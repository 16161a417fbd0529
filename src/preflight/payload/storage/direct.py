"""Past the page cache, and what comes to the device below."""

from __future__ import annotations

import contextlib
import mmap
import os

_DIRECT = getattr(os, "O_DIRECT", 0)


def takes_direct(folder: str) -> bool:
    """Whether files there are read and written past the page cache (O_DIRECT)."""
    path = f"{folder}/direct"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _DIRECT, 0o600)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            return bool(_DIRECT) and os.pwrite(fd, page, 0) == os.preadv(fd, [page], 0)
    except OSError:
        return False
    finally:
        os.close(fd)


def opened(path: str, flags: int, *, direct: bool) -> int:
    """A file; `direct`: past the page cache."""
    return os.open(path, flags | (_DIRECT if direct else 0), 0o600)


def written_to_device(path: str) -> int | None:
    """Bytes that the device below was given to write so far; None where the file system stands on
    none of its own, or on several (sysfs, block/stat)."""
    at = os.stat(path).st_dev  # noqa: PTH116
    stat = f"/sys/dev/block/{os.major(at)}:{os.minor(at)}/stat"
    try:
        with open(stat, encoding="ascii") as file:  # noqa: PTH123
            return 512 * int(file.read().split()[6])
    except (OSError, ValueError, IndexError):
        return None
