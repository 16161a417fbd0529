"""The lines that the payload tells of its work, one JSON object each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError

Line = dict[str, Any]


def lines_of(text: str, form: str) -> list[Line]:
    """All of them, each with its number as `line`; the first tells that it is of this form. A last
    one that is cut is left out. Raises ParseError for what is none."""
    lines = list(_lines(text))
    if not lines or lines[0].get("preflight") != form:
        raise ParseError(f"expected the line of {form}", 1)
    return lines


def _lines(text: str) -> Iterator[Line]:
    rows = text.splitlines()
    for number, row in enumerate(rows, 1):
        try:
            told = json.loads(row)
        except (ValueError, RecursionError):
            if number == len(rows):
                return
            raise ParseError(f"expected a line of JSON, got {row[:80]!r}", number) from None
        if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
            raise ParseError("expected a line of the payload", number)
        yield {**told, "line": number}
