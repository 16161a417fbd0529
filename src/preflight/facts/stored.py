"""A stored report among other inputs."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import Report


class StoredReport(Struct):
    """The report of a file."""

    source: str
    report: Report
