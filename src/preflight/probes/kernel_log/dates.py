"""Dates as logs write them: the pieces of patterns, and the seconds that a match stands for."""

from __future__ import annotations

import re
from datetime import datetime, timezone

#: A leap year, so that 29 February is a day, and long before any log that carries its year.
YEARLESS = 1972

MONTHS = {name: n for n, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
)}  # fmt: skip
MONTH = "(?P<month>" + "|".join(MONTHS) + ")"
TIME = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?P<fraction>[.,]\d{1,9})?"
ZONE = r"(?: ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?))?"


def seconds_of(match: re.Match[str], year: int) -> float | None:
    """Seconds since 1970; a time without zone counts as UTC. None for a date that is none."""
    month = MONTHS.get(match["month"]) or int(match["month"])
    parts = match.groupdict()
    day, hour, minute, second = (int(parts.get(part) or 0) for part in ("day", "h", "m", "s"))
    try:
        # A leap second is written 60.
        at = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone.utc)
    except ValueError:
        return None
    fraction = float("0." + parts["fraction"][1:]) if parts.get("fraction") else 0.0
    return at.timestamp() + fraction - _offset_s(parts.get("zone"))


def _offset_s(zone: str | None) -> int:
    if not zone or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + (int(zone[-2:]) if len(zone) > 3 else 0)
    return (-60 if zone[0] == "-" else 60) * minutes
