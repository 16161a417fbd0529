"""Each renderer's whole output for one rich report. `UPDATE_GOLDEN=1 pytest` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from preflight import reports
from preflight.reports import json
from preflight.reports.compare import compare as compare_reports
from tests.reports import built, fleet

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CASES = {
    "report.json": {"fmt": "json"},
    "report.facts.json": {"fmt": "json", "facts": True},
    "report.jsonl": {"fmt": "jsonl"},
    "report.xml": {"fmt": "junit"},
    "report.md": {"fmt": "markdown"},
    "report.txt": {"fmt": "text"},
    "report.v.txt": {"fmt": "text", "verbose": 1},
    "report.vv.txt": {"fmt": "text", "verbose": 2},
    "report.q.txt": {"fmt": "text", "quiet": True},
}
FLEET = {"fleet.txt": "text", "fleet.md": "markdown"}


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_the_rich_report_reads_as_the_golden_file(name: str) -> None:
    compare(name, "".join(reports.render(built.rich(), **CASES[name])))  # type: ignore[arg-type]


def test_a_single_host_reads_as_the_golden_file() -> None:
    compare("one_host.txt", "".join(reports.render(built.one_host(), "text")))


@pytest.mark.parametrize("name", FLEET)
def test_many_hosts_read_as_the_golden_file(name: str) -> None:
    told = fleet.cluster()
    told.changes = compare_reports(told, fleet.yesterday())
    compare(name, "".join(reports.render(told, FLEET[name])))


def test_the_stored_report_renders_as_the_one_in_memory() -> None:
    stored = json.read((GOLDEN / "report.facts.json").read_bytes())
    for fmt in reports.RENDERERS:
        assert list(reports.render(stored, fmt)) == list(reports.render(built.rich(), fmt))


@pytest.mark.parametrize("name", [*CASES, *FLEET, "one_host.txt"])
def test_no_golden_file_holds_a_character_that_a_terminal_obeys(name: str) -> None:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    assert [char for char in text if char != "\n" and not 32 <= ord(char) < 127] == []
