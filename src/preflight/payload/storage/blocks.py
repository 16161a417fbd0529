"""Blocks of bytes that no file system can make smaller, each with a sum that is known before it is
written."""

from __future__ import annotations

import mmap
import os
from zlib import crc32

#: What storage finds alike or compresses: no two of them are the same (4 KiB, a page).
_PAGE = 4096
_LARGE, _SMALL, _LEAST_OF = 4 << 20, 64 << 10, 4


def block_bytes(shard_bytes: int) -> int:
    """4 MiB, or as much less as a shard takes to have several; not under 64 KiB."""
    size = _LARGE
    while size > _SMALL and size * _LEAST_OF > shard_bytes:
        size //= 2
    return size


class Blocks:
    """`count` blocks, one at a time in `buffer`, which O_DIRECT takes. Processes that are forked
    have copies of it.

    They differ in the number that every page begins with. A CRC of bytes of one length is linear:
    what a bit of that number changes in it is the same in every block, so that the sum of any block
    is had without reading it, from those of the first bytes that there were."""

    def __init__(self, count: int, size: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.size, self.buffer = size, mmap.mmap(-1, size, flags=flags)
        self._view = memoryview(self.buffer)
        self._view[:] = os.urandom(size)
        self._bytes = max(1, (count.bit_length() + 7) // 8)
        self.put(0)
        self._zero = crc32(self._view)
        self._changes = [self._changed(1 << bit) for bit in range(count.bit_length())]

    def _changed(self, number: int) -> int:
        self.put(number)
        return crc32(self._view) ^ self._zero

    def put(self, number: int) -> None:
        """Make `buffer` the block of this number."""
        pages = self.size // _PAGE
        for at, byte in enumerate(number.to_bytes(self._bytes, "little")):
            self._view[at::_PAGE] = bytes((byte,)) * pages

    def sum_of(self, number: int) -> int:
        """Its CRC-32."""
        found = self._zero
        for bit, change in enumerate(self._changes):
            if number >> bit & 1:
                found ^= change
        return found
