"""Logs as tests write them, and what is read from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.facts.series import Log, Series
from preflight.logs.training import log
from tests.conftest import SAMPLES


def quiet(_: str) -> None:
    """No news."""


def read(folder: Path, text: str | bytes, name: str = "train.log") -> Log:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return log.read(path, quiet)


def of_sample(name: str) -> Log:
    return log.read(SAMPLES / "training_log" / f"{name}.log", quiet)


def only(found: Log) -> Series:
    (series,) = found.series
    return series


def at(series: Series, row: int) -> dict[str, float]:
    """A row, without what it lacks."""
    values = {name: series.values(name)[row] for name in series.columns}
    return {name: value for name, value in values.items() if value == value}


def is_row(series: Series, row: int, **expected: float) -> None:
    """Whether the row has these values; `__` in a name is a slash."""
    found = at(series, row)
    for name, value in expected.items():
        assert found.get(name.replace("__", "/")) == pytest.approx(value), (name, found)
