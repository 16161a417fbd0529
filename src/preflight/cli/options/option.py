"""One option as typer takes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Option(Struct, frozen=True):
    """One option as typer takes it."""

    kind: Any
    flags: tuple[str, ...]
    help: str
    metavar: str | None = None
    count: bool = False
