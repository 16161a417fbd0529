"""Bytes and seconds of an option, held to what a bench takes."""

from __future__ import annotations

from preflight.errors import UsageError
from preflight.units import format_bytes, format_duration, parse_bytes, parse_duration


def size_of(text: str | None, default: int, least: int, most: int) -> int:
    """The bytes of --size. Raises UsageError."""
    found = default if text is None else parse_bytes(text)
    if not least <= found <= most:
        raise UsageError(f"--size {text} is out of range",
                         f"{format_bytes(least)} to {format_bytes(most)}")  # fmt: skip
    return found


def seconds_of(text: str | None, default: float, least: float, most: float) -> float:
    """The seconds of --runtime. Raises UsageError."""
    found = default if text is None else parse_duration(text)
    if not least <= found <= most:
        raise UsageError(f"--runtime {text} is out of range",
                         f"{format_duration(least)} to {format_duration(most)}")  # fmt: skip
    return found
