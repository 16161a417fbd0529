"""One number that the hardware allows, with how it was made."""

from __future__ import annotations

from msgspec import Struct


class Bound(Struct, frozen=True):
    """What the hardware allows; `formula` holds the numbers it was made of."""

    value: float
    formula: str
