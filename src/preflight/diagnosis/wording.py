"""Figures as sentences have them."""

from __future__ import annotations

from preflight.units import format_duration, number


def duration(seconds: float) -> str:
    """34.8 s, 179 ms, 12 us; two minutes and more as hours and minutes."""
    if seconds >= 120:
        return format_duration(seconds)
    if seconds >= 1:
        return f"{number(seconds)} s"
    return f"{number(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{number(seconds * 1e6)} us"


def percent(share: float) -> str:
    """Of 0 to 1: `41.2 %`."""
    return f"{number(share * 100)} %"
