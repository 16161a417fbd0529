"""The machine as it is drawn: a tree of what hangs on what, and a table of links."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.model import Map


def map_of(host: Host) -> Map:
    """What of the host can be drawn, and what cannot be told here."""
    return Map()
