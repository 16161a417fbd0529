"""What one topic adds to the advice."""

from __future__ import annotations

from typing import NamedTuple

from preflight.model import Export


class Said(NamedTuple):
    """Variables to set, and settings better left alone with the reason."""

    exports: tuple[Export, ...] = ()
    left: tuple[str, ...] = ()


def left(*lines: str) -> Said:
    """Nothing to set, and why."""
    return Said(left=lines)
