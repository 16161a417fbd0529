"""The shapes of a drawing: what each is as SVG, and how far it reaches."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from preflight.printable import printable
from preflight.reports.layout import cells

#: Names that every viewer has something for.
FONT = "Helvetica, Arial, sans-serif"
_MONO = "Menlo, Consolas, monospace"
WIDTH = 1000.0
#: Of a letter, as a share of the size of the font: the widest of common fonts, on average.
_LETTER, _BOLD = 0.56, 0.65
INK, FAINT, FAULT = "#1b1f24", "#57606a", "#b3261e"


class Shape(NamedTuple):
    """One element, and its right and lower edge."""

    markup: str
    right: float
    bottom: float


def letters(words: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is."""
    return cells(words) * size * (_BOLD if bold else _LETTER)


def fitted(words: str, room: float, size: float) -> str:
    """The text, or as much of its beginning as fits with three dots."""
    shown = printable(words)
    most = max(int(room / (size * _LETTER)), 4)
    return shown if cells(shown) <= most else f"{shown[: most - 3]}..."


def text(
    x: float, y: float, words: str, *, size: float = 12, fill: str = INK, weight: str = "normal",
    anchor: str = "start", mono: bool = False,
) -> Shape:  # fmt: skip
    """A line of text whose letters stand on `y`."""
    shown = printable(words)
    style = f' font-weight="{weight}"' if weight != "normal" else ""
    style += f' text-anchor="{anchor}"' if anchor != "start" else ""
    style += f" font-family={quoteattr(_MONO)}" if mono else ""
    markup = (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{style}>'
        f"{escape(shown)}</text>"
    )
    wide = letters(shown, size)
    right = x + wide * {"start": 1.0, "middle": 0.5}.get(anchor, 0.0)
    return Shape(markup, right, y + 0.3 * size)


def box(
    x: float, y: float, width: float, height: float, *, fill: str, stroke: str = INK,
    thick: float = 1, dashed: bool = False, corner: float = 4,
) -> Shape:  # fmt: skip
    """A rectangle, its corners round."""
    dashes = ' stroke-dasharray="6 3"' if dashed else ""
    markup = (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{thick:g}"{dashes}/>'
    )
    return Shape(markup, x + width, y + height)


def path(
    points: Sequence[tuple[float, float]], *, stroke: str, thick: float, dashed: bool = False
) -> Shape:
    """Straight lines from point to point."""
    way = " ".join(f"{'L' if at else 'M'}{x:g} {y:g}" for at, (x, y) in enumerate(points))
    dashes = ' stroke-dasharray="7 3"' if dashed else ""
    markup = (
        f'<path d="{way}" fill="none" stroke="{stroke}" stroke-width="{thick:g}" '
        f'stroke-linejoin="round"{dashes}/>'
    )
    return Shape(markup, max(x for x, _ in points), max(y for _, y in points))


def wrapped(sentences: Sequence[str], x: float, top: float) -> Iterator[Shape]:
    """Sentences below each other, each under `not known`."""
    y = top + 12
    for sentence in sentences:
        shown = f"not known: {printable(sentence)}"
        for line in textwrap.wrap(shown, int((WIDTH - x) / (12 * _LETTER))):
            yield text(x, y, line, fill=FAINT)
            y += 16
