"""JSON documents one after the other in a text, whatever else is written between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError


def values(text: str, opening: str) -> Iterator[tuple[int, Any]]:
    """Each document that begins so, `[` or `{`, with its line. ParseError where the first of them
    is damaged; a later one that is cut is left out."""
    decoder, at, any_ = json.JSONDecoder(), 0, False
    while (at := text.find(opening, at)) >= 0:
        try:
            told, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if any_:
                return
            raise ParseError(f"it is damaged or cut: {str(error)[:120]}") from None
        any_ = True
        yield text.count("\n", 0, at) + 1, told
        at = end
