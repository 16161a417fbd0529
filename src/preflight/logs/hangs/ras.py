"""What NCCL's RAS service answered, saved: by ncclras, or `verbose status` sent to its port; one
answer or several, as text or as JSON (NCCL user guide, troubleshooting, RAS)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.ras import RasFile, RasReport
from preflight.logs.hangs.ras_json import is_json, of_json
from preflight.logs.hangs.ras_text import RasText
from preflight.unpack import Unpacking

_MOST_BYTES = 64 << 20
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
    with path.open("rb") as file:
        source = Unpacking(file, _MOST_BYTES)
        data = b"".join(iter(lambda: source.read(1 << 20), b""))
    found = RasFile(str(path), truncated=bool(source.cause))
    if is_json(data[:4096]):
        found.reports = of_json(data)
    else:
        found.reports, found.unread = of_text(data.decode("utf-8", "replace"))
    if not found.reports:
        raise ParseError("it is cut before the first table of NCCL's service")
    return found


def of_text(text: str) -> tuple[tuple[RasReport, ...], tuple[str, ...]]:
    """The answers, and some lines that were not understood."""
    reader = RasText()
    for number, line in enumerate(text.split("\n"), 1):
        if line := line[:4096].rstrip():
            reader.take(number, line)
    return reader.done(), tuple(reader.unread)
