"""Looks at running processes that were kept in a capture, as an input: judged again later."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.capture import Reader
from preflight.cli.targets.live import look_of
from preflight.errors import ParseError
from preflight.facts.process import KeptLooks
from preflight.model import Raw
from preflight.ship import LOOKS

_SCHEMA = re.compile(rb'^\s*\{\s*"schema"\s*:\s*"preflight\.capture/')


def sniff(head: bytes, name: str) -> bool:
    """By its schema, which stands first."""
    return bool(_SCHEMA.match(head[:400]))


def read(path: Path, tell: Callable[[str], None]) -> KeptLooks:
    """All hosts of a capture. UsageError where it is none, ParseError where it is one of another
    command."""
    reader, by_host = Reader(path), dict[str, list[Raw]]()
    asked = False
    for raw in reader:
        asked = asked or raw.probe == LOOKS
        by_host.setdefault(raw.host, []).append(raw)
    if not asked:
        raise ParseError(
            "it is a capture without a look at processes; other commands judge it "
            "(preflight run --from FILE)"
        )
    looks = [look_of(host, raws) for host, raws in by_host.items()]
    return KeptLooks(str(path), tuple(looks), reader.damage or "")
