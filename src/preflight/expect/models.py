"""What a GPU model is by design: the rows of checks/data/gpus.yaml."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from preflight import datafiles, strict_yaml
from preflight.facts.design import Design
from preflight.kept import kept
from preflight.model import NOT_IN_INPUT, Known, Missing

_TABLE = "checks/data/gpus.yaml"


class Model(Design, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row; `match` is searched in nvidia-smi's product name."""

    match: str


@cache
def models() -> tuple[Model, ...]:
    """All rows in their order; UsageError or ValidationError where the table is out of order."""
    path = datafiles.root() / _TABLE
    place = path.parent / "__pycache__" / "gpus.msgpack"
    return kept(place, tuple[Model, ...], [path, Path(__file__)], lambda: _read(path))


def _read(path: Path) -> tuple[Model, ...]:
    rows = strict_yaml.load(path.read_text(encoding="utf-8"), _TABLE)["rows"]
    return tuple(msgspec.convert([dict(row) for row in rows], list[Model]))


@cache
def _model(product: str) -> Known[Model]:
    found = next((row for row in models() if re.search(row.match, product)), None)
    return found or Missing("not-applicable", f"{product} has no row in {_TABLE}; add one")


def model_of(product: Known[str]) -> Known[Model]:
    """The row of a product name as nvidia-smi prints it."""
    if isinstance(product, Missing):
        return NOT_IN_INPUT if product.kind == "not-in-input" else product
    return _model(product)
