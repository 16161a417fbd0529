"""Styled text on lines that fit: what `text` yields and `cli` paints."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from preflight.printable import printable
from preflight.reports.wording import is_command

Style = Literal["", "pass", "warn", "fail", "error", "skip", "bold", "dim"]


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


class _Token(NamedTuple):
    gap: str
    text: str
    style: Style
    command: bool


#: A space at which no line is broken.
GLUE = "\xa0"
_WORD = re.compile(r"([ ]*)([^ ]+)")
# A command in backticks is one token, so that it stays on one line where it can.
_ADVICE = re.compile(r"([ ]*)([^ `]*`[^`]*`[^ `]*|[^ ]+)")
# Where the shell sees one word: a break with a backslash inside quotes would become part of it.
_SHELL_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+|['"].*""")


def plain(line: Line) -> str:
    """The text of a line without its styles."""
    return "".join(span.text for span in line)


def cells(text: str) -> int:
    """Columns that a text takes on a terminal; East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def cropped(text: str, columns: int) -> str:
    """The text, or as much of its beginning as fits with three dots."""
    if cells(text) <= columns:
        return text
    return f"{text[: _fitting(text, max(columns - 3, 1))]}..."


def padded(text: str, columns: int) -> str:
    """The text with spaces up to a column."""
    return f"{text}{' ' * (columns - cells(text))}"


def flow(
    head: Sequence[Span], body: Sequence[Span], *, hang: int, width: int, advice: bool = False
) -> Iterator[Line]:
    """`head`, then `body` broken at words; lines after the first are indented by `hang`.

    A word that is longer than a line is broken after a comma or a slash, or anywhere. In `advice` a
    command, in backticks or known by its first word, is broken between its words with a backslash:
    it can be pasted.
    """
    line = [Span(printable(span.text), span.style) for span in head]
    column = sum(cells(span.text) for span in line)
    for at, token in enumerate(_tokens(body, advice)):
        gap, start = (token.gap if at else ""), 0
        while not _fits(token.text, start, width - column - len(gap)):
            if column <= hang:
                piece, start = _split(token, start, width - column)
                line.append(Span(piece, token.style))
            yield tuple(line)
            line, column, gap = [Span(" " * hang)], hang, ""
        line.append(Span(gap + token.text[start:], token.style))
        column += cells(line[-1].text)
    yield tuple(line)


def _tokens(body: Sequence[Span], advice: bool) -> Iterator[_Token]:
    for span in body:
        text = printable(span.text)
        if advice and is_command(text):
            yield _Token("", text.removeprefix("$ "), span.style, True)
            continue
        for match in (_ADVICE if advice else _WORD).finditer(text):
            yield _Token(match[1], match[2].replace(GLUE, " "), span.style, " " in match[2])


def _fits(text: str, start: int, room: int) -> bool:
    # The length first: a text of a megabyte is not measured again for each of its lines.
    return len(text) - start <= max(0, 8 * room) and cells(text[start:]) <= room


def _split(token: _Token, start: int, room: int) -> tuple[str, int]:
    """The longest piece from `start` that may stand on a line of `room` columns; the next start."""
    window = token.text[start : start + 8 * room]
    if token.command:
        ends = [m.end() for m in _SHELL_WORD.finditer(window)]
        end = max((end for end in ends if cells(window[:end]) + 2 <= room), default=0)
        if end:
            spaces = len(window[end:]) - len(window[end:].lstrip())
            return f"{window[:end]} \\", start + end + spaces
    end = _fitting(window, room)
    end = max(window.rfind(mark, 0, end) for mark in ",/") + 1 or end
    return window[:end], start + end


def _fitting(text: str, room: int) -> int:
    used = 0
    for at, char in enumerate(text):
        used += cells(char)
        if used > room and at:
            return at
    return len(text)
