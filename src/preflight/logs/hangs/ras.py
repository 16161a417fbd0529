"""What NCCL's RAS service answered, saved: by ncclras, or `verbose status` sent to its port; one
answer or several, as text or as JSON (NCCL user guide, troubleshooting, RAS)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.ras import RasFile, RasReport
from preflight.logs.hangs.ras_json import is_json, of_json
from preflight.logs.hangs.ras_text import RasText
from preflight.logs.hangs.texts import Text

_BEGINS = re.compile(
    rb"^(?:Job summary[ \t]*\r?\n=+|Group +Comms +Nodes +Ranks +Ranks +Ranks +Status +Errors"
    rb"|RAS Monitor Mode|\[[-\d: ]{10,25}\] PEER_DEAD: )",
    re.MULTILINE,
)


def sniff(head: bytes, name: str) -> bool:
    """By the head of its tables among the first lines, or the keys of its JSON."""
    first = head[:4096]
    if is_json(first):
        return True
    found = _BEGINS.search(first)
    return found is not None and first.count(b"\n", 0, found.start()) < 20


def read(path: Path, tell: Callable[[str], None]) -> RasFile:
    """ParseError where there is no answer in it."""
    text, found = Text(path), RasFile(str(path))
    if is_json(text.head(4096)):
        found.reports = of_json(text.whole())
    else:
        found.reports, found.unread = of_lines(text.lines())
    found.truncated = bool(text.cut)
    if not found.reports:
        raise ParseError("it is cut before the first table of NCCL's service")
    return found


def of_lines(lines: Iterable[str]) -> tuple[tuple[RasReport, ...], tuple[str, ...]]:
    """The answers, and some lines that were not understood."""
    reader = RasText()
    for number, line in enumerate(lines, 1):
        if told := line[:4096].rstrip():
            reader.take(number, told)
        if reader.full:
            break
    return reader.done(), tuple(reader.unread)
