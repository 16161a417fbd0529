"""Faults on purpose, for drills and tests: each is of one device, by its number."""

from __future__ import annotations

import signal
import time
from typing import Any

#: What each does to its device.
FAULTS = {
    "wedge": "falls silent in the middle of its first test, as in a driver that hangs",
    "zero-work": "multiplies nothing, and is fast at it",
    "corrupt": "flips one bit of every product",
    "memory": "has a bit of its memory that stays one",
    "slow": "takes twice as long",
    "lost": "is gone in the middle of its first test",
}
_faults: dict[str, int] = {}


def into(faults: dict[str, int]) -> None:
    """From now on, in this process."""
    _faults.update(faults)


def _hits(name: str, place: Any) -> bool:
    return bool(_faults.get(name, -1) == place.number)


def zero_work(place: Any) -> bool:
    return _hits("zero-work", place)


def corrupted(place: Any, found: Any) -> Any:
    """The product, or one with a bit flipped in one of its elements, and late where it is slow."""
    if _hits("wedge", place):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        time.sleep(3600)
    if _hits("lost", place):
        raise RuntimeError("CUDA error: unspecified launch failure (injected)")
    if _hits("slow", place):
        began = time.perf_counter()
        while time.perf_counter() < began + 0.004:
            time.sleep(0.001)
    if _hits("corrupt", place):
        found.view(-1)[found.numel() // 3] *= 1.5
    return found


def stuck_bit(place: Any, words: Any) -> None:
    """A bit of the tested memory that stays one, whatever was written."""
    if _hits("memory", place):
        words[len(words) // 2] |= 1 << 13
