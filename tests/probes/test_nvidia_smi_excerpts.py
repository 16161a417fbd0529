"""The text of `nvidia-smi -q` in other dress, in pieces, and pieces put together."""

from __future__ import annotations

import re
from textwrap import dedent, indent

import pytest

from preflight.errors import ParseError
from preflight.facts.gpu import Process
from preflight.model import NOT_IN_INPUT
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from tests.conftest import sample
from tests.probes.test_nvidia_smi_text import only

A10 = sample("nvidia_smi_q/a10_535.129_row_remap_pending.txt")
EIGHT = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
WARNING = "WARNING: You should always run with the library of your own driver\n"


@pytest.mark.parametrize(
    "text",
    [
        A10.replace("\n", "\r\n"),
        indent(A10, "    "),
        indent(A10, "\t"),
        re.sub(" +:", " :", A10),
        re.sub(" +:", " " * 60 + ":", A10),
        "$ nvidia-smi -q\n" + A10,
        A10.replace("    ", "\t"),
        A10 + WARNING,
        A10.replace("    Fan Speed", WARNING + "    Fan Speed"),
    ],
    ids=["crlf", "block", "tab", "narrow", "wide", "prompt", "tabs", "warning", "warning inside"],
)
def test_the_same_report_in_another_dress(text: str) -> None:
    expected = nvidia_smi_text(A10)
    found = nvidia_smi_text(text)
    assert found.attached == expected.attached == 1
    assert (found.driver.version, found.driver.cuda) == ("535.129.03", "12.2")
    [gpu], [wanted] = found.gpus, expected.gpus
    for name in wanted.__struct_fields__:
        assert name == "line" or getattr(gpu, name) == getattr(wanted, name)
    assert "GPU 0" in text.split("\n")[gpu.line - 1]


LOST = "^line [0-9]+: the indentation is lost.*paste it as it was printed, or use nvidia-smi -q -x$"


@pytest.mark.parametrize(
    "text",
    [
        EIGHT,
        A10,
        sample("nvidia_smi_q/d_page_retirement_535.86_x8_clean.txt"),
        sample("nvidia_smi_q/d_clock_p100_375.66.txt"),
        sample("nvidia_smi_q/d_performance_v100_410.48_no_header.txt"),
        sample("nvidia_smi_q/sram_uncorrectable_volatile1_aggregate5_excerpt.txt"),
        sample("nvidia_smi_q/a100_510.73_row_remap_pending_excerpt.txt"),
    ],
    ids=["full", "one", "pages", "clock", "performance", "ecc", "excerpt"],
)
def test_text_whose_indentation_is_lost_is_not_read(text: str) -> None:
    """Without it "Pending : Yes" may be of any section: nothing is guessed, and nothing passes."""
    for flat in (re.sub("(?m)^[ \t]+", "", text), re.sub("[ \t]+", " ", text)):
        with pytest.raises(ParseError, match=LOST):
            nvidia_smi_text(flat)


def test_one_gpu_whose_indentation_is_lost_is_enough() -> None:
    at = EIGHT.index("GPU 00000000:4C")
    with pytest.raises(ParseError, match=LOST):
        nvidia_smi_text(EIGHT[:at] + re.sub("(?m)^ +", "", EIGHT[at:]))


def test_first_level_fields_alone_need_their_indentation_too() -> None:
    with pytest.raises(ParseError, match=LOST):
        nvidia_smi_text("GPU 00000000:01:00.0\nFan Speed : 30 %\n")


