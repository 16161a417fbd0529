"""Event files of TensorBoard: scalars with the step, and when each was written.

Records are a length, its checksum, a message, its checksum; messages are protocol buffers, of which
a few fields are read (tensorflow/core/util/event.proto, summary.proto). Checksums are not compared:
a record whose length leads past the end is where the file was cut.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from preflight.errors import ParseError
from preflight.facts.series import Log
from preflight.logs.training.finish import finished
from preflight.logs.training.names import meant
from preflight.logs.training.records import put
from preflight.logs.training.rows import Rows

_VERSION = b"brain.Event:"
#: A larger record holds a picture or a graph: it is passed over.
_MOST_RECORD_BYTES = 1 << 20
_MOST_TAGS = 256


def is_events(head: bytes) -> bool:
    """Whether a file that begins so is one: its first record tells the version."""
    return len(head) > 24 and head[12 : 12 + 40].find(_VERSION) >= 0 and head[8:12] != b"\0\0\0\0"


def read_events(path: Path) -> Log:
    """Scalars of one step are one row; ParseError where there are none."""
    rows, size, truncated = Rows(str(path), "tensorboard"), 0, False
    tags: set[str] = set()
    with path.open("rb") as file:
        for number, (offset, message) in enumerate(_records(file), 1):
            size = offset
            if message is None:
                truncated = True
                break
            when, step, scalars = _event(message)
            values = {"step": float(step), "time_s": when}
            for tag, value in scalars:
                if tag in tags or len(tags) < _MOST_TAGS:
                    tags.add(tag)
                    put(values, meant(tag), value)
            if len(values) > 2:
                rows.row(values, number, offset, by=scalars[0][0])
    series = finished({("steps", None): rows})
    if not series:
        raise ParseError("no scalars in it")
    return Log(str(path), series, bytes=size, truncated=truncated)


def _records(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Where each begins, and its message: None where the file ends within it, empty where it is
    too large."""
    offset = 0
    while head := file.read(12):
        if len(head) < 12:
            yield offset, None
            return
        (length,) = struct.unpack("<Q", head[:8])
        if length > _MOST_RECORD_BYTES:
            end = file.seek(0, 2)
            if offset + 16 + length > end:
                yield offset, None
                return
            file.seek(offset + 16 + length)
            message = b""
        else:
            message = file.read(length + 4)[:-4]
            if len(message) < length:
                yield offset, None
                return
        yield offset, message
        offset += 16 + length


Field = tuple[int, int | float | bytes]


def _fields(data: bytes) -> Iterator[Field]:
    """Number and value of each field of a message; ends where it makes no sense."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > len(data):
                return
            yield key >> 3, struct.unpack_from("<d" if kind == 1 else "<f", data, at)[0]
            at += size
        elif kind == 2:
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, at


def _event(message: bytes) -> tuple[float, int, list[tuple[str, float]]]:
    """Wall time, step and scalars of a message."""
    when, step, scalars = float("nan"), 0, []
    for number, value in _fields(message):
        if number == 1 and isinstance(value, float):
            when = value
        elif number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            scalars += [_scalar(one) for which, one in _fields(value)
                        if which == 1 and isinstance(one, bytes)]  # fmt: skip
    return when, step, [(tag, value) for tag, value in scalars if tag and value is not None]


def _scalar(message: bytes) -> tuple[str, float | None]:
    tag, found = "", None
    for number, value in _fields(message):
        if number == 1 and isinstance(value, bytes):
            tag = value[:200].decode("utf-8", "replace")
        elif number == 2 and isinstance(value, float):
            found = value
        elif number == 8 and isinstance(value, bytes):
            found = _tensor(value)
    return tag, found


def _tensor(message: bytes) -> float | None:
    """The only number of a tensor of float32: its content, or its list of values."""
    kind = 0
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in (4, 5) and isinstance(value, bytes) and len(value) == 4 and kind == 1:
            return float(struct.unpack("<f", value)[0])
        elif number == 5 and isinstance(value, float):
            return value
    return None
