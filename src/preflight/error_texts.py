"""Error texts of training programs -> their causes, the root before its echoes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct, convert

from preflight import datafiles, strict_yaml

_STAGES = ("hardware", "cause", "echo")
#: Places of one pattern that are looked at: a thousand ranks print the same line.
_PLACES = 50


class ErrorText(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of checks/data/error_texts.yaml, whose head explains the fields."""

    text: str
    patterns: tuple[str, ...]
    stage: str
    cause: str
    next: tuple[str, ...]
    hardware_if: str = ""
    runbook: str = ""


class Hit(Struct, frozen=True):
    """A row found in a text: the line (from 1) where it stands first, and that line."""

    row: ErrorText
    line: int
    shown: str
    length: int


Found = tuple[int, int, ErrorText]  # length, start, row


@cache
def rows() -> tuple[ErrorText, ...]:
    """The table, as it is declared."""
    path = datafiles.root() / "checks" / "data" / "error_texts.yaml"
    document = strict_yaml.load(path.read_text(encoding="utf-8"), "checks/data/error_texts.yaml")
    return convert(document["rows"], tuple[ErrorText, ...])


#: A blank of a pattern, outside of a [class].
_BLANK = re.compile(r" (?![^\[\]]*\])")


@cache
def _patterns() -> tuple[tuple[ErrorText, re.Pattern[str]], ...]:
    # Not IGNORECASE: Python would then look at every character with every pattern.
    return tuple(
        (row, re.compile(_BLANK.sub(r"\\s{1,40}", pattern)))
        for row in rows()
        for pattern in row.patterns
    )


def find(text: str) -> list[Hit]:
    """All rows that the text holds: hardware, causes, echoes; in each the first line first.

    Where patterns fit overlapping places the longest fit counts and the others do not.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a few foreign letters grow when they are made small
        text = lowered
    found = [
        (match.end() - match.start(), match.start(), row)
        for row, pattern in _patterns()
        for _, match in zip(range(_PLACES), pattern.finditer(lowered), strict=False)
    ]
    first: dict[str, tuple[int, int, ErrorText]] = {}
    for length, start, row in _longest(found):
        if row.text not in first or start < first[row.text][0]:
            first[row.text] = (start, length, row)
    hits = [_hit(text, *place) for place in first.values()]
    return sorted(hits, key=lambda hit: (_STAGES.index(hit.row.stage), hit.line, -hit.length))


def _longest(found: Iterable[Found]) -> Iterator[Found]:
    """Those that no longer one overlaps."""
    begins: list[int] = []
    ends: list[int] = []
    for length, start, row in sorted(found, key=lambda one: (-one[0], one[1])):
        at = bisect_right(begins, start)
        before = at > 0 and ends[at - 1] > start
        if before or (at < len(begins) and begins[at] < start + length):
            continue
        begins.insert(at, start)
        ends.insert(at, start + length)
        yield length, start, row


def _hit(text: str, start: int, length: int, row: ErrorText) -> Hit:
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    line = text[begin : len(text) if end < 0 else end]
    return Hit(row, text.count("\n", 0, start) + 1, line.strip(), length)
