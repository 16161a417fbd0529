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
# What the shell sees as one word, spaces in quotes included; what is never closed goes to the end.
_SHELL_WORD = re.compile(r"""(?:[^\s'"\\]|\\.?|'[^']*(?:'|\Z)|"[^"]*(?:"|\Z))+""")

_QUOTE = re.compile("['\"]")


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
    command, in backticks, known by its first word, or that after a colon, is broken between its
    words with a backslash, and never within one: it can be pasted, if need be from a line that is
    wider than `width`.
    """
    line = [Span(printable(span.text), span.style) for span in head]
    column = sum(cells(span.text) for span in line)
    for at, token in enumerate(_tokens(body, advice)):
        gap, start = (token.gap if at else ""), 0
        while not _fits(token.text, start, width - column - len(gap)):
            if column <= hang:
                piece, start = _split(token, start, width - column)
                line.append(Span(piece, token.style))
                column += cells(piece)
                if start == len(token.text):
                    break
            yield tuple(line)
            line, column, gap = [Span(" " * hang)], hang, ""
        if start < len(token.text):
            line.append(Span(gap + token.text[start:], token.style))
            column += cells(line[-1].text)
    yield tuple(line)


def _tokens(body: Sequence[Span], advice: bool) -> Iterator[_Token]:
    for span in body:
        text = printable(span.text)
        command = _command_in(text) if advice else ""
        text = text.removesuffix(command)
        for match in (_ADVICE if advice else _WORD).finditer(text.rstrip() if command else text):
            yield _Token(match[1], match[2].replace(GLUE, " "), span.style, " " in match[2])
        if command:
            yield _Token(" " if text else "", command.removeprefix("$ "), span.style, True)


def _command_in(text: str) -> str:
    """The text where it is a command, or the command that a sentence ends in."""
    if is_command(text):
        return text
    tail = text.rpartition(": ")[2]
    return tail if is_command(tail) else ""


def _fits(text: str, start: int, room: int) -> bool:
    # The length first: a text of a megabyte is not measured again for each of its lines.
    return len(text) - start <= max(0, 8 * room) and cells(text[start:]) <= room


def _split(token: _Token, start: int, room: int) -> tuple[str, int]:
    """The longest piece from `start` that may stand on a line of `room` columns; the next start."""
    if token.command and (end := _words(token.text, start, room)):
        following = len(token.text) - len(token.text[end:].lstrip())
        more = " \\" if following < len(token.text) else ""
        return token.text[start:end] + more, following
    window = token.text[start : start + 8 * room]
    end = _fitting(window, room)
    end = max(window.rfind(mark, 0, end) for mark in ",/") + 1 or end
    return window[:end], start + end


def _words(text: str, start: int, room: int) -> int:
    """The end of as many of the shell's words as fit beside a backslash: at least of one that has
    quotes; 0 where a word without is too long."""
    end = 0
    for word in _SHELL_WORD.finditer(text, start):
        fits = word.end() - start <= 8 * room and cells(text[start : word.end()]) + 2 <= room
        if not fits and (end or not _QUOTE.search(word[0])):
            break
        end = word.end()
        if not fits:
            break
    return end


def _fitting(text: str, room: int) -> int:
    used = 0
    for at, char in enumerate(text):
        used += cells(char)
        if used > room and at:
            return at
    return len(text)
