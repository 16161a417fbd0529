"""The table of renderers: formats and suffixes, and what holds for all of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from preflight.errors import UsageError
from preflight.model import Report
from preflight.reports import FILES_ONLY, RENDERERS, SUFFIXES, render
from tests.reports.built import host, one_host, report, rich


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        render(report(), "yaml")
    assert "'yaml'" in caught.value.what
    assert "text|json|jsonl|junit|markdown" in caught.value.hint


def test_every_suffix_names_a_renderer() -> None:
    assert set(SUFFIXES.values()) == {*RENDERERS, *FILES_ONLY}


@pytest.mark.parametrize("fmt", RENDERERS)
@pytest.mark.parametrize("told", [report(), report(host("node-01")), one_host(), rich()])
def test_every_format_ends_in_a_line_end_and_can_be_encoded(fmt: str, told: Report) -> None:
    text = "".join(render(told, fmt))
    assert text.endswith("\n")
    assert text.isascii()


@pytest.mark.parametrize("fmt", RENDERERS)
def test_rendering_prints_nothing(fmt: str, capsys: pytest.CaptureFixture[str]) -> None:
    list(render(rich(), fmt))
    assert capsys.readouterr() == ("", "")


def test_a_renderer_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, preflight.reports as r; "
        "early = [m for m in (*r.RENDERERS.values(), *r.FILES_ONLY.values()) if m in sys.modules]; "
        "sys.exit(bool(early) or 'xml.etree.ElementTree' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
