"""Everything that --from names, at once and in memory."""

from __future__ import annotations

import io
from pathlib import Path

from msgspec import Struct

from preflight.model import Raw
from preflight.transports.joined import Bad
from preflight.transports.recorded import open_inputs


class Recorded(Struct):
    """The raws of each host. `bad`: (file, why) where a file was refused or is damaged; `notes`:
    what was left out."""

    hosts: dict[str, list[Raw]]
    bad: Bad
    notes: list[str]


def recorded(*specs: str | Path, stdin: bytes = b"") -> Recorded:
    """What `--from SPEC` for each of the specs reads."""
    opened = open_inputs([str(spec) for spec in specs], io.BytesIO(stdin))
    hosts = dict(opened.hosts())
    return Recorded(hosts, opened.bad(), opened.notes())
