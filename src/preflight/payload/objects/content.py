"""What objects hold: bytes that no store can make smaller, other ones in each."""

from __future__ import annotations

import hashlib
import os


class Content:
    """Of up to so many bytes each. What was put is known without being kept."""

    def __init__(self, most_bytes: int) -> None:
        self._bytes = os.urandom(most_bytes)
        self.wrong: list[str] = []
        self.read = 0
        self.lost = 0  # put and acknowledged, and not there

    def of(self, name: str, size: int) -> bytes:
        """`size` bytes, the first 32 of which are the name's."""
        return (hashlib.sha256(name.encode()).digest() + self._bytes[32:size])[:size]

    def look(self, name: str, size: int, found: bytes) -> None:
        """Whether they are those that were put."""
        self.read += 1
        if bytes(found) != self.of(name, size):
            self.wrong.append(name)
