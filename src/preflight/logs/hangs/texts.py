"""Files of stacks and of NCCL's service as lines, or whole where they are JSON: both bounded."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from preflight.unpack import Unpacking

#: Of text, and of JSON, which is read whole; unpacked.
_MOST_TEXT, _MOST_JSON = 1 << 30, 64 << 20
_MOST_LINE = 4096


class Text:
    """A file, plain or gzip. `cut`: why it was not read to its end."""

    def __init__(self, path: Path) -> None:
        self._path, self.cut = path, ""

    def lines(self) -> Iterator[str]:
        """Each without its end; of long ones the beginning."""
        with self._path.open("rb") as file:
            source = Unpacking(file, _MOST_TEXT)
            whole = io.BufferedReader(source, 1 << 18)
            while line := whole.readline(_MOST_LINE):
                yield line.decode("utf-8", "replace").rstrip()
                while len(line) == _MOST_LINE and line[-1:] != b"\n":
                    line = whole.readline(_MOST_LINE)
            self.cut = source.cause

    def whole(self) -> bytes:
        """All of it, of JSON."""
        with self._path.open("rb") as file:
            source = Unpacking(file, _MOST_JSON)
            data = b"".join(iter(lambda: source.read(1 << 20), b""))
            self.cut = source.cause
        return data

    def head(self, size: int) -> bytes:
        """Its first bytes."""
        with self._path.open("rb") as file:
            source = Unpacking(file, size)
            return b"".join(iter(lambda: source.read(size), b""))
