"""Words in a chart: in a font whose letters are all as wide, so that what fits is known whatever
the words are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from preflight.printable import printable
from preflight.reports.layout import Span, cells, flow, plain
from preflight.reports.svg_shapes import FAINT, INK, Shape, text
from preflight.units import number

#: Of a letter, as a share of the size of the font: the widest of common ones.
_LETTER = 0.61
#: What a reader sees of a name at once; a tip has all of it.
_TIP = 400


def wide(words: str, size: float) -> float:
    """How much room a text takes."""
    return cells(printable(words)) * size * _LETTER


def word(
    x: float, y: float, words: str, *, size: float = 10, anchor: str = "start", fill: str = INK,
    bold: bool = False, room: float = math.inf,
) -> Shape:  # fmt: skip
    """A text whose letters stand on `y`. Where it needs more than `room` its middle is left out,
    and all of it is told where a pointer rests on it."""
    shown = short(words, room, size)
    drawn = text(x, y, shown, size=size, anchor=anchor, fill=fill, mono=True,
                 weight="bold" if bold else "normal")  # fmt: skip
    markup = drawn.markup
    if shown != printable(words):
        tip = escape(short(words, _TIP, 1 / _LETTER))
        markup = f"<g><title>{tip}</title>{markup}</g>"
    reach = wide(shown, size) * {"start": 1.0, "middle": 0.5}.get(anchor, 0.0)
    return Shape(markup, x + reach, drawn.bottom)


def short(words: str, room: float, size: float) -> str:
    """The text, or its beginning and its end: names of ranks and files differ there."""
    shown = printable(words)
    if wide(words, size) <= room:
        return shown
    most = max(int(room / (size * _LETTER)), 5)
    half = (most - 3) // 2
    return f"{_head(shown, most - 3 - half)}...{_head(shown[::-1], half)[::-1]}"


def _head(shown: str, room: int) -> str:
    used = 0
    for at, char in enumerate(shown[: room + 1]):
        used += cells(char)
        if used > room:
            return shown[:at]
    return shown[:room]


def paragraph(
    x: float, top: float, words: str, room: float, *, size: float = 11, fill: str = FAINT,
    bold: bool = False,
) -> Iterator[Shape]:  # fmt: skip
    """A text on as many lines as it needs, twelve at most."""
    if not words:
        return
    columns = max(int(room / (size * _LETTER)), 8)
    y = top + size
    for line in list(flow([], [Span(words[: 12 * columns])], hang=0, width=columns))[:12]:
        yield word(x, y, plain(line), size=size, fill=fill, bold=bold)
        y += round(1.4 * size)


def unit_of(longest_s: float) -> tuple[str, float]:
    """Seconds, or milliseconds where all are few: the word and how many are a second."""
    return ("s", 1.0) if longest_s >= 10 else ("ms", 1e3)


def amount(seconds: float, scale: float) -> str:
    """Four digits of it; ? where it is not told."""
    return number(seconds * scale, 4) if math.isfinite(seconds) else "?"
