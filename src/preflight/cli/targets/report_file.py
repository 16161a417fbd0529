"""Reports of preflight as an input: those of micro-train tell where a step goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.cli.stored import stored
from preflight.errors import UsageError
from preflight.facts.stored import StoredReport

_SCHEMA = re.compile(rb'^\s*\{\s*"schema"\s*:\s*"preflight\.report/')


def sniff(head: bytes, name: str) -> bool:
    """By its schema, which stands first."""
    return bool(_SCHEMA.match(head[:400]))


def read(path: Path, tell: Callable[[str], None]) -> StoredReport:
    """UsageError where it is none after all, or holds conclusions and nothing to conclude from."""
    report = stored(path)
    if report.command == "diagnose-step-time":
        raise UsageError(
            "it is a report of diagnose-step-time: `preflight report FILE` shows it again; a look "
            "at processes is judged again from its capture (--save look.capture.gz)"
        )
    return StoredReport(str(path), report)
