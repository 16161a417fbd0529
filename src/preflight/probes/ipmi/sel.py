"""The BMC's event log, from `ipmitool sel list` or `sel elist`."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.chassis import EventLog, SelEntry
from preflight.model import Known
from preflight.probes.ipmi.lines import no_device
from preflight.probes.spec import probe

_PROBE = "ipmi-sel"
#: Entries that are kept, the newest: a log has a few thousand at most.
KEPT = 4096

#: `  1a | 06/14/2023 | 10:01:17 | ...`; the day also in other locales' order, the time with a zone
#: and AM or PM since 1.8.19.
_ENTRY = re.compile(r"\s*([0-9a-fA-F]{1,8}) ?\|([^|\n]{0,24})\|([^|\n]{0,24})\|(.*)")
_EMPTY = re.compile(r"SEL has no entries", re.IGNORECASE)
_DAYS = (
    (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), "mdy"),
    (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{2})"), "mdy"),
    (re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})"), "ymd"),
    (re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})"), "dmy"),
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?: (AM|PM))?(?: [\w:+-]{1,8})?", re.IGNORECASE)
#: A BMC whose clock was never set counts from 1970 or from its firmware's year; no machine with
#: GPUs that train is as old as this.
_CLOCK_SET_FROM = 2010
_PRE_INIT = re.compile(r"pre-?init", re.IGNORECASE)
_DIRECTION = re.compile(r"(?:De)?asserted", re.IGNORECASE)


@probe(_PROBE, ["ipmitool", "sel", "elist", "last", "512"], timeout_s=40, needs_root=True,
       waits_for="bmc", with_stderr=True)  # fmt: skip
def ipmi_sel(text: str) -> Known[EventLog]:
    """The entries, oldest first, as the log has them."""
    entries: list[SelEntry] = []
    total = unread = 0
    for number, line in enumerate(text.split("\n"), 1):
        match = _ENTRY.match(line)
        if match is None:
            continue
        total += 1
        entry = _entry(match, number)
        if entry is None:
            unread += 1
        else:
            entries.append(entry)
    if not total and not _EMPTY.search(text):
        gone = no_device(text)
        if gone is not None:
            return gone
        raise ParseError("expected `1 | 06/14/2023 | 10:01:17 | ...` as `ipmitool sel` prints", 1)
    first = entries[0].line if entries else 1
    return EventLog(_in_time(entries[-KEPT:]), total, unread, first, _PROBE)


def _entry(match: re.Match[str], number: int) -> SelEntry | None:
    cells = [cell.strip() for cell in match[4].split("|")]
    if len(cells) < 2 or not cells[0] or cells[0].lower().startswith("oem record"):
        return None
    day, clock = match[2].strip(), match[3].strip()
    at_s = _at_s(day, clock)
    if at_s is None and not _PRE_INIT.search(day) and not _looks_like_day(day):
        return None
    # "Uncorrectable ECC (UnCorrectable ECC |  DIMMD7) | Asserted": an event with a bar in it
    ends = next((at for at, cell in enumerate(cells[1:], 1) if _DIRECTION.fullmatch(cell)), None)
    event = " | ".join(cells[1:ends]) if ends and ends > 1 else cells[1]
    return SelEntry(
        number=int(match[1], 16),
        sensor=cells[0],
        event=event,
        line=number,
        at_s=at_s,
        time=f"{day} {clock}".strip() if at_s is not None else "",
        asserted=ends is None or not cells[ends].lower().startswith("de"),
        probe=_PROBE,
    )


def _looks_like_day(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern, _ in _DAYS)


def _at_s(day: str, clock: str) -> float | None:
    """Seconds since 1970 by the BMC's clock, its zone left aside; None where it has no time."""
    time = _CLOCK.fullmatch(clock)
    found = next(((m, order) for pattern, order in _DAYS if (m := pattern.fullmatch(day))), None)
    if time is None or found is None:
        return None
    parts = dict(zip(found[1], map(int, found[0].groups()), strict=True))
    year = parts["y"] + 2000 if parts["y"] < 100 else parts["y"]
    hour = int(time[1]) % 12 + (12 if time[4].upper() == "PM" else 0) if time[4] else int(time[1])
    try:
        at = datetime(year, parts["m"], parts["d"], hour, int(time[2]), int(time[3]),
                      tzinfo=timezone.utc)  # fmt: skip
    except ValueError:
        return None
    return at.timestamp() if _CLOCK_SET_FROM <= year < 2069 else None


def _in_time(entries: list[SelEntry]) -> tuple[SelEntry, ...]:
    """An entry without a time is not younger than the next that has one."""
    after: float | None = None
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].at_s is None:
            entries[at] = replace(entries[at], at_s=after)
        else:
            after = entries[at].at_s
    return tuple(entries)
