"""What a bench of an object store is to do; cli/objects.py makes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """`url`: any that fsspec knows; what is put lies in a folder of its own below it. `size_bytes`:
    of all objects that are put, and as much is got. `seconds`: of all requests that are timed."""

    url: str
    size_bytes: int = 256 << 20
    seconds: float = 30.0
    even_if_busy: bool = False
