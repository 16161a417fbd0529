"""ipmitool, EDAC, dmidecode and dcgmi in pastes: alone, after prompts, between other tools."""

from __future__ import annotations

import pytest

from preflight import recognise
from preflight.errors import UsageError
from preflight.model import Missing, Raw
from preflight.probes.dcgm.diag import dcgmi_diag
from preflight.probes.ipmi.sdr import ipmi_sdr
from tests.conftest import sample, sample_bytes

SDR = sample("ipmi_sdr/sdr_elist_psu2_ac_lost_fragment.txt")
SHORT = sample("ipmi_sdr/sdr_v1_with_command_errors.txt")
DIAG = sample("dcgmi_diag/r3_a16_x4_dcgm4.0.0_pass.txt")
JSON = sample("dcgmi_diag/dcgm3.1_json_leading_warning_and_nulls.json")
REMAP = sample("dcgmi_diag/deployment_row_remap_pending_gpu3_fragment.txt")
XID = sample("kernel_log/xid79_then_sxid20034_fatal.log")
ECC = sample("nvidia_smi_q/sram_uncorrectable_volatile1_aggregate5_excerpt.txt")
SENSOR = (
    "Inlet Temp       | 23.000     | degrees C  | ok    | na        | na        | -7.000    "
    "| 3.000     | 42.000    | 47.000    \n"
    "PSU1_Status      | 0x0        | discrete   | 0x0180| na        | na        | na        "
    "| na        | na        | na        \n"
)
SEL = (
    "   1 | 06/14/2023 | 10:01:17 | Power Supply PS2 Status | Power Supply AC lost | Asserted\n"
    "   a |  Pre-Init  |0000000123| System Event #0x01 | Timestamp Clock Sync | Asserted\n"
)
EDAC = "/sys/devices/system/edac/mc/mc0/ce_count:0\n/sys/devices/system/edac/mc/mc0/ue_count:0\n"
DIMMS = (
    "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\n\nHandle 0x0020, DMI type 17, 92 bytes\n"
    "Memory Device\n\tSize: 64 GB\n\tLocator: A1\n"
)
TOOLS = {
    "ipmi-sdr": (SDR, SHORT, SENSOR, sample("ipmi_sdr/sdr_v1_ibm_x_full_ok.txt")),
    "ipmi-sel": (SEL, "SEL has no entries\n"),
    "edac": (EDAC, "mc0/ce_count:0\nmc0/dimm0/dimm_ce_count:0\nend\n"),
    "dmidecode": (DIMMS,),
    "dcgmi-diag": (DIAG, REMAP, sample("dcgmi_diag/r2_thermal_violation_gpu0_fragment.txt")),
}
EACH = [(probe, text) for probe, texts in TOOLS.items() for text in texts]


def raws(text: str) -> dict[str, Raw]:
    return {raw.probe: raw for raw in recognise.recognise(text.encode(), "x.txt")}


@pytest.mark.parametrize(("probe", "text"), EACH)
def test_alone_and_with_the_line_ends_of_other_systems(probe: str, text: str) -> None:
    assert raws(text)[probe].stdout == text
    assert raws(text.replace("\n", "\r\n"))[probe].stdout == text


@pytest.mark.parametrize(("probe", "text"), EACH)
def test_after_a_prompt_and_between_other_tools(probe: str, text: str) -> None:
    paste = (
        f"root@node-07:~# dmesg | tail\n{XID}root@node-07:~# sudo ipmitool sdr\n{text}"
        f"root@node-07:~# nvidia-smi -q -d ECC\n{ECC}"
    )
    found = raws(paste)
    assert set(found) == {"kernel-log", probe, "nvidia-smi-q"}
    assert str(found[probe].stdout).strip("\n") == text.strip("\n")
    assert found[probe].line_offset == XID.count("\n") + 2


@pytest.mark.parametrize(("probe", "text"), EACH)
@pytest.mark.parametrize("added", ["    ", "> ", "\t"])
def test_with_something_put_before_every_line(probe: str, text: str, added: str) -> None:
    pasted = "".join(f"{added}{line}\n" for line in text.splitlines())
    assert set(raws(pasted)) == {probe}


def test_a_kernel_message_on_the_console_does_not_end_a_table() -> None:
    lines = DIAG.splitlines(keepends=True)
    text = "".join([*lines[:20], "[  100.123456] usb 1-2: new device\n", *lines[20:]])
    run = dcgmi_diag(str(raws(text)["dcgmi-diag"].stdout))
    assert run.verified == 24


@pytest.mark.parametrize("before", ["", "$ dcgmi diag -r 1 -j\n", f"{XID}$ dcgmi diag -j\n", "  "])
def test_json_is_taken_whole(before: str) -> None:
    text = JSON.partition("\n")[2] if before == "  " else JSON
    found = raws(f"{before}{text}$ date\n")["dcgmi-diag"]
    run = dcgmi_diag(str(found.stdout))
    assert not isinstance(run.results, Missing)
    assert len(run.results) == 80


def test_what_is_between_readings_is_counted_in_a_paste_too() -> None:
    found = ipmi_sdr(str(raws(f"$ ipmitool sdr\n{SHORT}$ date\n")["ipmi-sdr"].stdout))
    assert not isinstance(found, Missing)
    assert found.unanswered == 3


def test_the_middle_of_each_is_no_other_tool() -> None:
    for probe, text in EACH:
        lines = text.splitlines(keepends=True)
        for at in range(0, len(lines), max(len(lines) // 6, 1)):
            try:
                found = recognise.recognise("".join(lines[at:]).encode(), "x.txt")
            except UsageError:
                continue
            assert {raw.probe for raw in found} == {probe}


def test_json_with_a_warning_above_it_as_a_file() -> None:
    data = sample_bytes("dcgmi_diag/dcgm3.1_json_leading_warning_and_nulls.json")
    (raw,) = recognise.recognise(data, "x.json")
    assert raw.probe == "dcgmi-diag"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Inlet Temp,22,degrees C,ok\nFan1,0,RPM,cr\nPS1 Status,0x01,ok\n", "sdr elist"),
        ("1,03/04/2026,11:00:00,Memory #0x02,Uncorrectable ECC,Asserted\n", "sel elist"),
        ("SEL Record ID          : 0001\n Record Type           : 02\n", "sel elist"),
        ("SEL Information\nVersion          : 1.5\nOverflow         : true\n", "sel elist"),
    ],
)
def test_forms_that_are_not_read_name_the_one_that_is(text: str, form: str) -> None:
    with pytest.raises(UsageError, match="ipmitool") as refused:
        raws(text)
    assert form in (refused.value.hint or "")


@pytest.mark.parametrize(
    "said",
    [
        "Error: Unable to connect to host engine. Host is localhost:5555 (connection failed).",
        "Error: unable to establish a connection to the specified host: localhost",
    ],
)
def test_a_diagnostic_that_reached_no_host_engine_did_not_run(said: str) -> None:
    found = dcgmi_diag(str(raws(f"{said}\n")["dcgmi-diag"].stdout))
    assert isinstance(found.verified, Missing)
    assert said in found.verified.text
