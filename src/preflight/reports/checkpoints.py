"""Checkpoints as a table of a report's `measurements`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preflight.diagnosis.checkpoint.verdicts import Judged
from preflight.units import format_bytes


def checkpoint_tables(all_: Sequence[Judged]) -> list[dict[str, Any]]:
    """One table, the newest first; none of a single checkpoint, of which the finding tells all."""
    if len(all_) < 2:
        return []
    return [{"table": "checkpoints, the newest first", "rows": [_row(one) for one in all_]}]


def _row(one: Judged) -> dict[str, Any]:
    found = one.found
    return {
        "checkpoint": found.path or found.shown,
        "step": "" if found.step is None else f"{found.step:,}",
        "layout": found.layout.title if found.layout else "",
        "files": str(len(found.files)), "size": format_bytes(found.size),
        "verdict": one.finding.finding.partition(".")[2],
    }  # fmt: skip
