"""What is done to JSON that profilers wrote wrongly: bare N/A and NaN, control characters, bad
UTF-8, quotes within names. Nothing here guesses a time."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from msgspec import MsgspecError, convert

T = TypeVar("T")

#: A bare word where a value belongs.
_WORD = re.compile(rb"N/A|-?(?:nan|NaN|inf(?:inity)?|Infinity)|None|undefined")
_SPACES = bytes(32 if code < 32 else code for code in range(256))
_TRAILING_COMMA = re.compile(rb",(\s*[}\]])")

#: So much of an event is looked at for its fields.
_LOOKED_AT = 16384
#: What an event is put together from where its JSON is beyond repair. A text ends at the quote
#: before the next key.
_FIELDS: dict[str, re.Pattern[bytes]] = {
    "ph": re.compile(rb'"ph"\s*:\s*"([A-Za-z])"'),
    "cat": re.compile(rb'"cat"\s*:\s*"([^"]{0,80})"'),
    "name": re.compile(
        rb'"name"\s*:\s*"(.{0,1000}?)"\s*(?:,\s*"\w[\w ()/#-]{0,40}"\s*:|\})', re.S
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


def cleaned(text: bytes, complaint: str, at: int) -> tuple[bytes, int]:
    """The same JSON without what a decoder complains of at byte `at`, wherever it stands: bad
    UTF-8, control characters, a bare word such as N/A, which becomes null. And how many places were
    changed, where one counts for all bad bytes; 0 where it is something else."""
    if "UTF-8" in complaint:
        plain = text.decode("utf-8", "replace").encode()
        return plain, int(plain != text)
    for place in (at, at - 1) if at >= 0 else ():  # the decoder counts the bad byte, or does not
        if 0 <= place < len(text) and text[place] < 32 and text[place] not in b"\t\n\r":
            return text.translate(_SPACES), 1
        match = _WORD.match(text, max(place, 0))
        if match:
            return _without_word(text, match[0])
    if "invalid character" in complaint and (plain := text.translate(_SPACES)) != text:
        return plain, 1
    return text, 0


def _without_word(text: bytes, word: bytes) -> tuple[bytes, int]:
    """A pattern that begins with the word itself takes a tenth of the time of one that begins with
    what may stand before it."""
    escaped = re.escape(word)
    pattern = rb"%s(?<=[:\[,\s]%s)(?=\s*[,}\]])" % (escaped, escaped)
    return re.subn(pattern, b"null", text)


def without_trailing_commas(text: bytes) -> bytes:
    return _TRAILING_COMMA.sub(rb"\1", text)


def salvaged(piece: bytes, kind: type[T]) -> T | None:
    """An event from what can be told apart in it; None where it has no time or no phase."""
    piece = piece[:_LOOKED_AT]
    found: dict[str, Any] = _matched(_FIELDS, piece)
    if "ts" not in found or "ph" not in found:
        return None
    found["args"] = _matched(_ARGUMENTS, piece)
    try:
        return convert(found, kind, strict=False)
    except MsgspecError:
        return None


def _matched(patterns: dict[str, re.Pattern[bytes]], piece: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, pattern in patterns.items():
        match = pattern.search(piece)
        if match:
            text = match[1].decode("utf-8", "replace")
            number = text.isdecimal() and len(text) <= 18 and name != "name"
            found[name] = int(text) if number else text
    return found
