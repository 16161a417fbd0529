"""Reports of preflight as an input: those of micro-train tell where a step goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.cli.stored import stored
from preflight.facts.stored import StoredReport

_SCHEMA = re.compile(rb'^\s*\{\s*"schema"\s*:\s*"preflight\.report/')


def sniff(head: bytes, name: str) -> bool:
    """By its schema, which stands first."""
    return bool(_SCHEMA.match(head[:400]))


def read(path: Path, tell: Callable[[str], None]) -> StoredReport:
    """UsageError where it is none after all."""
    return StoredReport(str(path), stored(path))
