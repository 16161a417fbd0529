"""Lines of a style that no row of styles.py knows: `key: number` pairs that come again and again,
one of them a whole number that grows."""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct, field

from preflight.logs.training.clock import clock_of
from preflight.logs.training.layout import Layout, fill, pairs_of
from preflight.logs.training.names import Meant, meant
from preflight.logs.training.prefixes import past, rank_figure
from preflight.logs.training.shape import figures
from preflight.logs.training.styles import Style

#: Lines after which a shape counts as a style.
ENOUGH = 5
_MOST_SHAPES = 500
#: Shapes that are looked at; in a log of other words each line has its own.
_MOST_TRIES = 20_000
_MOST_DIGITS = 15
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
STYLE = Style("learned", b"", re.compile(""), "pairs")
_STEP = re.compile(
    r"\b(?P<key>step|iter|iteration|batch|update|it|global_step)s?[\s:=#\[]+(?P<value>\d{1,15})(?!\d)"
    r"(?:\s*/\s*(?P<total>\d+))?", re.IGNORECASE,
)  # fmt: skip


#: Of a shape: what stands for a number beside digits.
_NO_FIGURE = re.compile(rb"(?<![A-Za-z])(?:nan|NaN|NAN|inf|Inf|Infinity|null|None|e)(?![A-Za-z])")


class Seen(Struct):
    """Lines of one shape so far, and what each had."""

    lines: list[tuple[bytes, int, int]] = field(default_factory=list)
    whole: dict[str, list[int]] = field(default_factory=dict)


class Learner(Struct):
    """Shapes that may be of a style."""

    seen: dict[bytes, Seen] = field(default_factory=dict)
    tries: int = 0
    #: Shapes that were learned, without what stands for a number -> the key of their step.
    keys: dict[bytes, str] = field(default_factory=dict)

    def worth(self, shape: bytes, line: bytes) -> bool:
        """Whether lines of the shape may be of a style: they have two pairs."""
        if shape in self.seen:
            return True
        self.tries += 1
        return (
            len(self.seen) < _MOST_SHAPES and self.tries < _MOST_TRIES
            and len(line.translate(None, _NO_DIGITS)) > 1
            and (b":" in line or b"=" in line) and len(pairs_of(line)) > 1
        )  # fmt: skip

    def take(self, shape: bytes, told: tuple[bytes, int, int]) -> Layout | None:
        """The layout, once the shape has come often enough and something in it grows. `told`: a
        line, its number and offset."""
        line, bare = told[0], _NO_FIGURE.sub(b"", shape)
        if bare in self.keys:  # the same line, with a nan or an exponent in it
            self.seen.setdefault(shape, Seen()).lines.append(told)
            return learned(line, self.keys[bare])
        one = self.seen.setdefault(shape, Seen())
        one.lines.append(told)
        for key, value in whole_of(line).items():
            one.whole.setdefault(key, []).append(value)
        if len(one.lines) < ENOUGH:
            return None
        growing = _growing(one)
        if growing is None:
            if len(one.lines) > 4 * ENOUGH:  # the same step by several ranks, or no step at all
                del self.seen[shape]
            return None
        self.keys[bare] = growing
        return learned(line, growing)


def whole_of(line: bytes) -> dict[str, int]:
    """Whole numbers of a line by their keys; what calls itself a step comes first."""
    text, _ = past(line.decode("latin-1"))
    found = _STEP.search(text)
    told = {"": int(found["value"])} if found else {}
    for key, _, value in pairs_of(line):
        if value.isdecimal() and len(value) <= _MOST_DIGITS:
            told.setdefault(key, int(value))
    return told


def _growing(seen: Seen) -> str | None:
    """A key that never falls and takes several values: two ranks may tell the same step."""
    best = None
    for key, values in seen.whole.items():
        if len(values) < len(seen.lines):
            continue
        rises = all(a <= b for a, b in pairwise(values))
        if rises and len(set(values)) >= ENOUGH - 1:
            if key == "" or meant(key).name == "step":
                return key
            best = best or key
    return best


def learned(line: bytes, key: str) -> Layout:
    """How lines such as this are read, where `key` is the step ("" is one that is called so)."""
    text, ranks = past(line.decode("latin-1"))
    found = _STEP.search(text)
    first: list[tuple[Meant, int, str]] = []
    if key == "" and found:
        first.append((Meant("step"), found.start("value"), found["value"]))
        if found["total"]:
            first.append((Meant("total"), found.start("total"), found["total"]))
    else:
        first += [
            (Meant("step"), start, value) for name, start, value in pairs_of(line) if name == key
        ]
    return fill(
        Layout(STYLE, len(figures(line)), clock=clock_of(line), rank=rank_figure(line, ranks)),
        line, first,
    )  # fmt: skip
