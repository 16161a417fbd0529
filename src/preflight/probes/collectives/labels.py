"""What launchers put before each line, and the rank that it tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from preflight.benchmark_signatures import BEHIND_WORDS, LABEL
from preflight.errors import ParseError

_LABEL = re.compile(rf"[ \t]*{LABEL}")
_RANK = re.compile(r"(?:,|default|rank|^[ \t]*\[)(\d{1,6})\]|(?:^|[ \t])(\d{1,6}): ?$")


class Labelled(NamedTuple):
    """A line without its label; rank -1: there is none."""

    number: int
    rank: int
    text: str


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """Of a log of a thousand runs each is looked into."""
    return text.split("\n")


def labelled(text: str, begin: int = 1) -> Iterator[Labelled]:
    """All lines from `begin` on that are not blank, numbered from 1."""
    for number, line in enumerate(islice(_lines(text), begin - 1, None), begin):
        if not line or line.isspace():
            continue
        found = _LABEL.match(line)
        if found is None or not found[0].strip():
            yield Labelled(number, -1, line)
            continue
        rank = _RANK.search(found[0])
        told = int(rank[1] or rank[2]) if rank else -1
        yield Labelled(number, told, line[found.end() :])


def behind_words(text: str, tool: str) -> ParseError | None:
    """Where a line of the tool stands behind something that is no label of a known launcher."""
    found = re.search(BEHIND_WORDS[tool], text, re.MULTILINE)
    if found is None:
        return None
    before = found[0].partition("#")[0][:60]
    what = f"a table of {tool} behind {before!r}, which no known launcher puts there: take it off "
    line = text.count("\n", 0, found.start()) + 1
    return ParseError(f"{what}with `cut -c{len(found[0].partition('#')[0]) + 1}-`", line)
