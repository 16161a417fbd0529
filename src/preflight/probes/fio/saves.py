"""What is told of saves of a checkpoint alone: when it was durable, what came to the device,
what it left to a reader, and what several hosts reached at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from preflight.model import Known, Missing

Line = dict[str, Any]
_NO_SAVE = Missing("not-applicable", "it is told of saves alone")
_NO_DEVICE = Missing("not-applicable", "what its device is given is not told of such a file system")
_NO_READER = Missing("not-applicable", "nobody read beside it")
_NO_HOSTS = Missing("not-applicable", "it is of one host")
_UNTOLD = Missing("unreadable", "its line does not tell it")
#: More than this of what it had alone, and the time alone was a bad one.
_NO_FASTER_PERCENT = 120
_UNSTEADY = Missing(
    "exited", "data was read faster beside the save than alone: the device is not steady, or "
    "others use it; what a save leaves to a reader is not determined",
)  # fmt: skip
#: Numbers, and what it is that has none.
_NUMBERS = {
    **dict.fromkeys(("durable_s", "stall_s", "sync_s"), _NO_SAVE), "reached_percent": _NO_DEVICE,
    **dict.fromkeys(("reader_alone_mbps", "reader_mbps", "reader_kept_percent",
                     "reader_starved_s"), _NO_READER), "apart_s": _NO_HOSTS,
}  # fmt: skip


def of_save(line: Line, begin: Line) -> dict[str, Any]:
    """Fields of a row by its line and the first line of the bench."""
    told = {name: _number(line.get(name, absent)) for name, absent in _NUMBERS.items()}
    kept = told["reader_kept_percent"]
    if not isinstance(kept, Missing) and kept > _NO_FASTER_PERCENT:
        told |= dict.fromkeys(("reader_kept_percent", "reader_starved_s"), _UNSTEADY)
    cached, origin = line.get("cached_bytes", _NO_SAVE), line.get("read_back", _NO_SAVE)
    return {
        **told,
        "cached_bytes": cached if isinstance(cached, (int, Missing)) else _UNTOLD,
        "read_back": origin if isinstance(origin, (str, Missing)) else _UNTOLD,
        "hosts_mbps": tuple(_rates(line.get("hosts_mbps"))),
        "note": str(line.get("note", "")),
        "place": str(begin.get("dir", "")),
    }


def _number(told: Any) -> Known[float]:
    if isinstance(told, Missing):
        return told
    is_number = isinstance(told, (int, float)) and not isinstance(told, bool)
    return float(told) if is_number and math.isfinite(told) and told >= 0 else _UNTOLD


def _rates(told: Any) -> Iterator[tuple[str, float]]:
    """By host."""
    for each in told if isinstance(told, list) else ():
        if isinstance(each, list) and len(each) == 2:
            rate = _number(each[1])
            if not isinstance(rate, Missing):
                yield str(each[0]), rate
