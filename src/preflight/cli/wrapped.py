"""Text in lines of a terminal's width."""

from __future__ import annotations

from collections.abc import Iterator


def wrapped(text: str, lead: str = "") -> Iterator[str]:
    """The text in lines of at most 98 characters, the first after `lead`; no word is broken."""
    import textwrap

    for line in textwrap.wrap(text, 98, initial_indent=lead, subsequent_indent=" " * len(lead),
                              break_long_words=False, break_on_hyphens=False):  # fmt: skip
        yield f"{line}\n"
