"""Hosts with Ascend NPUs or AMD GPUs: their tools are read, and nothing is amiss there."""

from __future__ import annotations

import json

import pytest

from preflight.assemble.accelerators import accelerator_facts
from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.errors import ParseError
from preflight.judge.load import load
from preflight.model import Missing, Raw, Status
from preflight.probes.accelerators.npu_smi import npu_smi
from preflight.probes.accelerators.rocm_smi import rocm_smi
from preflight.recognise import recognise
from tests.accelerator_text import ADDRESSES, amd, npus, pci

#: Those that ask about GPUs and software.
CHECKS = load(("gpu", "pcie", "fabric", "live", "versions", "environment")).checks


def raw(probe: str, text: str = "", rc: int = 0) -> Raw:
    return Raw("node-07", probe, (probe,), rc, text)


def host_with(vendor: str, count: int, *more: Raw, container: str = "") -> list[Raw]:
    """Live answers of a host that has other accelerators and no tool of NVIDIA."""
    identity = f"hostname node-07\nkernel 5.10.0\nuptime 864000.0 1\nuid 0\n{container}"
    return [
        raw("identity", identity), raw("pci", pci(vendor, count)), raw("nvidia-smi", rc=127),
        raw("environment", "of shell\nnetdevs\nadapters\nend\n"),
        *(more or (raw("npu-smi", rc=127), raw("rocm-smi", rc=127))),
    ]  # fmt: skip


def test_the_table_of_npus_is_read() -> None:
    answer = npu_smi(npus("Alarm"))
    assert answer.version == "24.1.rc2"
    assert [one.name for one in answer.each] == ["npu0", "npu1", "npu2", "npu3"]
    assert [one.health for one in answer.each] == ["OK", "OK", "OK", "Alarm"]
    assert [one.address for one in answer.each] == [each.lower() for each in ADDRESSES]
    last = answer.each[3]
    assert (last.product, last.power_w, last.temperature_c) == ("910B3", 93.4, 43.0)
    assert npus().splitlines()[last.line - 1].startswith("| 3     910B3")


def test_two_chips_of_a_card_are_two() -> None:
    rows = (
        "| 1       310P3             | OK              | NA           35       0 / 0   |\n"
        "| 0       0                 | 0000:81:00.0    | 0            1587 / 44216       |\n"
        "| 1       310P3             | OK              | NA           36       0 / 0   |\n"
        "| 1       1                 | 0000:81:00.0    | 0            1587 / 43757       |\n"
    )
    answer = npu_smi(rows)
    assert [one.name for one in answer.each] == ["npu1", "npu1.1"]
    assert isinstance(answer.each[0].power_w, Missing)
    assert answer.each[1].temperature_c == 36.0
    assert isinstance(answer.version, Missing)


@pytest.mark.parametrize(
    "text",
    ["", "dcmi module initialize failed. ret is -8005", npus()[: npus().index(ADDRESSES[2])],
     npus(count=0), "\x00\n|||\n"],
)  # fmt: skip
def test_a_table_that_is_cut_or_none_is_no_answer(text: str) -> None:
    with pytest.raises(ParseError):
        npu_smi(text)


def test_each_cut_of_the_table_is_read_or_refused() -> None:
    text = npus()
    for cut in range(0, len(text), 7):
        try:
            assert len(npu_smi(text[:cut]).each) <= 4
        except ParseError:
            continue


def test_the_json_of_rocm_smi_is_read() -> None:
    answer = rocm_smi("WARNING: AMD GPU device(s) is/are in a low-power state.\n\n" + amd())
    assert answer.version == "6.8.5"
    first = answer.each[0]
    assert (first.name, first.product, first.address) == (
        "card0", "AMD Instinct MI300X", "0000:01:00.0",
    )  # fmt: skip
    assert (first.temperature_c, first.power_w) == (40.0, 133.0)
    older = json.loads(amd())
    older["card0"] = {
        "Card series": "AMD INSTINCT MI250",
        "Average Graphics Package Power (W)": "x",
    }
    first = rocm_smi(json.dumps(older)).each[0]
    assert first.product == "AMD INSTINCT MI250"
    assert isinstance(first.power_w, Missing)
    assert isinstance(first.address, Missing)


@pytest.mark.parametrize(
    "text", ["", "ERROR:root:Driver not initialized (amdgpu not found in modules)", "{}", "[]",
             '{"card0": 7}', '{"system": {}}', amd()[:60], "{" * 5000],
)  # fmt: skip
def test_what_is_no_list_of_cards_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        rocm_smi(text)


