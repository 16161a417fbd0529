"""Small runs of the harness in this process: its ranks are forked from it."""

from __future__ import annotations

import warnings
from typing import Any

from preflight.payload.training.harness import harness
from preflight.payload.training.plan import Plan

Line = dict[str, Any]
TINY = {"layers": 1, "width": 32, "hidden": 64, "length": 32, "vocabulary": 64, "steps": 12}


def told(**asked: Any) -> list[Line]:
    """All lines of a run of the tiny shape; `changes` on top of it."""
    changes = TINY | asked.pop("changes", {})
    lines: list[Line] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about itself, in the ranks
        harness(Plan(changes=changes, device="cpu", **asked), lines.append)
    return lines


def of(lines: list[Line], kind: str, **wanted: Any) -> list[Line]:
    """Those of a kind, with these values."""
    return [one for one in lines if one["kind"] == kind and one.items() >= wanted.items()]


def losses(lines: list[Line], launch: str, rank: int = 0) -> dict[int, float]:
    return {one["step"]: one["loss"] for one in of(lines, "step", launch=launch, rank=rank)}