def test_indentation_that_is_only_smaller_is_read() -> None:
    half = re.sub("(?m)^ +", lambda blanks: " " * (len(blanks[0]) // 2), A10)
    assert nvidia_smi_text(half) == nvidia_smi_text(A10)


def test_a_colon_without_its_blanks_is_one_still() -> None:
    tight = re.sub("(?m)^( +(?:Pending|Reset Required|Current)) +:", r"\1:", A10)
    assert tight != A10
    assert nvidia_smi_text(tight) == nvidia_smi_text(A10)


def test_sections_of_one_gpu_are_put_together() -> None:
    text = """\
        Attached GPUs : 2
        GPU 00000000:19:00.0
            ECC Mode
                Current : Enabled
            Processes
                Process ID : 7
        GPU 00000000:3B:00.0
            ECC Mode
                Current : Disabled

        ==============NVSMI LOG==============
        Attached GPUs : 2
        Driver Version : 535.1
        GPU 0000:19:00.0
            Retired Pages
                Single Bit ECC : 3
                Double Bit ECC : 0
            Processes : None
        GPU 0000:3B:00.0
            Retired Pages
                Single Bit ECC : 4
        """
    found = nvidia_smi_text(dedent(text))
    assert (found.attached, found.driver.version, found.driver.line) == (2, "535.1", 13)
    first, second = found.gpus
    assert (first.line, second.line) == (2, 7)
    assert (first.ecc.mode, second.ecc.mode) == ("Enabled", "Disabled")
    assert (first.retired.total_pages, second.retired.total_pages) == (3, NOT_IN_INPUT)
    assert (first.processes, second.processes) == ((), NOT_IN_INPUT)


def test_what_stands_below_a_gap_belongs_to_no_section() -> None:
    gpu = only("""\
        GPU 00000000:01:00.0
            ECC Errors
                Volatile
                    SRAM Correctable   : 0
            [...]
                    SRAM Uncorrectable : 7
                Aggregate
                    DRAM Uncorrectable : 7
            Remapped Rows
                Pending                : Yes
            ...
        """)
    assert gpu.ecc.volatile_sram_corrected == 0
    assert gpu.ecc.volatile_sram_uncorrected == NOT_IN_INPUT
    assert gpu.ecc.aggregate_dram_uncorrected == NOT_IN_INPUT
    assert gpu.remap.pending is True


def test_a_file_that_begins_in_the_middle_of_a_gpu() -> None:
    text = EIGHT[EIGHT.index("            DRAM Correctable") :]
    found = nvidia_smi_text(text)
    assert len(found.gpus) == 8
    first, second = found.gpus[:2]
    assert (first.bus_id, first.name, first.line) == ("", "gpu0", 1)
    assert found.cut
    assert first.ecc.volatile_dram_corrected == NOT_IN_INPUT
    assert first.ecc.aggregate_dram_corrected == NOT_IN_INPUT
    assert first.remap.banks_max == 2560
    assert first.temperature.margin_c == 58
    assert (second.bus_id, second.name) == ("00000000:3b:00.0", "0000:3b:00.0")
    assert found.driver.version == NOT_IN_INPUT


def test_processes_may_be_all_there_is() -> None:
    assert only("    Processes : None\n").processes == ()
    assert only("    Processes\n        Process ID : 7\n").processes == (
        Process(7, "", NOT_IN_INPUT, NOT_IN_INPUT),
    )


def test_an_unfinished_last_line_is_left_out_of_a_cut_report() -> None:
    """ "16x" cut to "1" is a number too."""
    at_width = EIGHT.index(": 16x", EIGHT.index("Link Width")) + len(": 1")
    gpu = nvidia_smi_text(EIGHT[:at_width]).gpus[0]
    assert (gpu.pcie.gen, gpu.pcie.width_max) == (5, NOT_IN_INPUT)
    finished = nvidia_smi_text(EIGHT[: at_width + 2]).gpus[0]
    assert finished.pcie.width_max == NOT_IN_INPUT
    assert nvidia_smi_text(EIGHT[: at_width + 3]).gpus[0].pcie.width_max == 16
    assert nvidia_smi_text(EIGHT.rstrip()).gpus[7].processes == ()


def test_a_value_is_not_cut_at_its_colons() -> None:
    gpu = only("GPU 00000000:01:00.0\n    Product Name : A : B :C\n")
    assert gpu.product == "A : B :C"


def test_the_label_alone_is_another_tools() -> None:
    fru = "FRU Device Description : Builtin FRU Device (ID 0)\n Product Name : PowerEdge\n"
    with pytest.raises(ParseError, match=r"^expected nvidia-smi -q output, got 'FRU Device"):
        nvidia_smi_text(fru)
