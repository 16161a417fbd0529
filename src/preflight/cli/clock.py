"""The time of day, as reports write it."""

from __future__ import annotations

from datetime import datetime, timezone


def now() -> str:
    """UTC, to the second."""
    return f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
