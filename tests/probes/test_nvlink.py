"""nvidia-smi nvlink: layouts, what is down, counters by name, excerpts, damage."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.facts.nvlink import Nvlink, NvlinkErrors
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi.nvlink import nvlink, nvlink_errors, nvlink_status
from preflight.probes.spec import Probe
from tests.conftest import sample

UUID = "GPU-0000feed-0000-4000-8000-00000000000"
A6000 = "".join(
    [f"GPU {gpu}: NVIDIA RTX A6000 (UUID: {UUID}{gpu})\n" for gpu in (0,)]
    + [f"\t Link {link}: 14.062 GB/s\n" for link in range(4)]
    + [f"GPU 1: NVIDIA RTX A6000 (UUID: {UUID}1)\n"]
    + ["NVML: Unable to retrieve NVLink information as all links are inActive\n"]
    + [f"GPU 2: NVIDIA RTX A6000 (UUID: {UUID}2)\n"]
)


def links(text: str, index: int = 0) -> Nvlink:
    return nvlink(text).gpus[index].links


def errors(text: str, index: int = 0) -> NvlinkErrors:
    found = links(text, index).errors
    assert isinstance(found, NvlinkErrors)
    return found


def locate(text: str, line: int, field: str) -> int:
    probe: Probe = nvlink.probe  # type: ignore[attr-defined]
    assert probe.locate
    return probe.locate(text, line, field)


@pytest.mark.parametrize(
    ("name", "gpus", "up", "rate"),
    [
        ("a100_sxm4_x8_status.txt", 8, 12, 25),
        ("a100_sxm4_gpu7_status.txt", 1, 12, 25),
        ("a100_sxm4_gpu0_status_two_space_indent.txt", 1, 12, 25),
        ("h100_gpu0_status_then_capabilities.txt", 1, 18, 26.562),
    ],
)
def test_states(name: str, gpus: int, up: int, rate: float) -> None:
    found = nvlink(sample(f"nvlink/{name}")).gpus
    assert len(found) == gpus
    for gpu in found:
        assert (gpu.links.up, gpu.links.listed, gpu.links.down) == (up, up, ())
        assert gpu.links.rate_min_gbps == rate


def test_who_it_is() -> None:
    (gpu,) = nvlink(sample("nvlink/a100_sxm4_gpu7_status.txt")).gpus
    assert (gpu.index, gpu.product, gpu.line) == (7, "NVIDIA A100-SXM4-80GB", 1)
    assert gpu.uuid == "GPU-4093c56a-2eeb-8449-b746-9a2e47d7fc1f"


def test_capabilities_are_no_links_and_no_second_gpu() -> None:
    text = sample("nvlink/h100_gpu0_status_then_capabilities.txt")
    assert links(text).supported == 18
    capabilities = text[text.index("GPU 0", 1) :]
    assert (links(capabilities).supported, links(capabilities).up) == (18, NOT_IN_INPUT)


def test_none_is_up_by_a_sentence_and_by_an_empty_list() -> None:
    for index in (1, 2):
        found = links(A6000, index)
        assert (found.up, isinstance(found.listed, Missing)) == (0, True)
    assert links(A6000).up == 4
    # Of counters alone nothing follows about states; asked live, an empty list is an answer.
    header = A6000.splitlines()[0]
    assert links(f"{header}\n\t Link 0: Replay Errors: 0\n").up == NOT_IN_INPUT
    assert nvlink(f"{header}\n").gpus[0].links.up == NOT_IN_INPUT
    assert nvlink_status(f"{header}\n").gpus[0].links.up == 0


@pytest.mark.parametrize("word", ["<inactive>", "Inactive", "<Down>", "Disabled"])
def test_a_link_that_is_not_up(word: str) -> None:
    text = A6000.replace("Link 2: 14.062 GB/s", f"Link 2: {word}")
    found = links(text)
    assert (found.up, found.down, found.listed, found.rate_min_gbps) == (3, (2,), 4, 14.062)
    assert locate(text, found.line, "nvlink.up") == 4


def test_an_unknown_word_is_unknown() -> None:
    found = links(A6000.replace("Link 2: 14.062 GB/s", "Link 2: <sleeping>"))
    for value in (found.up, found.listed, found.rate_min_gbps):
        assert isinstance(value, Missing)
        assert value.kind == "unreadable"
    said = "NVML: Unable to retrieve NVLink information: Unknown Error"
    found = links(f"{A6000.splitlines()[0]}\n{said}\n")
    assert found.up == Missing("unreadable", said)


def test_an_excerpt_has_no_count_and_no_zero() -> None:
    found = links(sample("nvlink/h100_status_excerpt.txt"))
    counted = errors(sample("nvlink/h100_errorcounters_excerpt.txt"))
    for value in (found.up, found.listed, found.rate_min_gbps, counted.replay, counted.crc):
        assert isinstance(value, Missing)
        assert value.kind == "not-in-input"
        assert "excerpt" in value.text
    text = sample("nvlink/h100_status_excerpt.txt").replace(
        "Link 17: 26.562 GB/s", "Link 17: <inactive>"
    )
    seen = links(text)
    assert seen.down == (17,)
    assert isinstance(seen.up, Missing)
    assert (seen.up.kind, "link 17 is not up" in seen.up.text) == ("unreadable", True)
    text = sample("nvlink/h100_errorcounters_excerpt.txt")
    assert errors(text.replace("17: Replay Errors: 0", "17: Replay Errors: 3")).replay == 3


def test_a_list_that_is_cut_at_its_end_is_an_excerpt() -> None:
    text = sample("nvlink/a100_sxm4_x8_status.txt")
    cut = text[: text.rindex("Link 5")]
    found = nvlink(cut).gpus
    assert [gpu.links.up for gpu in found[:-1]] == [12] * (len(found) - 1)
    assert isinstance(found[-1].links.up, Missing)


def test_counters_add_up_over_links_and_lanes() -> None:
    header = A6000.splitlines()[0]
    lines = [
        "Link 0: Replay Errors: 2", "Link 1: Replay Errors: 5", "Link 0: Recovery Errors: 1",
        "Link 0, Lane 0: CRC Errors: 3", "Link 0, Lane 1: CRC Errors: 4",
        "Link 1: CRC FLIT Errors: 1",
        "Link 0: Data Tx: 77 KiB", "Link 0: Speed: 9",
    ]  # fmt: skip
    text = "\n".join([header, *(f"\t {line}" for line in lines), ""])
    found = nvlink_errors(text).gpus[0].links.errors
    assert isinstance(found, NvlinkErrors)
    assert (found.replay, found.recovery, found.crc) == (7, 1, 8)
    assert found.packets == NOT_IN_INPUT
    assert locate(text, found.line, "errors.replay") == 3
    assert locate(text, found.line, "errors.crc") == 6


def test_two_looks_count_once_and_the_worse_counts() -> None:
    text = sample("nvlink/a100_sxm4_gpu7_status.txt")
    assert links(text + text).up == 12
    assert links(text.replace("Link 4: 25 GB/s", "Link 4: <inactive>") + text).up == 11
    line = "GPU 0: X (UUID: GPU-1)\n Link 0: Replay Errors: {}\n"
    assert errors(line.format(3) + line.format(2)).replay == 3


def test_counters_of_nvlink_5() -> None:
    lines = {
        "Malformed packet Errors": 1, "Buffer overrun Errors": 0, "Rx Errors": 2,
        "Rx remote Errors": 0, "Rx General Errors": 0, "Local link integrity Errors": 4,
        "Tx discards": 0, "Link recovery successful events": 3, "Link recovery failed events": 1,
        "Effective Errors": 9, "Effective BER": "3e-11", "Symbol Errors": "N/A",
        "Symbol BER": "15e-255", "FEC Errors - 0": 36140749276, "Raw BER Lane 0": 2061,
    }  # fmt: skip
    found = errors(
        "GPU 0: NVIDIA B300 SXM6 AC (UUID: GPU-1)\n"
        + "".join(f"\t Link 0: {name}: {value}\n" for name, value in lines.items())
    )
    assert (found.packets, found.recovered, found.recovery_failed) == (7, 3, 1)
    assert (found.effective, found.effective_ber, found.symbol_ber) == (9, 3e-11, 0)
    assert found.symbol == Missing("not-applicable", "nvidia-smi says N/A")
    assert found.replay == NOT_IN_INPUT


def test_two_hosts_in_one_text() -> None:
    text = sample("nvlink/a100_sxm4_gpu0_status_two_space_indent.txt")
    other = sample("nvlink/a100_sxm4_x8_status.txt")
    with pytest.raises(ParseError, match="GPU 0 has two UUIDs"):
        nvlink(text + other)


@pytest.mark.parametrize("text", ["", "Link 0: 25 GB/s\n", "No devices were found\n"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        nvlink(text)


@given(st.text(alphabet="GPULinkNVML 01:,<>[].\n\t", max_size=300))
def test_hostile_text(text: str) -> None:
    found: Any = nvlink(f"GPU 0: X (UUID: GPU-1)\n{text}")
    assert found.gpus


@pytest.mark.parametrize(
    "unit", ["Link 0: ", "Link 0: Replay Errors: 1\n", "[", ". . ", "GPU 1: (UUID: "]
)
def test_a_megabyte_is_read_at_once(unit: str) -> None:
    text = f"GPU 0: X (UUID: GPU-1)\n{unit * (2**20 // len(unit))}\n"
    start = time.process_time()
    assert nvlink(text).gpus
    assert time.process_time() - start < 2
