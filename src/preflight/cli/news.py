"""Lines of active work in words for a terminal, while it goes on."""

from __future__ import annotations

import json
from typing import Any


def news_of(probe: str, line: str) -> str:
    """What a line of a question's answer says; "" for one that is no news."""
    if probe == "micro-train":
        from preflight.cli.training import told_of as told_of_training

        return told_of_training(_decoded(line))
    if probe == "stress":
        from preflight.cli.stress import told_of

        return told_of(_decoded(line))
    if probe == "nccl-bench":
        from preflight.cli.benches import told_of as told_of_bench

        return told_of_bench(_decoded(line))
    if probe == "io-bench":
        from preflight.cli.storing import told_of as told_of_storage

        return told_of_storage(_decoded(line))
    if probe == "objects":
        from preflight.cli.objects import told_of as told_of_objects

        return told_of_objects(_decoded(line))
    return ""


def begins(line: str) -> bool:
    """Whether it begins a part that takes minutes: an axis of a sweep."""
    return '"kind":"sweep"' in line[:80]


def _decoded(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
