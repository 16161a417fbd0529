"""A piece of an open file, and what is said where it is not as its format asks."""

from __future__ import annotations

import os
from typing import NamedTuple


class DamagedError(Exception):
    """The file cannot be read further. `kind` as in Flaw of facts/checkpoints.py; `names`: globals
    that its pickle named before: who loads it calls them, and only then finds it damaged."""

    def __init__(
        self, kind: str, text: str, offset: int | None = None, names: tuple[str, ...] = ()
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.offset = offset
        self.names = names


class Window(NamedTuple):
    """`size` bytes of a file from `base` on; offsets count from there."""

    fd: int
    base: int
    size: int

    def read(self, offset: int, count: int) -> bytes:
        """Exactly so many bytes; DamagedError where the window, or the file, ends before."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise DamagedError(
                "truncated", f"{count} bytes are due at {offset}, and it ends at {self.size}",
                self.base + min(max(offset, 0), self.size),
            )  # fmt: skip
        pieces = []
        at, end = self.base + offset, self.base + offset + count
        while at < end:
            piece = os.pread(self.fd, end - at, at)
            if not piece:
                raise DamagedError("truncated", "it became shorter while it was read", at)
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def part(self, offset: int, size: int) -> Window:
        """A window in this one; DamagedError where it does not lie in it."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise DamagedError(
                "truncated", f"{size} bytes are due at {offset}, and it ends at {self.size}",
                self.base + min(max(offset, 0), self.size),
            )  # fmt: skip
        return Window(self.fd, self.base + offset, size)
