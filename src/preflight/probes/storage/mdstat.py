"""Linux' own RAID, from /proc/mdstat: the kernel's drivers/md/md.c writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from preflight.errors import ParseError
from preflight.facts.storage import Raid
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.spec import probe

_PROBE = "mdstat"
_ASK = """\
if [ -e /proc/mdstat ]; then exec cat /proc/mdstat; fi
echo 'no /proc/mdstat'"""

#: md0 : active (auto-read-only) raid1 sdb1[1] sda1[0](F)
_ARRAY = re.compile(
    r"(md\w{1,60}) : (active|inactive|broken)(?: \([\w-]{1,30}\))?(?: (raid\d{1,2}|linear|faulty"
    r"|multipath|container))?((?: \S{1,80}\[\d{1,9}\](?:\([A-Z]\))*)*)\s*",
    re.ASCII,
)
_MEMBER = re.compile(r"(\S{1,80})\[\d{1,9}\]((?:\([A-Z]\))*)", re.ASCII)
#: 7813890048 blocks super 1.2 ... [4/3] [UU_U]: how many it should have, and how many work.
_COUNTS = re.compile(r".* blocks .*?\[(\d{1,6})/(\d{1,6})\] \[[U_]{1,6000}\]", re.ASCII)
_WORK = re.compile(
    r"\[[=>.]{1,60}\]\s+(recovery|resync|reshape|check|repair)\s*=\s*(\d{1,3}(?:\.\d{1,3})?)%.*",
    re.ASCII,
)
_WAITS = re.compile(r"(recovery|resync|reshape)\s*= ?(?:DELAYED|PENDING)", re.ASCII)
#: Without parity or copies: one disk less, and there is no array.
_NO_COUNT = Missing("not-applicable", "this level has no disk to spare")
_NOT_ACTIVE = Missing("not-applicable", "it is not running")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def mdstat(text: str) -> tuple[Raid, ...]:
    """A line for each array; below it how many of its disks work, and what is under way."""
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if lines == ["no /proc/mdstat"]:
        return ()
    starts = [at for at, line in enumerate(lines) if _ARRAY.fullmatch(line)]
    if not starts and not any(line.startswith("Personalities :") for line in lines):
        raise ParseError("expected `Personalities :` and arrays, as in /proc/mdstat", 1)
    if not any(line.startswith("unused devices:") for line in lines):
        raise ParseError("/proc/mdstat is cut short: no `unused devices:`", len(lines))
    return tuple(_raid(lines[at:end], at + 1) for at, end in pairwise([*starts, len(lines)]))


def _raid(lines: Sequence[str], line: int) -> Raid:
    match = _ARRAY.fullmatch(lines[0])
    assert match is not None
    name, state, level, members = match.groups()
    active = state == "active"
    counts = next((found for one in lines if (found := _COUNTS.match(one))), None)
    work = next((found for one in lines if (found := _WORK.fullmatch(one))), None)
    waits = next((found for one in lines if (found := _WAITS.search(one))), None)
    unknown = _NO_COUNT if active else _NOT_ACTIVE
    flagged = _MEMBER.findall(members)
    return Raid(
        name=name,
        level=level or NOT_IN_INPUT,
        active=active,
        disks=int(counts[1]) if counts else unknown,
        absent=int(counts[1]) - int(counts[2]) if counts else unknown,
        failed=tuple(member for member, flags in flagged if "(F)" in flags),
        work=work[1] if work else f"{waits[1]} waits" if waits else "none",
        work_percent=float(work[2]) if work else Missing("not-applicable", "nothing is under way"),
        line=line,
        probe=_PROBE,
    )
