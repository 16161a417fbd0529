"""An error text, a traceback or a log -> what is behind it, the root before its echoes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from preflight import error_texts, runbooks
from preflight.cli.explain_rows import as_told
from preflight.cli.wrapped import wrapped
from preflight.errors import UsageError
from preflight.model import Check
from preflight.pasted import text_of

#: Of a file or standard input the end is read: what a job died of stands there.
MAX_BYTES = 4 << 20
#: Causes told in full, and told at all: the answer is one screen.
_FULL, _MOST = 1, 5
_XID = re.compile(
    r"\b(s?)xid\b[^\w\n(]{0,3}(?:\([^)\n]{0,60}\))?[^\w\n(]{0,3}(\d{1,5})\b",
    re.IGNORECASE,
)
#: The Xids that are told before any error of a program: they ended the process or the GPU.
_ROOTS = ("gpu.xid.48", "gpu.xid.79", "gpu.xid.94", "gpu.xid.95")


class Input(Struct, frozen=True):
    """Text to be explained; `skipped` lines of the source stand before it."""

    text: str
    source: str = ""
    skipped: int = 0


def read(words: Sequence[str]) -> Input:
    """What the words name, a file or `-`, else the words themselves; raises UsageError."""
    if list(words) == ["-"]:
        return _end_of(sys.stdin.buffer if sys.stdin else None, "standard input")
    name = " ".join(words)
    # A file's name holds a dot or a slash; a check or a runbook of that name is not meant then.
    if len(words) == 1 and re.search(r"[./]", name) and len(name) < 4096 and "\n" not in name:
        path = Path(name)
        if path.is_file():
            try:
                with path.open("rb") as file:
                    return _end_of(file, name)
            except OSError as error:
                raise UsageError(f"{name} cannot be read: {error.strerror}") from error
    return Input(name)


def _end_of(file: BinaryIO | None, source: str) -> Input:
    if file is None:
        raise UsageError(f"{source} is closed", "preflight explain - < err.txt")
    kept, skipped = b"", 0
    while chunk := file.read(1 << 20):
        kept += chunk
        if len(kept) > 2 * MAX_BYTES:
            skipped += kept.count(b"\n", 0, len(kept) - MAX_BYTES)
            kept = kept[-MAX_BYTES:]
    try:
        return Input(text_of(kept, source), source, skipped)
    except UsageError as error:
        raise UsageError(error.what, "preflight explain - < err.txt, or a file of text") from None


def explained(given: Input, checks: Sequence[Check]) -> Iterator[str]:
    """The answer; nothing where no error text and no Xid is known in it."""
    hits, xids = error_texts.find(given.text), _xids(given.text, checks)
    roots = [check for check in xids if check.id in _ROOTS]
    # An Xid that the text shows is the reason for what else is told by the driver.
    for check in roots:
        yield from _xid(check)
        yield "\n"
    for number, hit in enumerate(hits[:_MOST]):
        full = number < _FULL and not roots
        yield from _full(hit, given) if full else _short(hit, given)
        yield "\n"
    for check in xids:
        if check not in roots:
            yield from _xid(check)
            yield "\n"
    if len(hits) > _MOST:
        yield f"and {len(hits) - _MOST} more, which stand later or only follow\n\n"
    yield from _more(hits, xids)


def _xids(text: str, checks: Sequence[Check]) -> list[Check]:
    """The checks of the Xids and SXids in the text, in order."""
    by_id = {check.id: check for check in checks}
    found: dict[str, str] = {}
    for match in _XID.finditer(text):
        name = f"gpu.{match[1].lower()}xid.{int(match[2])}"
        found[name] = text[match.end() : match.end() + 1000].partition("\n")[0].lstrip(", :")
    return [as_told(by_id[name], said) for name, said in found.items() if name in by_id][:_MOST]


def _full(hit: error_texts.Hit, given: Input) -> Iterator[str]:
    row = hit.row
    yield from wrapped(row.text + _where(hit, given))
    yield "\n"
    yield from wrapped(("It only follows: " if row.stage == "echo" else "") + row.cause)
    if row.stage != "hardware":
        yield from wrapped(f"Hardware: {_hardware(row)}")
    yield "\nwhat to do:\n"
    for step in row.next:
        yield from wrapped(step, "  - ")


def _hardware(row: error_texts.ErrorText) -> str:
    if row.hardware_if:
        return f"only if {row.hardware_if}."
    return "nothing in this text points to it."


def _short(hit: error_texts.Hit, given: Input) -> Iterator[str]:
    kind = "follows" if hit.row.stage == "echo" else "also"
    yield from wrapped(f"{kind}: {hit.row.text}{_where(hit, given)}")
    yield from wrapped(hit.row.cause, "  ")


def _where(hit: error_texts.Hit, given: Input) -> str:
    if not given.source and "\n" not in given.text:
        return ""
    return f"   (line {hit.line + given.skipped})"


def _xid(check: Check) -> Iterator[str]:
    yield from wrapped(check.title)
    yield from wrapped(check.why, "  ")
    yield from wrapped(f"to do: {check.fix[0]}", "  ")
    yield f"  more: preflight explain {check.id}\n"


def _more(hits: Sequence[error_texts.Hit], xids: Sequence[Check]) -> Iterator[str]:
    """The runbooks of all that was told, the first cause's first."""
    names = [hit.row.runbook for hit in hits[:_MOST]] + [check.runbook for check in xids]
    for name in list(dict.fromkeys(filter(None, names)))[:3]:
        yield f"more: preflight explain {name}   ({runbooks.load()[name].title})\n"
