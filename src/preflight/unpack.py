"""Gzip as a stream, or plain text passed on: bounded, and keeping why it went no further."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any, BinaryIO


class Unpacking(io.RawIOBase):
    """Unpacks gzip, or passes plain text on; ends, and keeps the cause, where it cannot go on.

    gzip.GzipFile raises there, and a buffer around it loses what came just before.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        super().__init__()
        gzipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        self._file: Any = gzip.GzipFile(fileobj=file) if gzipped else file
        self._left, self.cause = limit, ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        try:
            data = b"" if self.cause else self._file.read1(len(buffer))
        except EOFError:
            self.cause = "cut short"
        except (OSError, zlib.error) as error:
            self.cause = f"damaged ({error})"
        if len(data) > self._left:
            data, self.cause = data[: self._left], "read no further: too large when unpacked, cut"
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def unpacked(data: bytes, limit: int) -> tuple[bytes, str]:
    """gzip's content, at most `limit` bytes of it, and why it is not whole ("" where it is)."""
    unpacking = Unpacking(io.BytesIO(data), limit)
    return unpacking.readall(), unpacking.cause
