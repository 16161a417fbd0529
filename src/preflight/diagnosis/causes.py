"""The table of causes: bounds, order, what explains what, what to type. checks/data/causes.yaml."""

from __future__ import annotations

from functools import cache
from typing import Literal

from msgspec import Struct, convert

from preflight import datafiles, strict_yaml


class Cause(Struct, frozen=True, forbid_unknown_fields=True):
    """A row; the head of the file explains the fields. Bounds are shares, 0 to 1."""

    id: str
    title: str
    rank: int
    why: str
    fix: tuple[str, ...]
    runbook: str
    warn: float | None = None
    fail: float | Literal["always"] | None = None
    behind: tuple[str, ...] = ()


@cache
def causes() -> dict[str, Cause]:
    """By id, in the order of the file."""
    path = datafiles.root() / "checks" / "data" / "causes.yaml"
    document = strict_yaml.load(path.read_text(encoding="utf-8"), "checks/data/causes.yaml")
    return {row.id: row for row in convert(document["rows"], tuple[Cause, ...])}
