"""The answer to a site's own question: its text, lines and first number."""

from __future__ import annotations

import re

from preflight.facts.host import SiteAnswer
from preflight.model import Missing

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def site_answer(text: str) -> SiteAnswer:
    """Any text is an answer; only `number` may be missing from it."""
    match = _NUMBER.search(text)
    return SiteAnswer(
        text=text.strip(),
        lines=len(text.splitlines()),
        number=float(match.group()) if match else Missing("unreadable", "no number in the answer"),
    )
