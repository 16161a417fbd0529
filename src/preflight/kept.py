"""Tables as they were read from YAML, kept beside it as Python keeps its byte code.

Reading YAML would be a fifth of the time of a short command. As with byte code: used only while the
sources have the times and sizes that they had, written only where the user lets Python write its
own, and nothing is lost where it is not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
#: Name, time and size of each source.
Stamps = tuple[tuple[str, int, int], ...]


def kept(place: Path, kind: Any, sources: Sequence[Path], read: Callable[[], T]) -> T:
    """What `read` makes of the sources, a value of the type `kind`: as kept of an earlier reading
    at `place`, else read now and kept. `sources` are the data and the modules that read them."""
    stamps = tuple(map(_stamp, sources))
    found: T | None = _found(place, kind, stamps)
    if found is not None:
        return found
    value = read()
    if not sys.dont_write_bytecode:
        _keep(place, stamps, value)
    return value


def _stamp(path: Path) -> tuple[str, int, int]:
    told = path.stat()
    return str(path), told.st_mtime_ns, told.st_size


def _found(place: Path, kind: Any, stamps: Stamps) -> Any:
    try:
        told, value = msgspec.msgpack.decode(place.read_bytes(), type=tuple[Stamps, kind])
    except (OSError, msgspec.MsgspecError):
        return None
    return value if told == stamps else None


def _keep(place: Path, stamps: Stamps, value: Any) -> None:
    """Write it whole or not at all: another process may do the same, or read."""
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        fresh.write_bytes(msgspec.msgpack.encode((stamps, value)))
        fresh.replace(place)
    with suppress(OSError):
        fresh.unlink(missing_ok=True)
