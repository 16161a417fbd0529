"""When a line was written, as it says itself. Without a zone it is taken as UTC: only differences
count. Clocks that jump are left as they are."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from preflight.logs.training.shape import figures

#: Only here in a line a time is looked for.
_WITHIN = 160
_HMS = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d(?:[.,]\d{1,9})?)"
#: Shapes, the most telling first; `y` and the like are groups. Sources: section C of the formats.
_SHAPES = tuple(
    re.compile(one)
    for one in (
        rf"(?P<y>\d{{4}})(?P<cut>[-/])(?P<mo>\d\d)[-/](?P<d>\d\d)[ T_]{_HMS}",
        rf"(?P<mo>\d\d)/(?P<d>\d\d)/(?P<y>\d{{4}})[ -]{_HMS}",
        rf"(?<![\d/])(?P<mo>\d\d)/(?P<d>\d\d) {_HMS}",
        rf"(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<d>\d\d?) {_HMS}",
        rf"(?<![A-Za-z\d])[IWEF]\d{{4}} {_HMS}",
        rf"(?:^|[\[\s(]){_HMS}(?=[\]\s)|,])",
    )
)
#: Minutes remembered: of ten weeks.
_MOST_MINUTES = 100_000
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


class Clock(Struct, frozen=True):
    """Where in lines of a shape the time stands: figures of the date, of hour, minute, second.
    `digits`: of a second's fraction that follows a comma, which figures lose."""

    date: tuple[int, ...]
    form: str  # ymd | y-m-d (one figure) | mdy | md | d (month by name) | none
    hms: tuple[int, int, int]
    comma: bool = False
    month: int = 0


def clock_of(line: bytes) -> Clock | None:
    """The clock of a line's shape; None where it tells no time."""
    text = line[:_WITHIN].decode("latin-1")
    for shape in _SHAPES:
        if found := shape.search(text):
            return _clock(line, found)
    return None


def _clock(line: bytes, found: re.Match[str]) -> Clock | None:
    """Figures that are glued to something else make it none."""
    groups = found.groupdict()
    hms = tuple(_at(line, found.start(one)) for one in ("h", "m", "s"))
    form, names = _form(groups)
    date = tuple(_at(line, found.start(one)) for one in names)
    month = _MONTHS.index(groups["name"]) // 3 + 1 if groups.get("name") else 0
    clock = Clock(date, form, (hms[0], hms[1], hms[2]), "," in groups["s"], month)
    try:
        times_at(clock, figures(line), len(figures(line)), {})
    except (ValueError, IndexError):
        return None
    return clock


def _form(groups: dict[str, str | None]) -> tuple[str, tuple[str, ...]]:
    if groups.get("name"):
        return "d", ("d",)
    if groups.get("y"):
        if groups.get("cut") == "-":
            return "y-m-d", ("y",)
        return ("ymd", ("y", "mo", "d")) if groups.get("cut") else ("mdy", ("mo", "d", "y"))
    if groups.get("mo"):
        return "md", ("mo", "d")
    return "none", ()


def _at(line: bytes, start: int) -> int:
    return len(figures(line[:start]))


def times_at(
    clock: Clock, found: Sequence[str], width: int, days: dict[tuple[str, ...], float]
) -> list[float]:
    """Seconds since 1970, or since midnight where there is no date, of each line. `days` keeps when
    minutes began. ValueError where a figure is none."""
    *places, last = (*clock.date, *clock.hms)
    minutes = list(zip(*(found[at::width] for at in places), strict=True))
    if len(days) > _MOST_MINUTES:
        days.clear()
    for key in set(minutes) - days.keys():
        day = _day(clock, key[:-2]) if clock.date else 0.0
        days[key] = day + int(key[-2][-2:]) * 3600 + int(key[-1]) * 60
    seconds = found[last::width]
    if clock.comma:
        seconds = [f"{one[:2]}.{one[2:]}" for one in seconds]
    return [days[key] + float(one) for key, one in zip(minutes, seconds, strict=True)]


def _day(clock: Clock, key: tuple[str, ...]) -> float:
    """Midnight. Without a year it is one of 1970: differences within a run hold."""
    if clock.form == "y-m-d":
        year, month, day = (int(one) for one in key[0].split("-")[:3])
    elif clock.form == "ymd":
        year, month, day = (int(one) for one in key)
    elif clock.form == "mdy":
        month, day, year = (int(one) for one in key)
    else:
        numbers = [int(one) for one in key]
        year, month, day = 1972, numbers[0] if len(numbers) > 1 else clock.month, numbers[-1]
    return float(timegm(datetime(year, month, day).timetuple()))
