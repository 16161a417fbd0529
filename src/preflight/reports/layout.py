"""Styled text on lines that fit: what `text` yields and `cli` paints."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from preflight.printable import printable
from preflight.reports.commands import SHELL_WORD, parts

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
    #: It is broken between its words alone; its comment stands behind it, or on lines above.
    command: bool = False
    comment: str = ""


#: A space at which no line is broken.
GLUE = "\xa0"
#: The gap before what begins a line of its own.
_NEW_LINE = "\n"
_WORD = re.compile(r"([ ]*)([^ ]+)")
# A command in backticks is one token, so that it stays on one line where it can.
_ADVICE = re.compile(r"([ ]*)([^ `]*`[^`]*`[^ `]*|[^ ]+)")


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

    A word that is longer than a line is broken after a comma or a slash, or anywhere. In `advice`
    no word is: it may be pasted, so its line is rather wider than `width`. A command there, known
    by its first word or in backticks, goes on after a backslash, and its comment is above it where
    it does not fit behind.
    """
    line = [Span(printable(span.text), span.style) for span in head]
    column = sum(cells(span.text) for span in line)
    for at, token in enumerate(_with_comments(_tokens(body, advice), width - hang)):
        gap, start = (token.gap if at else ""), 0
        while (column > hang and token.gap == _NEW_LINE) or not _fits(
            token.text, start, width - column - len(gap)
        ):
            if column <= hang:
                piece, start = _split(token, start, width - column, advice)
                line.append(Span(piece, token.style))
                column += cells(piece)
                if start == len(token.text):
                    break
            yield tuple(line)
            line, column, gap = [Span(" " * hang)], hang, ""
        if start < len(token.text):
            line.append(Span(gap.strip("\n") + token.text[start:], token.style))
            column += cells(line[-1].text)
    yield tuple(line)


def _tokens(body: Sequence[Span], advice: bool) -> Iterator[_Token]:
    for span in body:
        text = printable(span.text)
        if not advice or ("`" in text and not text.startswith("$ ")):
            yield from _words_of(text, span.style, _ADVICE if advice else _WORD)
            continue
        gap = ""
        for part in parts(text):
            if part.command:
                yield _Token(gap, part.text.rstrip(), span.style, True, part.comment)
            else:
                yield from _words_of(part.text.rstrip(), span.style, _WORD, gap)
            gap = " "


def _words_of(text: str, style: Style, word: re.Pattern[str], first: str = "") -> Iterator[_Token]:
    for match in word.finditer(text):
        gap = match[1] if match.start() else first or match[1]
        yield _Token(gap, match[2].replace(GLUE, " "), style, " " in match[2])


def _with_comments(tokens: Iterable[_Token], room: int) -> Iterator[_Token]:
    """Commands with the comment behind them, or after lines of it."""
    for token in tokens:
        whole = f"{token.text}   # {token.comment}"
        if not token.comment or cells(whole) <= room:
            yield token._replace(text=whole if token.comment else token.text, comment="")
            continue
        for line in textwrap.wrap(token.comment, max(room - 2, 1), break_long_words=False,
                                  break_on_hyphens=False):  # fmt: skip
            yield _Token(_NEW_LINE, f"# {line}", "dim")
        yield token._replace(gap=_NEW_LINE, comment="")


def _fits(text: str, start: int, room: int) -> bool:
    # The length first: a text of a megabyte is not measured again for each of its lines.
    return len(text) - start <= max(0, 8 * room) and cells(text[start:]) <= room


def _split(token: _Token, start: int, room: int, advice: bool) -> tuple[str, int]:
    """The longest piece from `start` that may stand on a line of `room` columns; the next start."""
    if token.command and (end := _words(token.text, start, room)):
        following = len(token.text) - len(token.text[end:].lstrip())
        more = " \\" if following < len(token.text) else ""
        return token.text[start:end] + more, following
    if advice:
        return token.text[start:], len(token.text)
    window = token.text[start : start + 8 * room]
    end = _fitting(window, room)
    end = max(window.rfind(mark, 0, end) for mark in ",/") + 1 or end
    return window[:end], start + end


def _words(text: str, start: int, room: int) -> int:
    """The end of as many of the shell's words as fit beside a backslash, at least of one."""
    end = 0
    for word in SHELL_WORD.finditer(text, start):
        fits = word.end() - start <= 8 * room and cells(text[start : word.end()]) + 2 <= room
        if not fits and end:
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
