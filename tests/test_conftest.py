"""The rule for absent components, and samples as they were recorded."""

from __future__ import annotations

import pytest

from tests.conftest import require, sample, sample_bytes

XML = "nvidia_smi_xml/rtx3060_570.124.xml"


def test_an_absent_component_skips_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    require("lspci", True)
    with pytest.raises(pytest.skip.Exception, match="needs lspci"):
        require("lspci", False)


def test_an_absent_component_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    require("lspci", True)
    with pytest.raises(pytest.fail.Exception, match="lspci is missing"):
        require("lspci", False)


def test_samples_keep_their_bytes() -> None:
    assert sample(XML).encode() == sample_bytes(XML)
    assert "<gpu id=" in sample(XML)
