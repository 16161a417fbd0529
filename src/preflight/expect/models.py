"""What a GPU model is by design: the rows of checks/data/gpus.yaml."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.kept import kept
from preflight.model import NOT_IN_INPUT, Known, Missing

_TABLE = "checks/data/gpus.yaml"
_NOT_PROMISED = Missing("not-applicable", "the model promises none")


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row; see the head of the table. What a row leaves out the model does not promise."""

    match: str
    generation: str
    form: str
    repairs: Known[str] = _NOT_PROMISED
    nvlinks: Known[int] = _NOT_PROMISED
    nvlinks_max: Known[int] = _NOT_PROMISED
    nvlink_gbps: Known[float] = _NOT_PROMISED
    bridged: bool = False
    nvswitch: bool = False
    pcie_gen: Known[int] = _NOT_PROMISED
    pcie_width: Known[int] = _NOT_PROMISED
    power_w: Known[float] = _NOT_PROMISED
    memory_gbps: Known[float] = _NOT_PROMISED
    source: str


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
