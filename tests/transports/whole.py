"""Everything that --from names, at once and in memory."""

from __future__ import annotations

import io
from pathlib import Path

from msgspec import Struct

from preflight.model import Raw
from preflight.transports.recorded import Bad, open_inputs


class Recorded(Struct):
    """The raws of each host. `bad`: (file, why) where a file was refused or is damaged."""

    hosts: dict[str, list[Raw]]
    bad: Bad


def recorded(*specs: str | Path, stdin: bytes = b"") -> Recorded:
    """What `--from SPEC` for each of the specs reads."""
    opened = open_inputs([str(spec) for spec in specs], io.BytesIO(stdin))
    hosts = dict(opened.hosts())
    return Recorded(hosts, opened.bad())
