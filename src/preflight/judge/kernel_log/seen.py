"""One event of the kernel log as the judge sees it, with the program that it hit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from preflight.judge.kernel_log.rows import Row

#: A program is named by the Xid of its end, this long after the fault at most.
_NAMED_S = 60.0


class Seen(Struct, frozen=True):
    """One event of the log; `subject` as the report names the device, `label` as it names it."""

    label: str  # Xid 79, SXid 20034; "" for a message without a number
    subject: str
    device: str
    line: int
    at_s: float | None
    text: str
    code: int = 0
    pid: int | None = None
    process: str = ""
    named_by: str = ""  # the Xid beside it that names the program
    link: int | None = None
    probe: str = ""
    count: int = 1  # how many the line tells of


def named(row: Row, mine: Sequence[Seen], xids: Sequence[Seen]) -> list[Seen]:
    """The events with the program that an Xid just after them on the same GPU names."""
    namers: dict[str, list[tuple[float, Seen]]] = {}
    for xid in xids:
        if xid.code in row.named_by and xid.process and xid.at_s is not None:
            namers.setdefault(xid.device, []).append((xid.at_s, xid))
    for found in namers.values():
        found.sort(key=_first)
    return [_with_name(seen, namers.get(seen.device, [])) for seen in mine]


def _first(pair: tuple[float, Seen]) -> float:
    return pair[0]


def _with_name(seen: Seen, namers: Sequence[tuple[float, Seen]]) -> Seen:
    if seen.process or seen.at_s is None:
        return seen
    at = bisect_left(namers, seen.at_s, key=_first)
    if at == len(namers) or namers[at][0] - seen.at_s > _NAMED_S:
        return seen
    namer = namers[at][1]
    return replace(seen, process=namer.process, pid=namer.pid, named_by=namer.label)


def ago(seconds: float) -> str:
    """12 s, 4 min, 5 h, 6 d."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
