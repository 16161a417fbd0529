"""The line of a report that shows a field."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from preflight.probes.nvidia_smi import text as nvidia_smi_text
from preflight.probes.nvidia_smi import xml as nvidia_smi_xml
from tests.conftest import sample

TWO_XML = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
MIG_XML = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
EIGHT_TEXT = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
UNKNOWN_TEXT = sample("nvidia_smi_q/rtx4090_x8_535.154_busy_unknown_error.txt")
PAGES_TEXT = sample("nvidia_smi_q/d_page_retirement_535.86_x8_pending_edited.txt")
LOST = "Unable to determine the device handle for GPU 0000:9A:00.0: GPU is lost.  Reboot"


def line(text: str, number: int) -> str:
    return " ".join(text.split("\n")[number - 1].split())


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("pcie.width", "<current_link_width>16x</current_link_width>"),
        ("pcie.width_max", "<max_link_width>16x</max_link_width>"),
        ("pcie.gen", "<current_link_gen>1</current_link_gen>"),
        ("ecc.aggregate_sram_corrected", "<sram_correctable>N/A</sram_correctable>"),
        ("ecc.volatile_sram_uncorrected",
         "<sram_uncorrectable_parity>N/A</sram_uncorrectable_parity>"),
        ("remap.pending", "<remapped_row_pending>No</remapped_row_pending>"),
        ("throttle.hw_slowdown",
         "<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>"),
        ("temperature.margin_c", "<gpu_temp>15 C</gpu_temp>"),
        ("power.limit_percent", "<average_power_draw>13.60 W</average_power_draw>"),
        ("power.limit_w", "<current_power_limit>230.00 W</current_power_limit>"),
        ("clocks.sm_max_mhz", "<sm_clock>2100 MHz</sm_clock>"),
        ("clocks.sm_mhz", "<sm_clock>210 MHz</sm_clock>"),
        ("retired.total_pages", "<retired_count>N/A</retired_count>"),
        ("processes", "<processes>"),
        ("mig.instances", "<mig_devices>"),
        ("uuid", "<uuid>GPU-"),
        ("reset_required", '<gpu id="00000000:C1:00.0">'),
        ("no.such.field", '<gpu id="00000000:C1:00.0">'),
    ],
)  # fmt: skip
def test_in_the_xml(field: str, shown: str) -> None:
    start = nvidia_smi_xml.nvidia_smi_xml(TWO_XML).gpus[1].line
    found = nvidia_smi_xml.locate(TWO_XML, start, field)
    assert found >= start == 868
    assert line(TWO_XML, found).startswith(shown)


def test_spans_and_slices_are_told_apart_in_the_xml() -> None:
    lines = MIG_XML.split("\n")
    for span in ("volatile", "aggregate"):
        found = nvidia_smi_xml.locate(MIG_XML, 8, f"ecc.{span}_sram_uncorrected")
        above = [text.strip() for text in lines[:found] if text.strip().startswith("<")]
        assert above[-1] == "<sram_uncorrectable>0</sram_uncorrectable>"
        assert above[-3] == f"<{span}>"
    total = nvidia_smi_xml.locate(MIG_XML, 8, "memory.total_bytes")
    assert line(MIG_XML, total) == "<total>81920 MiB</total>"


@pytest.mark.parametrize(
    ("field", "shown", "section"),
    [
        ("pcie.width", "Current : 16x", "Link Width"),
        ("pcie.gen", "Current : 5", "PCIe Generation"),
        ("pcie.replays", "Replays Since Reset : 52", "PCI"),
        ("mig.mode", "Current : Disabled", "MIG Mode"),
        ("ecc.mode", "Current : Enabled", "ECC Mode"),
        ("ecc.volatile_dram_corrected", "DRAM Correctable : 0", "Volatile"),
        ("ecc.aggregate_sram_uncorrected", "SRAM Uncorrectable SEC-DED : 0", "Aggregate"),
        ("remap.banks_none", "None : 0 bank(s)", "Bank Remap Availability Histogram"),
        ("throttle.hw_power_brake", "HW Power Brake Slowdown : Active", "HW Slowdown : Active"),
        ("temperature.margin_c", "GPU T.Limit Temp : 56 C", "Temperature"),
        ("power.limit_percent", "Power Draw : 70.55 W", "GPU Power Readings"),
        ("clocks.sm_max_mhz", "SM : 1980 MHz", "Max Clocks"),
        ("clocks.application_mhz", "Graphics : 1980 MHz", "Applications Clocks"),
        ("memory.used_bytes", "Used : 0 MiB", "FB Memory Usage"),
        ("processes", "Processes : None", "GPU 00000000:4C:00.0"),
        ("recovery_action", "GPU 00000000:4C:00.0", ""),
        ("mig.instances", "GPU 00000000:4C:00.0", ""),
    ],
)
def test_in_the_text(field: str, shown: str, section: str) -> None:
    gpu = nvidia_smi_text.nvidia_smi_text(EIGHT_TEXT).gpus[2]
    found = nvidia_smi_text.locate(EIGHT_TEXT, gpu.line, field)
    assert line(EIGHT_TEXT, found) == shown
    lines = EIGHT_TEXT.split("\n")
    indent = len(lines[found - 1]) - len(lines[found - 1].lstrip())
    above = next(
        (text for text in reversed(lines[gpu.line - 1 : found - 1])
         if len(text) - len(text.lstrip()) < indent),
        "",
    )  # fmt: skip
    assert " ".join(above.split()) == section


def test_the_larger_part_of_a_sum_is_shown() -> None:
    text = dedent("""\
        GPU 00000000:19:00.0
            ECC Errors
                Volatile
                    SRAM Uncorrectable Parity : 0
                    SRAM Uncorrectable SEC-DED : 0
                Aggregate
                    SRAM Uncorrectable Parity : 4
                    SRAM Uncorrectable SEC-DED : 1
        """)
    assert nvidia_smi_text.locate(text, 1, "ecc.aggregate_sram_uncorrected") == 7


def test_what_cannot_be_read() -> None:
    third = nvidia_smi_text.nvidia_smi_text(UNKNOWN_TEXT).gpus[2]
    for field in ("unreadable", "addressing"):
        found = nvidia_smi_text.locate(UNKNOWN_TEXT, third.line, field)
        assert line(UNKNOWN_TEXT, found) == "Addressing Mode : Unknown Error"
        assert found == third.line + 7
    text = re.sub(r"<tx_util>.*?<", "<tx_util>ERR!<", TWO_XML)
    found = nvidia_smi_xml.locate(text, 868, "unreadable")
    assert line(text, found).startswith("<tx_util>ERR!")


def test_a_section_without_a_gpu_line() -> None:
    text = "$ nvidia-smi -q -d ECC\n\n" + sample(
        "nvidia_smi_q/sram_uncorrectable_volatile1_aggregate5_excerpt.txt"
    )
    gpu = nvidia_smi_text.nvidia_smi_text(text).gpus[0]
    found = nvidia_smi_text.locate(text, gpu.line, "ecc.aggregate_sram_uncorrected")
    assert line(text, found) == "SRAM Uncorrectable : 5"


def test_a_section_that_comes_later() -> None:
    text = EIGHT_TEXT + PAGES_TEXT.replace("00000002:00:00.0", "00000000:3B:00.0")
    gpu = nvidia_smi_text.nvidia_smi_text(text).gpus[1]
    assert gpu.retired.total_pages == 63
    found = nvidia_smi_text.locate(text, gpu.line, "retired.pending")
    assert line(text, found) == "Pending Page Blacklist : Yes"
    assert line(text, nvidia_smi_text.locate(text, gpu.line, "pcie.width")) == "Current : 16x"


@pytest.mark.parametrize(
    ("module", "text"), [(nvidia_smi_xml, TWO_XML), (nvidia_smi_text, EIGHT_TEXT)]
)
def test_of_a_lost_gpu_the_sentence(module: object, text: str) -> None:
    read = getattr(module, "nvidia_smi_xml", None) or module.nvidia_smi_text  # type: ignore[attr-defined]
    locate = read.probe.locate
    text = f"{text}\n{LOST}\n"
    [lost] = [gpu for gpu in read(text).gpus if gpu.answers is False]
    for field in ("answers", "pcie.width", "unreadable"):
        assert line(text, locate(text, lost.line, field)) == " ".join(LOST.split())
    listed = text.replace("0000:9A:00.0", read(text).gpus[0].bus_id)
    first = read(listed).gpus[0]
    assert first.answers is False
    assert "Unable to determine" in line(listed, locate(listed, first.line, "answers"))
    assert "16x" in line(listed, locate(listed, first.line, "pcie.width"))


@pytest.mark.parametrize("field", ["reset_required", "pcie.width"])
def test_of_a_gpu_that_needs_a_reset_the_field(field: str) -> None:
    text = re.sub(r"Current +: 16x", "Current : GPU requires reset", EIGHT_TEXT)
    gpu = nvidia_smi_text.nvidia_smi_text(text).gpus[5]
    assert gpu.reset_required is True
    found = nvidia_smi_text.locate(text, gpu.line, field)
    assert line(text, found) == "Current : GPU requires reset"
    assert found > gpu.line


@pytest.mark.parametrize("record", [0, 1, 5, 10**6])
@pytest.mark.parametrize("text", ["", "no report", TWO_XML, EIGHT_TEXT])
def test_what_is_no_record_is_left_as_it_is(record: int, text: str) -> None:
    assert nvidia_smi_xml.locate(text, record, "pcie.width") == record
    assert nvidia_smi_text.locate(text, record, "pcie.width") == record
