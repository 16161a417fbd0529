"""What a model of network adapter can do: the rows of checks/data/nics.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.kept import kept

_TABLE = "checks/data/nics.yaml"


class Adapter(Struct, frozen=True, forbid_unknown_fields=True):
    """One row, whose keys are told at the table's head; `gbits` in Gbit/s of one port."""

    hca: str
    model: str
    gbits: float
    function: bool = False


@cache
def _adapters() -> dict[str, Adapter]:
    path = datafiles.root() / _TABLE
    place = path.parent / "__pycache__" / "nics.msgpack"
    rows = kept(place, tuple[Adapter, ...], [path, Path(__file__)], lambda: _read(path))
    return {row.hca: row for row in rows}


def _read(path: Path) -> tuple[Adapter, ...]:
    rows = strict_yaml.load(path.read_text(encoding="utf-8"), _TABLE)["rows"]
    return tuple(msgspec.convert([dict(row) for row in rows], list[Adapter]))


def adapter(hca: object) -> Adapter | None:
    """The row of a type such as MT4129; None where there is none, or no type is told."""
    return _adapters().get(hca) if isinstance(hca, str) else None
