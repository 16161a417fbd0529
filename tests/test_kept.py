"""Checks kept beside their YAML: the same checks, and only as long as nothing has changed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from preflight import datafiles
from preflight.expect.models import models
from preflight.judge.load import DOMAINS, _table, load


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped checks that may be written to."""
    root = datafiles.root()
    for file in (root / "checks").rglob("*.yaml"):
        to = tmp_path / file.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(file.read_bytes())
    monkeypatch.setattr(datafiles, "root", lambda: tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "checks"


def test_the_second_reading_gives_the_same_checks_without_yaml(
    catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(DOMAINS).checks
    monkeypatch.setattr("preflight.strict_yaml.load", None)
    assert load(DOMAINS).checks == first


def test_a_changed_file_is_read_anew(catalogue: Path) -> None:
    load(["pcie"])
    file = catalogue / "pcie.yaml"
    file.write_text(file.read_text().replace("PCIe link at full width", "Another title"))
    assert "Another title" in {check.title for check in load(["pcie"]).checks}


def test_a_changed_table_is_read_anew(catalogue: Path) -> None:
    before = load(["gpu"]).checks
    table = catalogue / "data" / "sxid.yaml"
    text = table.read_text()
    os.utime(table, ns=(1, 1))
    table.write_text(text.replace("title: link training fault", "title: another"))
    _table.cache_clear()
    after = load(["gpu"]).checks
    assert [one.id for one in after if one not in before] == ["gpu.sxid.20034"]


def test_a_damaged_one_is_read_anew(catalogue: Path) -> None:
    before = load(["gpu"]).checks
    (catalogue / "__pycache__" / "gpu.msgpack").write_bytes(b"not what was written")
    assert load(["gpu"]).checks == before


def test_a_model_that_lacks_a_datum_lacks_it_as_kept(catalogue: Path) -> None:
    read = models.__wrapped__
    assert read() == read()
    assert (catalogue / "data" / "__pycache__" / "gpus.msgpack").exists()


def test_nothing_is_written_where_python_may_not_write_byte_code(
    catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    load(["pcie"])
    assert not (catalogue / "__pycache__").exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(catalogue: Path) -> None:
    (catalogue / "__pycache__").write_text("a file in its place")
    assert load(["pcie"]).checks
