"""What an event is seen against: the time since, and whether something ended it meanwhile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from preflight.facts.kernel import Start
from preflight.judge.kernel_log.seen import Seen

#: How far the clocks of two logs may be apart.
_APART_S = 120.0
#: What ended an event -> how it is told.
ANEW = {
    "boot": "before the last boot of the host",
    "driver": "before the driver was loaded anew",
    "reset": "before the GPU was reset, as its Xid 154 tells",
    "return": "before the driver was loaded anew, and nvidia-smi shows the GPU again",
}

#: An Xid 154 that tells of a reset that was made: it was asked for before, and is no more.
_WAS_RESET = re.compile(r"from \S+ \([^)]*(?:Reset|Reboot)[^)]*\) to \S+ \(None\)")


class Moment(Struct, frozen=True):
    """What an event is seen against: all Xids of the log, now on the log's axis, where the host or
    the driver began anew, what the GPUs (by device) say of themselves, which answer, and the Xids
    that tell of a reset."""

    xids: Sequence[Seen] = ()
    now_s: float | None = None
    starts: Sequence[Start] = ()
    settled: Mapping[str, str] = field(default_factory=dict)
    answering: frozenset[str] = frozenset()
    resets: Sequence[Seen] = ()


def resets(xids: Sequence[Seen]) -> list[Seen]:
    """The Xids that tell that their GPU was reset."""
    return [one for one in xids if one.code == 154 and _WAS_RESET.search(one.text)]


def ended_by(by: Sequence[str], seen: Seen, moment: Moment) -> tuple[str, int]:
    """What mended the event since, empty where nothing did, and how often."""
    since = [start.what for start in moment.starts if _is_after(start, seen)] if by else []
    back = "return" in by and seen.device in moment.answering
    counted = [what for what in since if what in by or (back and what == "driver")]
    if "driver" in by:
        counted += ["reset" for one in moment.resets if _mends(one, seen)]
    if "boot" in counted:
        return "boot", len(counted)
    return "return" if back and counted else counted[0] if counted else "", len(counted)


def _mends(reset: Seen, seen: Seen) -> bool:
    return reset.device == seen.device and _is_after(reset, seen)


def _is_after(start: Start | Seen, seen: Seen) -> bool:
    if start.probe == seen.probe:
        return start.line > seen.line
    return None not in (start.at_s, seen.at_s) and _gap_s(start.at_s, seen.at_s) > _APART_S


def _gap_s(later_s: float | None, at_s: float | None) -> float:
    return (later_s or 0.0) - (at_s or 0.0)


def age_s(seen: Seen, moment: Moment) -> float:
    """Seconds since the event; 0 where it cannot be told, so that it counts."""
    if seen.at_s is None or moment.now_s is None:
        return 0.0
    return max(0.0, moment.now_s - seen.at_s)
