"""A number with how far it may be off, and where it comes from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from preflight.model import Known, Missing

Origin = Literal["measured", "stated", "datasheet", "assumed", "computed"]


class Figure(Struct, frozen=True):
    """Low, likely and high, in the unit of whoever holds it."""

    low: float
    likely: float
    high: float
    origin: Origin
    source: str = ""


def stated(value: float, option: str) -> Figure:
    """What the user says."""
    return Figure(value, value, value, "stated", option)


def computed(rule: Callable[..., float], *parts: Figure | float, falling: str = "") -> Figure:
    """`rule` of its parts, low of the low ones and high of the high ones; a letter of `falling` is
    "-" where the result falls with that part."""

    def at(name: str) -> float:
        other = {"low": "high", "high": "low"}.get(name, name)
        picked = [
            getattr(part, other if falling[i : i + 1] == "-" else name)
            if isinstance(part, Figure)
            else part
            for i, part in enumerate(parts)
        ]
        return rule(*picked)

    return Figure(at("low"), at("likely"), at("high"), "computed")


def together(found: Sequence[Figure], missing: Missing) -> Known[Figure]:
    """Several measurements of one thing: all that they reach, and their median."""
    if not found:
        return missing
    return Figure(
        min(one.low for one in found),
        statistics.median(one.likely for one in found),
        max(one.high for one in found),
        "measured",
        "; ".join(dict.fromkeys(one.source for one in found)),
    )


def first_missing(*parts: object) -> Missing | None:
    """The first of them that is not known."""
    return next((part for part in parts if isinstance(part, Missing)), None)
