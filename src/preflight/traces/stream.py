"""A trace's events as lists, about a megabyte at a time: JSON of any layout, gzip or not, damaged
or cut.

The text up to the end of what looks like the last whole event is decoded as an array. A cut that
decodes is right whatever the layout; one within an event does not decode, and moves to the event
before. Elsewhere a decoder's complaint is real damage: that event is repaired or left out, and
counted; what was sound before it is decoded again, what comes after it once, so that a damaged file
takes at most about twice as long as a sound one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from msgspec import DecodeError, ValidationError
from msgspec.json import Decoder

from preflight.errors import ParseError
from preflight.traces.repair import cleaned, salvaged, without_trailing_commas
from preflight.unpack import Unpacking

T = TypeVar("T")
CHUNK_BYTES = 1 << 20
#: What stands before and after the events is kept up to here: lists of all ranks of all groups.
MOST_META_BYTES = 16 << 20
#: No event is longer; where no end of one is found in so much text, it is skipped.
LONGEST_EVENT_BYTES = 8 << 20
#: Skipped one after the other, so many times that much is no trace, but something endless.
_MOST_SKIPS = 4
#: Unpacked.
MOST_BYTES = 64 << 30
#: Of one list: beyond so many damages it is taken apart at every event.
_MOST_DAMAGES = 32
_MOST_CUTS = 6

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BARE_ARRAY = re.compile(rb"\s*\[\s*(?:\{|\]|$)")
_BETWEEN = re.compile(
    rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|tts|dur|args|id|s|bp|cname)"\s*:)'
)
_AT_BYTE = re.compile(r"\(byte (\d+)\)")
_END_OF_EVENTS = re.compile(rb'\s*(?:,\s*(?:"|$)|\}|$)')


class EventStream(Generic[T]):
    """The events of one file, once. After it: `head` and `tail`, what stood around them; and what
    was wrong."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path, self._kind = path, kind
        self._lists: Decoder[list[T]] = Decoder(list[kind], strict=False)  # type: ignore[valid-type]
        self._one: Decoder[T] = Decoder(kind, strict=False)
        self.head, self.tail = b"", b""
        self.bytes = 0
        self.repaired = 0  # events that could be mended
        self.lost = 0  # that could not
        self.cause = ""  # why the file could not be read to its end
        self.whole = False  # the end of the events was seen
        self._skipped = 0

    def __iter__(self) -> Iterator[list[T]]:
        """ParseError where there are no events in it."""
        with self._path.open("rb") as file:
            source = Unpacking(file, MOST_BYTES)
            rest = self._to_events(source)
            while not self.whole and self._skipped < _MOST_SKIPS:
                piece = self._piece(source)
                found, rest = self._decoded(rest + piece, last=not piece)
                if found:
                    self._skipped = 0
                    yield found
                if not piece:
                    break
            self._to_end(source, rest)
            self.cause = source.cause
            if self._skipped >= _MOST_SKIPS:
                self.cause = f"no event ends in {_MOST_SKIPS * LONGEST_EVENT_BYTES:,} bytes"

    def _piece(self, source: BinaryIO | Unpacking) -> bytes:
        """The next megabyte; less only at the end."""
        pieces, size = [], 0
        while size < CHUNK_BYTES and (piece := source.read(CHUNK_BYTES - size)):
            pieces.append(piece)
            size += len(piece)
        self.bytes += size
        return b"".join(pieces)

    def _to_events(self, source: Unpacking) -> bytes:
        """Past the bracket before the first event; what follows it of what was read."""
        text = self._piece(source)
        if text.startswith(b"\xef\xbb\xbf"):
            text = text[3:]
        if _BARE_ARRAY.match(text):
            return text[text.index(b"[") + 1 :]
        while (match := _EVENTS.search(text)) is None:
            piece = self._piece(source)
            if not piece or len(text) > MOST_META_BYTES:
                cause = f": {source.cause}" if source.cause else ""
                raise ParseError(f'no "traceEvents" in its first {len(text):,} bytes{cause}')
            text += piece
        self.head = text[: match.start()]
        return text[match.end() :]

    def _to_end(self, source: Unpacking, rest: bytes) -> None:
        if not self.whole:
            return
        while len(rest) < MOST_META_BYTES and (piece := self._piece(source)):
            rest += piece
        self.tail = rest[:MOST_META_BYTES]

    # What follows works on one list: `text` begins with an event, or with white space.

    def _decoded(self, text: bytes, *, last: bool) -> tuple[list[T], bytes]:
        """Events of a text, and what of it belongs to the next one."""
        if last:
            return self._final(text)
        for cut in _cuts(text):
            body = text[:cut]
            try:
                return self._lists.decode(b"[" + body + b"]"), _after(text, cut)
            except (DecodeError, RecursionError) as error:
                at = byte_of(error)
                if (end := _end_of_array(body, at)) is not None:
                    return self._ended(text, end)
                if _is_cut(error, at, len(body)):
                    continue
                return self._mended(body, error), _after(text, cut)
        return self._unclear(text)

    def _unclear(self, text: bytes) -> tuple[list[T], bytes]:
        """No cut of it is one: the array ends here, an event is very long, or damage hides where
        events end."""
        end = self._bracket(text)
        if end is not None:
            return self._ended(text, end)
        cut = next(_cuts(text), 0)
        if cut:
            return self._mended(text[:cut]), _after(text, cut)
        if len(text) <= LONGEST_EVENT_BYTES:
            return [], text
        self.lost += 1
        self._skipped += 1
        return [], text[-4096:]

    def _bracket(self, text: bytes) -> int | None:
        """Past the bracket after the last event, for a text that holds it."""
        try:
            self._lists.decode(b"[" + text)
        except (DecodeError, RecursionError) as error:
            return _end_of_array(text, byte_of(error))
        return len(text)

    def _ended(self, text: bytes, end: int) -> tuple[list[T], bytes]:
        """The array's last events, and the text after its bracket."""
        self.whole = True
        body = text[:end].rstrip().removesuffix(b"]").rstrip().removesuffix(b",")
        return self._mended(body), text[end:]

    def _final(self, text: bytes) -> tuple[list[T], bytes]:
        """What is left at the end of the file: with its bracket, or cut within an event."""
        end = self._bracket(text)
        if end is not None:
            return self._ended(text, end)
        match = re.search(rb",?\s*\]\s*\}?\s*$", text)
        if match:
            self.whole = True
            return self._mended(text[: match.start()]), b""
        cut = next(_cuts(text), 0)
        found = self._mended(text[:cut])
        left = text[cut:].strip(b", \t\r\n")
        if left:
            try:
                found.append(self._one.decode(left))
            except (DecodeError, RecursionError):
                self.lost += 1
        return found, b""

    def _mended(self, body: bytes, error: Exception | None = None) -> list[T]:
        """Whole events, perhaps with damage among them: `error` is what is known of it."""
        found: list[T] = []
        for _ in range(_MOST_DAMAGES):
            try:
                if error is None:
                    return found + self._lists.decode(b"[" + body + b"]")
            except (DecodeError, RecursionError) as caught:
                error = caught
            if isinstance(error, ValidationError | RecursionError):
                break
            at = byte_of(error)
            body, changed = cleaned(body, str(error), at)
            self.repaired += changed
            error = None
            if changed:
                continue
            begin, end = _event_around(body, at)
            if end <= 0:
                break
            found += self._apart(body[:begin]) + self._apart(body[begin:end])
            body = body[end:].lstrip(b", \t\r\n")
        return found + self._apart(body)

    def _apart(self, body: bytes) -> list[T]:
        """Event by event, if it must be."""
        try:
            return self._lists.decode(b"[" + body.rstrip(b", \t\r\n") + b"]")
        except (DecodeError, RecursionError):
            pass
        found: list[T] = []
        begin = 0
        for match in _BETWEEN.finditer(body):
            self._event(body[begin : match.start() + 1], found)
            begin = match.end()
        self._event(body[begin:], found)
        return found

    def _event(self, piece: bytes, found: list[T]) -> None:
        piece = piece.strip(b", \t\r\n")
        if not piece:
            return
        try:
            found.append(self._one.decode(piece))
            return
        except (DecodeError, RecursionError):
            pass
        try:
            found.append(self._one.decode(without_trailing_commas(piece)))
            self.repaired += 1
            return
        except (DecodeError, RecursionError):
            pass
        event = salvaged(piece, self._kind)
        if event is None:
            self.lost += 1
        else:
            found.append(event)
            self.repaired += 1


