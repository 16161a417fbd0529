"""What is done to JSON that profilers wrote wrongly: bare N/A and NaN, control characters, bad
UTF-8, quotes within names. Nothing here guesses a time."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from msgspec import MsgspecError, convert

T = TypeVar("T")

#: A bare word where a value belongs, up to what ends the value.
_BARE = re.compile(
    rb"(?<=[:\[,])(\s*)(?:N/A|-?nan(?:\(\w*\))?|-?NaN|-?[Ii]nf(?:inity)?|None|undefined)(?=\s*[,}\]])"
)
_HAS_BARE = (b"N/A", b"nan", b"NaN", b"nf", b"None", b"undefined")
_SPACES = bytes(32 if code < 32 else code for code in range(256))
_TRAILING_COMMA = re.compile(rb",(\s*[}\]])")

#: What an event is put together from where its JSON is beyond repair. A text ends at the quote
#: before the next key.
_FIELDS: dict[str, re.Pattern[bytes]] = {
    "ph": re.compile(rb'"ph"\s*:\s*"([A-Za-z])"'),
    "cat": re.compile(rb'"cat"\s*:\s*"([^"]{0,80})"'),
    "name": re.compile(
        rb'"name"\s*:\s*"(.{0,4000}?)"\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id)"\s*:|\})', re.S
    ),
    "ts": re.compile(rb'"ts"\s*:\s*"?(-?[\d.]+(?:[eE][-+]?\d+)?)'),
    "dur": re.compile(rb'"dur"\s*:\s*"?(-?[\d.]+(?:[eE][-+]?\d+)?)'),
    "pid": re.compile(rb'"pid"\s*:\s*"?([^",}\s]{1,80})'),
    "tid": re.compile(rb'"tid"\s*:\s*"?([^",}\s]{1,80})'),
}  # fmt: skip
_ARGUMENTS: dict[str, re.Pattern[bytes]] = {
    name: re.compile(rb'"%s"\s*:\s*"?(\d{1,18})[",}\s]' % name.encode())
    for name in ("correlation", "stream", "device", "bytes", "Group size", "Process Group Name",
                 "In msg nelems", "Out msg nelems", "Seq", "step", "model_chunk", "mb_id")
}  # fmt: skip
_ARGUMENTS["Collective name"] = re.compile(rb'"Collective name"\s*:\s*"(\w{1,80})"')


def cleaned(text: bytes) -> tuple[bytes, int]:
    """The same JSON with bare words as null, and without what is no UTF-8 or a control character;
    how many places were changed (all bad bytes together count as one)."""
    count = 0
    if any(word in text for word in _HAS_BARE):
        text, count = _BARE.subn(rb"\1null", text)
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode()
        count += 1
    plain = text.translate(_SPACES)
    return plain, count


def without_trailing_commas(text: bytes) -> bytes:
    return _TRAILING_COMMA.sub(rb"\1", text)


def salvaged(piece: bytes, kind: type[T]) -> T | None:
    """An event from what can be told apart in it; None where it has no time or no phase."""
    found: dict[str, Any] = _matched(_FIELDS, piece)
    if "ts" not in found or "ph" not in found:
        return None
    found["args"] = _matched(_ARGUMENTS, piece)
    try:
        return convert(found, kind, strict=False)
    except MsgspecError:
        return None


def _matched(patterns: dict[str, re.Pattern[bytes]], piece: bytes) -> dict[str, Any]:
    return {
        name: match[1].decode("utf-8", "replace")
        for name, pattern in patterns.items() if (match := pattern.search(piece))
    }  # fmt: skip
