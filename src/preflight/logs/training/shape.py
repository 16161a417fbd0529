"""Lines of one shape: what is left of a line without its figures, and its figures in their order.

The figures of a million lines of one shape are had with a few calls: where the first line has a
value, there all have it.
"""

from __future__ import annotations

from msgspec import Struct

_FIGURES = b"0123456789.+-eE"
#: What differs between lines of one shape: digits, signs, padding, what bars are drawn with.
_DROPPED = (
    b"0123456789.,+- \t#=>\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\xe2\x96"
)
_TO_FIGURES = bytes(one if one in _FIGURES else 0x20 for one in range(256))


def shapes(joined: bytes) -> tuple[list[bytes], int]:
    """One for each line of a text that ends in a newline, and how many lines these are; where all
    have the same shape it is there once."""
    found = joined.translate(None, _DROPPED)
    count = found.count(b"\n")
    first = found[: found.find(b"\n") + 1]
    if count and count * len(first) == len(found) and first * count == found:
        return [first[:-1]], count
    told = found.split(b"\n")
    told.pop()
    return told, count


def figures(joined: bytes) -> list[str]:
    """All runs of what figures are written with, in order; a lone `e` is one of them. Thousands'
    commas are taken out; one before an `e`, or a sign, parts two words."""
    if b"," in joined:
        joined = joined.replace(b",e", b" e").replace(b",-", b" -").replace(b",E", b" E")
    return joined.translate(_TO_FIGURES, b",").decode("ascii").split()


class Place(Struct, frozen=True):
    """Where a value stands: figure -> factor; the value is their sum. A duration has three."""

    name: str
    parts: tuple[tuple[int, float], ...]
    inverse: bool = False


def column(place: Place, found: list[str], width: int) -> list[float]:
    """The value of each line; ValueError where a figure is none."""
    total: list[float] | None = None
    for at, factor in place.parts:
        texts = found[at::width]
        if texts[0] == texts[-1] and texts.count(texts[0]) == len(texts):  # it never changes
            values = [float(texts[0]) * factor] * len(texts)
        else:
            values = list(map(float, texts))
            if factor != 1.0:
                values = [one * factor for one in values]
        total = values if total is None else [a + b for a, b in zip(total, values, strict=True)]
    if total is None:
        return []
    return [1 / one if one else float("nan") for one in total] if place.inverse else total


def place_of(line: bytes, start: int, text: str) -> int | None:
    """Which figure of the line begins at the byte `start` and reads `text`; None where it is glued
    to another, or is none."""
    at = len(figures(line[:start]))
    whole = figures(line)
    return at if at < len(whole) and whole[at] == text.replace(",", "") else None