def test_a_table_that_somebody_saved_is_recognised() -> None:
    found = recognise(npus().encode(), "npu.txt")
    assert [one.probe for one in found] == ["npu-smi"]


@pytest.mark.parametrize(
    ("raws", "listed"),
    [
        (host_with("0x19e5", 4, raw("npu-smi", npus())), 4),
        (host_with("0x1002", 2, raw("npu-smi", rc=127), raw("rocm-smi", amd())), 2),
        (host_with("0x19e5", 4, container="container_file /.dockerenv\n"), None),
    ],
)
def test_nothing_is_amiss_with_a_host_of_another_maker(raws: list[Raw], listed: int | None) -> None:
    assembled = assemble("node-07", raws)
    count = assembled.host.accelerator_count
    assert (count.listed if isinstance(count.listed, int) else None) == listed
    report = examine("node-07", raws, CHECKS)
    asked = {"identity", "pci", "nvidia-smi", "environment", "npu-smi", "rocm-smi"}
    bad = [
        (one.check, one.status.value, one.reason)
        for one in report.results
        if one.status in (Status.FAIL, Status.ERROR)
    ]
    assert bad == []
    assert "Ascend" in report.summary or "AMD GPU" in report.summary
    assert asked >= {one.probe for one in report.missing}


@pytest.mark.parametrize(("vendor", "tool"), [("0x19e5", "npu-smi"), ("0x1002", "rocm-smi")])
def test_accelerators_without_the_makers_tool_are_undetermined(vendor: str, tool: str) -> None:
    found = examine("node-07", host_with(vendor, 2), CHECKS).results
    errors = [one for one in found if one.status is Status.ERROR]
    assert [one.check for one in errors] == ["versions.accelerators.listed"]
    assert f"{tool} is not installed; it comes with" in errors[0].reason


def test_an_accelerator_without_a_driver_is_named() -> None:
    raws = host_with("0x1002", 2)
    raws[1] = raw("pci", pci("0x1002", 2).replace(" amdgpu", " ", 1))
    found = [one for one in examine("node-07", raws, CHECKS).results if one.status is Status.FAIL]
    assert [(one.check, one.measured) for one in found] == [("versions.accelerators.driver", 1)]


def test_graphics_of_a_processor_are_no_accelerator() -> None:
    raws = host_with("0x1002", 2)
    text = pci("0x1002", 2).replace("0x120000", "0x038000").replace("0x74a1", "0x1681")
    raws[1] = raw("pci", text)
    assert assemble("node-07", raws).host.accelerator_count.on_pci == 0


@pytest.mark.parametrize("answer", [raw("npu-smi", rc=124), raw("npu-smi", "dcmi failed", 1)])
@pytest.mark.parametrize("listed", [True, False])
def test_in_a_container_a_tool_that_is_there_and_fails_is_undetermined(
    answer: Raw, listed: bool
) -> None:
    raws = host_with("0x19e5", 2, answer, container="container_file /.dockerenv\n")
    if not listed:
        raws[1] = raw("pci", rc=2)
    found = examine("node-07", raws, CHECKS).results
    errors = {one.check for one in found if one.status is Status.ERROR}
    assert "versions.accelerators.health" in errors


def test_why_there_is_no_answer_is_the_tools_reason_where_it_is_there() -> None:
    hangs, absent = Missing("timeout", "npu-smi hangs"), Missing("no-tool", "not installed")
    unknown = Missing("exited", "no /sys")
    assert accelerator_facts(absent, hangs, unknown)["accelerators"] == hangs
    assert accelerator_facts(absent, absent, unknown)["accelerators"] == unknown


def test_an_npu_that_is_ill_or_not_listed_is_named() -> None:
    raws = host_with("0x19e5", 5, raw("npu-smi", npus("Critical")))
    found = {
        one.subject: one.check
        for one in examine("node-07", raws, CHECKS).results
        if one.status is Status.FAIL
    }
    assert found == {
        "node-07": "versions.accelerators.listed", "npu3": "versions.accelerators.health",
    }  # fmt: skip


def test_a_container_that_was_granted_some_is_sound() -> None:
    raws = host_with("0x19e5", 8, raw("npu-smi", npus()), container="container_file /.dockerenv\n")
    assert [
        one for one in examine("node-07", raws, CHECKS).results if one.status is Status.FAIL
    ] == []


def test_a_warning_of_the_chip_is_a_warning() -> None:
    raws = host_with("0x19e5", 4, raw("npu-smi", npus("Warning")))
    found = [one for one in examine("node-07", raws, CHECKS).results if one.status is Status.WARN]
    assert [(one.check, one.subject) for one in found] == [("versions.accelerators.health", "npu3")]
