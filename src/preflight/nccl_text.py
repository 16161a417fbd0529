"""Which part of a text NCCL wrote: its lines tell themselves apart, whatever stands around them.

A line begins `host:pid:tid [device] NCCL INFO `, with the place in the source before a warning.
Before it stands what launchers and collectors put there, and what another process was writing at
that moment. Only the lines of NCCL are kept, without what is before them; the others are left
empty, so that lines count as in the source.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import NamedTuple

from preflight.model import Raw

#: The question that a log of NCCL answers.
PROBE = "nccl-log"
#: Where a line of NCCL begins: the host is in the groups' first part, for several may stand in one.
HEAD = (
    r"(?:(?<![\w.-])(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) "
    r"(?:\[(?P<device>-?\d{1,4})\] )?(?:\[[\d:. T/+-]{8,40}\] )?"
    r"(?:(?!NCCL )(?P<place>[^\n\[]{1,160}?:\d{1,6} ))?)?"
    r"NCCL (?P<level>INFO|WARN|ABORT) "
)
#: Printed by the first rank alone, with no head.
VERSION = r"[NR]CCL version:? (?P<version>\d{1,3}\.\d[\w.-]{0,20})(?:\+cuda(?P<cuda>[\d.]{1,8}))?"

#: Stands in place of lines of NCCL that a large log has more of.
LEFT_OUT = "-- preflight left out {} lines of NCCL --"
#: Longer lines are cut: none of NCCL's is.
LINE_MAX = 4096


#: Where collectors put the text: Docker; Fluent Bit, Vector; loggers of Python; the journal.
_TEXT_KEYS = ("log", "message", "msg", "MESSAGE")
_RECORD_MAX = 1 << 16


class _Forms(NamedTuple):
    """What is looked for. Compiled late: most texts hold nothing of NCCL."""

    any: re.Pattern[str]
    first: re.Pattern[str]
    bare: re.Pattern[str]  # the version with no head
    call: re.Pattern[str]  # each collective, with NCCL_DEBUG_SUBSYS=COLL: of no interest, and many
    broken: re.Pattern[str]
    rest: re.Pattern[str]


@cache
def _forms() -> _Forms:
    return _Forms(
        re.compile(r"NCCL (?:INFO|WARN|ABORT) |NCCL version \d"),
        re.compile(HEAD),
        re.compile(rf"(?:^|[\s:>\]]){VERSION}[ \t]*$"),
        re.compile(r": opCount [\da-f]+ (?:sendbuff|recvbuff)\b"),
        re.compile(r"with (?:error|status) ?=?\S+,? (?!.*vendor)"),
        re.compile(r"[^\n]{0,80}\bvendor[_ ]err"),
    )


def has_nccl(text: str) -> bool:
    """Whether any line may be NCCL's."""
    return "NCCL " in text and _forms().any.search(text) is not None


def speaks(text: str) -> bool:
    """Whether there is more than the version, which each run prints, or there are two of them."""
    if " INFO " in text or " WARN " in text:
        return True
    return len({one["version"] for one in re.finditer(VERSION, text)}) > 1


def taken_out(text: str, source: str) -> tuple[list[Raw], str]:
    """NCCL's lines as one answer, where there are any, and the text without them."""
    if not has_nccl(text):
        return [], text
    mine, rest = parted(text)
    return ([Raw("", PROBE, stdout=mine, source=source)], rest) if mine.strip() else ([], text)


def kept_of(line: str) -> str:
    """The part of a line that is NCCL's; empty where none is."""
    line = _unwrapped(line)
    forms = _forms()
    found = forms.first.search(line, 0, LINE_MAX)
    if found is None:
        bare = forms.bare.search(line[:LINE_MAX])
        return line[bare.start() : LINE_MAX].strip(" :>]\t") if bare else ""
    if ": opCount " in line and forms.call.search(line, found.end(), LINE_MAX):
        return ""
    return line[found.start() : LINE_MAX]


def _unwrapped(line: str) -> str:
    """What a collector wrapped in a record of JSON, in one line; other lines as they are."""
    if not line.lstrip().startswith("{") or len(line) > _RECORD_MAX:
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    told = (record.get(key) for key in _TEXT_KEYS) if isinstance(record, dict) else ()
    return next((one.replace("\n", " ").rstrip() for one in told if isinstance(one, str)), line)


def parted(text: str) -> tuple[str, str]:
    """The lines of NCCL, and all others; either with empty lines for the lines of the other."""
    mine: list[str] = []
    others: list[str] = []
    at = 0
    for begin, end in _places(text):
        if begin < at or not (line := kept_of(text[begin:end])):
            continue
        second = text.find("\n", end + 1)
        second = len(text) if second < 0 else second
        if folds(line, text[end + 1 : second]):
            line, end = f"{line} {text[end + 1 : second]}\n", second
        before = text[at:begin]
        others += [before, "\n" if line.endswith("\n") else ""]
        mine += ["\n" * before.count("\n"), line]
        at = end
    others.append(text[at:])
    return "".join(mine) + ("\n" if at < len(text) else ""), "".join(others)


def folds(line: str, following: str) -> bool:
    """Whether the next line is the rest of this one, which an editor has folded."""
    if "Got completion" not in line:
        return False
    forms = _forms()
    return bool(forms.broken.search(line) and forms.rest.match(following))


def _places(text: str) -> list[tuple[int, int]]:
    """Begin and end of each line that may be NCCL's, each once."""
    places: list[tuple[int, int]] = []
    find = _forms().any.search
    found = find(text)
    while found:
        begin = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        places.append((begin, end))
        found = find(text, end)
    return places