def _cuts(text: bytes) -> Iterator[int]:
    """Where events seem to end, the last first: after the brace, before the comma."""
    count = 0
    for window in (1 << 14, 1 << 18, len(text)):
        begin = max(0, len(text) - window)
        places = [match.start() + 1 for match in _BETWEEN.finditer(text, begin)]
        for place in reversed(places[-_MOST_CUTS:]):
            yield place
            count += 1
        if count or not begin:
            return


def _after(text: bytes, cut: int) -> bytes:
    """Past the comma."""
    return text[cut:].lstrip(b", \t\r\n")


def byte_of(error: Exception) -> int:
    """Where it complains, counted without a byte that was put before; -1 where it does not
    say."""
    match = _AT_BYTE.search(str(error))
    return int(match[1]) - 1 if match else -1


def _end_of_array(body: bytes, at: int) -> int | None:
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


def _is_cut(error: Exception, at: int, size: int) -> bool:
    """Whether a text ends within an event: the complaint is about its very end."""
    return at >= size or (at < 0 and "truncated" in str(error))


def _event_around(body: bytes, at: int) -> tuple[int, int]:
    """From where to where the event about byte `at` reaches; (0, 0) where that is not told."""
    if at < 0:
        return 0, 0
    begin = 0
    for window in (1 << 12, 1 << 16, len(body)):
        low = max(0, at - window)
        places = [match.end() for match in _BETWEEN.finditer(body, low, min(len(body), at + 16))]
        places = [place for place in places if place <= at]
        if places or not low:
            begin = places[-1] if places else 0
            break
    match = _BETWEEN.search(body, max(at, begin))
    return begin, match.end() if match else len(body)
