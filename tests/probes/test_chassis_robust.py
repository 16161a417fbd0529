"""Hostile and broken text: nothing but ParseError, and no long wait."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.probes.dcgm.diag import dcgmi_diag
from preflight.probes.dmidecode import dmidecode
from preflight.probes.edac import edac
from preflight.probes.ipmi.sdr import ipmi_sdr
from preflight.probes.ipmi.sel import ipmi_sel
from tests.conftest import SAMPLES

READERS = (dcgmi_diag, dmidecode, edac, ipmi_sdr, ipmi_sel)
LINES = [
    line
    for folder in ("dcgmi_diag", "ipmi_sdr")
    for path in sorted((SAMPLES / folder).iterdir())
    for line in path.read_text().splitlines()
] + [
    "   1 | 06/14/2023 | 10:01:17 | Fan FAN1 | Lower Critical going low | Asserted",
    "  ff | 99/99/9999 | 99:99:99 PM | x | y | Deasserted",
    "mc0/ce_count:1", "mc0/dimm0/dimm_ce_count:x", "mc0/csrow0/ch0_ce_count:3", "end",
    "Handle 0x0020, DMI type 17, 92 bytes", "\tSize: 64 GB", "\tSpeed: 5600 MT/s", "Memory Device",
    "PSU1_Status | 0x0 | discrete | 0x0980| na | na | na | na | na | na",
]  # fmt: skip


def reads(reader: Callable[[str], Any], text: str) -> None:
    with suppress(ParseError):
        reader(text)


@pytest.mark.parametrize("reader", READERS)
@given(lines=st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=30))
def test_any_mixture_of_lines(reader: Callable[[str], Any], lines: list[str]) -> None:
    reads(reader, "\n".join(lines))


@pytest.mark.parametrize("reader", READERS)
@given(text=st.text(alphabet="|+-: 0x.aFGPUpsmc/\t\n", max_size=200))
def test_any_text(reader: Callable[[str], Any], text: str) -> None:
    reads(reader, text)


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["Pass", "Fail", "Skip"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["test_categories", "tests", "results", "status", "warnings", "gpu_ids", "entity_id",
             "entity_group", "name", "category", "test_summary", "info", "error_id", "metadata",
             "entity_groups", "entities", "iterations", "runtime_error", "version"]),
        inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(inner=_JSON)
def test_any_json(inner: Any) -> None:
    reads(dcgmi_diag, json.dumps({"DCGM Diagnostic": inner}))
    reads(dcgmi_diag, json.dumps({"DCGM Diagnostic": {"test_categories": inner}}))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "line",
    ["a", "|", " | ", "1 | 06/14/2023 | 10:01:17 | a | b | Asserted", "mc0/dimm1/ce_count:1",
     "\tSize: 64 GB", "Memory Device", "mc0/dimm0/dimm_label:" + "x" * 1000, "0 |" * 300,
     '{"DCGM Diagnostic": {"status": 1}}', " " * 500, "PS1 | 32h | ok | 10.1 | AC lost"],
)  # fmt: skip
def test_a_megabyte_takes_about_a_second(reader: Callable[[str], Any], line: str) -> None:
    text = f"{line}\n" * (1_000_000 // (len(line) + 1))
    begun = time.process_time()
    reads(reader, text)
    assert time.process_time() - begun < 2.5
