"""Cut, mutilated and foreign input: facts that the whole text has too, or ParseError."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, structs

from preflight.errors import ParseError
from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from tests.conftest import SAMPLES, sample

XML = sorted(path.name for path in (SAMPLES / "nvidia_smi_xml").glob("*.xml"))
TEXT = sorted(path.name for path in (SAMPLES / "nvidia_smi_q").glob("*.txt"))
RTX = sample("nvidia_smi_xml/rtx3060_570.124.xml")
A10 = sample("nvidia_smi_q/a10_535.129_row_remap_pending.txt")
BOTH = (nvidia_smi_xml, nvidia_smi_text)


def read(form: str, text: str) -> NvidiaSmi | None:
    try:
        return nvidia_smi_xml(text) if form == "xml" else nvidia_smi_text(text)
    except ParseError as error:
        assert str(error)
        return None


def leaves(record: Struct, above: str = "") -> Iterator[tuple[str, Any]]:
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, Struct) and not isinstance(value, Missing):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def places(name: str, length: int) -> list[int]:
    return random.Random(name).choices(range(length), k=50)


def test_the_samples_are_there() -> None:
    assert (len(XML), len(TEXT)) == (9, 13)


@pytest.mark.parametrize("name", XML)
def test_xml_cut_anywhere(name: str) -> None:
    text = sample(f"nvidia_smi_xml/{name}")
    whole = nvidia_smi_xml(text)
    for place in places(name, len(text)):
        found = read("xml", text[:place])
        announced = "</driver_version>" in text[:place]
        assert (found is not None) == announced
        if found:
            assert len(found.gpus) == text[:place].count("</gpu>")
            for cut, full in zip(found.gpus, whole.gpus, strict=False):
                # The warning of a corrupted infoROM stands behind the last GPU, and only of a
                # whole list is known which number each has.
                cut = structs.replace(cut, index=full.index, name=full.name)
                assert cut in (full, structs.replace(full, inforom_corrupted=NOT_IN_INPUT))
            assert found.driver.version == whole.driver.version


def same_or_missing(cut: Gpu, whole: Gpu) -> None:
    """Lists grow with the text; all else is what the whole text says, or not there."""
    for (path, value), (_, expected) in zip(leaves(cut), leaves(whole), strict=True):
        grows = path in ("name", "processes", "mig.instances", "unreadable")
        if not grows and value != expected:
            assert isinstance(value, Missing), path


@pytest.mark.parametrize("name", TEXT)
def test_text_cut_anywhere(name: str) -> None:
    text = sample(f"nvidia_smi_q/{name}")
    whole = nvidia_smi_text(text)
    for place in places(name, len(text)):
        found = read("text", text[:place])
        if found is None:
            assert place < 450, "a head or a GPU stands there"
            continue
        assert len(found.gpus) <= len(whole.gpus)
        # Where nothing tells that more should follow, the last line passes for whole.
        sure = found.attached == 8 and len(found.gpus) < 8
        for cut, full in zip(found.gpus if sure else found.gpus[:-1], whole.gpus, strict=False):
            same_or_missing(cut, full)


@pytest.mark.parametrize("name", TEXT)
def test_text_begun_anywhere(name: str) -> None:
    """A tail never takes one section's value for another's."""
    text = sample(f"nvidia_smi_q/{name}")
    whole = nvidia_smi_text(text)
    for place in places(name, len(text)):
        start = text.find("\n", place) + 1
        found = read("text", text[start:]) if start else None
        cuts = found.gpus if found else ()
        for cut, full in zip(reversed(cuts), reversed(whole.gpus), strict=False):
            for (path, value), (_, expected) in zip(leaves(cut), leaves(full), strict=True):
                if path.split(".")[0] in ("pcie", "ecc", "remap", "throttle", "temperature"):
                    assert value == expected or isinstance(value, Missing), path


@pytest.mark.parametrize("parse", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00" * 1000,
        bytes(range(256)).decode("latin-1") * 50,
        random.Random(1).randbytes(20_000).decode("latin-1"),
        "\x7fELF\x02\x01" + "\x00" * 100,
        "{}",
        "<html><body>no</body></html>",
        "<nvidia_smi_log>" * 20_000,
        "\ud800\udfff",
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n",
        "=" * 100_000,
        " : " * 100_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_junk(parse: Any, text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_the_other_tables_of_nvidia_smi_are_not_this_one() -> None:
    table = "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: 12.2 |\n"
    for parse in BOTH:
        with pytest.raises(ParseError):
            parse(table)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1), st.integers(0, 400), st.text(max_size=20))
def test_a_mutilated_report(place: float, gone: int, instead: str) -> None:
    for form, text in (("xml", RTX), ("text", A10)):
        start = int(place * len(text))
        found = read(form, text[:start] + instead + text[start + gone :])
        for gpu in found.gpus if found else ():
            known = isinstance(gpu.index, int)
            assert gpu.name == (f"gpu{gpu.index}" if known else gpu.bus_id.removeprefix("0000"))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_lines_moved_about(first: int, second: int, doubled: bool) -> None:
    for form, text in (("xml", RTX), ("text", A10)):
        lines = text.split("\n")
        i, j = first % len(lines), second % len(lines)
        lines[i], lines[j] = lines[j], lines[j] if doubled else lines[i]
        read(form, "\n".join(lines))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=" \n\t:<>&;/[].GPU01xProcesses", max_size=200))
def test_anything(text: str) -> None:
    for parse in BOTH:
        with suppress(ParseError):
            parse(text)
        with suppress(ParseError):
            parse(f"Driver Version : 1\nGPU 0000:01:00.0\n{text}")
