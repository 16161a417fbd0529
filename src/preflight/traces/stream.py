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
from preflight.traces.cuts import (
    BETWEEN,
    after_comma,
    byte_of,
    cuts,
    end_before_meta,
    end_of_array,
    event_around,
    is_cut,
)
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
_MOST_BRACES = 50

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BARE_ARRAY = re.compile(rb"\s*\[\s*(?:\{|\]|$)")


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
        self._behind = b""

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
        for cut in cuts(text):
            body = text[:cut]
            try:
                return self._lists.decode(b"[" + body + b"]"), after_comma(text, cut)
            except (DecodeError, RecursionError) as error:
                at = byte_of(error)
                if (end := self._end(body, at)) is not None:
                    return self._ended(text, end)
                if is_cut(error, at, len(body)):
                    continue
                return self._mended_to(text, cut, error)
        return self._unclear(text)

    def _mended_to(
        self, text: bytes, cut: int, error: Exception | None = None
    ) -> tuple[list[T], bytes]:
        """Events up to a cut, with damage among them, and the rest of the text."""
        found = self._mended(text[:cut], error)
        return found, self._behind + text[cut:] if self.whole else after_comma(text, cut)

    def _unclear(self, text: bytes) -> tuple[list[T], bytes]:
        """No cut of it is one: the array ends here, an event is very long, or damage hides where
        events end."""
        end = self._bracket(text)
        if end is not None:
            return self._ended(text, end)
        cut = next(cuts(text), 0)
        if cut:
            return self._mended_to(text, cut)
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
            return self._end(text, byte_of(error))
        return len(text)

    def _end(self, text: bytes, at: int) -> int | None:
        """Past the bracket that byte `at` seems to be behind, if what is before it are events: a
        list within one ends with a bracket too."""
        end = end_of_array(text, at)
        if end is None:
            return None
        try:
            self._lists.decode(b"[" + _before_bracket(text[:end]) + b"]")
        except (DecodeError, RecursionError):
            return None
        return end

    def _ended(self, text: bytes, end: int) -> tuple[list[T], bytes]:
        """The array's last events, and the text after its bracket."""
        self.whole = True
        return self._mended(_before_bracket(text[:end])), text[end:]

    def _final(self, text: bytes) -> tuple[list[T], bytes]:
        """What is left at the end of the file: with its bracket, or cut within an event."""
        end = self._bracket(text)
        if end is not None:
            return self._ended(text, end)
        end = end_before_meta(text)
        if end is not None:
            return self._ended(text, end)
        found, left = self._mended_to(text, next(cuts(text), 0))
        if self.whole:
            return found, left
        whole = self._whole_of(left)
        found += self._mended(whole)
        self.lost += len(left[len(whole) :].strip(b", \t\r\n")) > 0
        return found, b""

    def _whole_of(self, text: bytes) -> bytes:
        """What of a text that is cut are whole events: up to one of its last braces."""
        end = len(text)
        for _ in range(_MOST_BRACES):
            end = text.rfind(b"}", 0, end) + 1
            if not end:
                break
            try:
                self._lists.decode(b"[" + text[:end] + b"]")
                return text[:end]
            except (DecodeError, RecursionError):
                end -= 1
        return b""

    def _mended(self, body: bytes, error: Exception | None = None) -> list[T]:
        """Whole events, perhaps with damage among them: `error` is what is known of it. Where their
        array ends within, `whole` is set and `_behind` is what follows."""
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
            if (end := self._end(body, at)) is not None:
                self.whole, self._behind = True, body[end:]
                body, error = _before_bracket(body[:end]), None
                continue
            body, changed = cleaned(body, str(error), at)
            self.repaired += changed
            error = None
            if changed:
                continue
            begin, end = event_around(body, at)
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
        for match in BETWEEN.finditer(body):
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


def _before_bracket(text: bytes) -> bytes:
    """Events without the bracket that ends them, and without a comma before it."""
    return text.rstrip().removesuffix(b"]").rstrip(b", \t\r\n")
