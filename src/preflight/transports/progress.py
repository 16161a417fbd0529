"""How far the asking of many hosts is."""

from __future__ import annotations

from msgspec import Struct


class Progress(Struct, frozen=True):
    """`slowest` is the host that has been asked for longest and is not done; `waits_for` the probe
    whose answer is due there."""

    hosts: int
    done: int
    slowest: str = ""
    waits_for: str = ""
    slowest_s: float = 0.0
    #: The last line of the answer that comes in there.
    latest: str = ""
