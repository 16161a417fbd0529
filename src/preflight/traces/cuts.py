"""Where events of a trace begin and end in its text, whatever its layout: guesses, which hold where
what they cut decodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import DecodeError, Raw
from msgspec.json import decode

#: After an event, before the next.
BETWEEN = re.compile(
    rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|tts|dur|args|id|s|bp|cname)"\s*:)'
)
_AT_BYTE = re.compile(r"\(byte (\d+)\)")
_END_OF_EVENTS = re.compile(rb'\s*(?:,\s*(?:"|$)|\}|$)')
_BRACKET = re.compile(rb"\}\s*,?\s*\]")
_MOST_BRACKETS, _LAST_BYTES = 200, 1 << 20
#: So many are tried.
_MOST_CUTS = 6


def cuts(text: bytes) -> Iterator[int]:
    """Where events seem to end, the last first: after the brace, before the comma."""
    count = 0
    for window in (1 << 14, 1 << 18, len(text)):
        begin = max(0, len(text) - window)
        places = [match.start() + 1 for match in BETWEEN.finditer(text, begin)]
        for place in reversed(places[-_MOST_CUTS:]):
            yield place
            count += 1
        if count or not begin:
            return


def after_comma(text: bytes, cut: int) -> bytes:
    """Past the comma."""
    return text[cut:].lstrip(b", \t\r\n")


def byte_of(error: Exception) -> int:
    """Where it complains, counted without a byte that was put before; -1 where it does not
    say."""
    match = _AT_BYTE.search(str(error))
    return int(match[1]) - 1 if match else -1


def end_of_array(body: bytes, at: int) -> int | None:
    """Past the array's bracket, where that is what a decoder complains of at byte `at`: of more
    text behind it, or of a comma before it."""
    if at < 0:
        return None
    if body[at : at + 1] == b"]" and body[:at].rstrip().endswith(b","):
        at += 2
    for end in (at, at - 1):  # the decoder counts the first text behind the bracket, or does not
        if body[:end].rstrip().endswith(b"]") and _END_OF_EVENTS.match(body, end) is not None:
            return end
    return None


def end_before_meta(text: bytes) -> int | None:
    """Past the array's bracket in a text that reaches to the end of the file and holds damage: what
    is behind it is nothing, or the rest of a sound object."""
    for match in list(_BRACKET.finditer(text[-_LAST_BYTES:]))[-_MOST_BRACKETS:]:
        end = max(0, len(text) - _LAST_BYTES) + match.end()
        rest = text[end:].strip()
        if rest in (b"", b"}"):
            return end
        try:
            decode(b'{"":0' + rest, type=dict[str, Raw])
        except (DecodeError, RecursionError):
            continue
        return end
    return None


def is_cut(error: Exception, at: int, size: int) -> bool:
    """Whether a text ends within an event: the complaint is about its very end."""
    return at >= size or (at < 0 and "truncated" in str(error))


def event_around(body: bytes, at: int) -> tuple[int, int]:
    """From where to where the event about byte `at` reaches; (0, 0) where that is not told."""
    if at < 0:
        return 0, 0
    begin = 0
    for window in (1 << 12, 1 << 16, len(body)):
        low = max(0, at - window)
        places = [match.end() for match in BETWEEN.finditer(body, low, min(len(body), at + 16))]
        places = [place for place in places if place <= at]
        if places or not low:
            begin = places[-1] if places else 0
            break
    match = BETWEEN.search(body, max(at, begin))
    return begin, match.end() if match else len(body)
