"""The XML of nvidia-smi: layouts that no sample has, cuts, and what must be refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import structs

from preflight.errors import ParseError
from preflight.facts.gpu import Gpu, MigInstance, Process
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from tests.conftest import sample
from tests.probes.test_nvidia_smi_samples import at, seen

TWO = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
T4 = sample("nvidia_smi_xml/tesla_t4_515.105.xml")
MIG = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")


def one(fields: str, gpu_id: str = "00000000:1B:00.0") -> Gpu:
    """A report of one GPU that has only these fields."""
    head = "<driver_version>570.1</driver_version><attached_gpus>1</attached_gpus>"
    text = f'<nvidia_smi_log>{head}<gpu id="{gpu_id}">{fields}</gpu></nvidia_smi_log>'
    [gpu] = nvidia_smi_xml(text).gpus
    return gpu


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        (
            "<ecc_errors><volatile><sram_uncorrectable_parity>2</sram_uncorrectable_parity>"
            "<sram_uncorrectable_secded>3</sram_uncorrectable_secded></volatile></ecc_errors>",
            {"ecc.volatile_sram_uncorrected": 5, "ecc.aggregate_sram_uncorrected": "not-in-input"},
        ),
        (
            "<ecc_errors><volatile><sram_uncorrectable_parity>2</sram_uncorrectable_parity>"
            "</volatile></ecc_errors>",
            {"ecc.volatile_sram_uncorrected": "not-in-input"},
        ),
        (
            "<ecc_errors><volatile><sram_uncorrectable_parity>0</sram_uncorrectable_parity>"
            "<sram_uncorrectable_secded>Unknown Error</sram_uncorrectable_secded></volatile>"
            "</ecc_errors>",
            {"ecc.volatile_sram_uncorrected": "unreadable"},
        ),
        (
            "<ecc_errors><aggregate><double_bit><device_memory>4</device_memory>"
            "<register_file>1</register_file><l1_cache>N/A</l1_cache><l2_cache>2</l2_cache>"
            "<texture_memory>N/A</texture_memory><total>7</total></double_bit></aggregate>"
            "</ecc_errors>",
            {"ecc.aggregate_sram_uncorrected": 3, "ecc.aggregate_dram_uncorrected": 4},
        ),
        ("<ecc_errors>N/A</ecc_errors>", {"ecc.volatile_dram_corrected": "not-applicable"}),
        (
            "<ecc_errors>Insufficient Permissions</ecc_errors>",
            {"ecc.unrepairable_memory": "denied"},
        ),
        (
            "<retired_pages><multiple_single_bit_retirement><retired_count>3</retired_count>"
            "</multiple_single_bit_retirement><double_bit_retirement><retired_count>ERR!"
            "</retired_count></double_bit_retirement><pending_retirement>Yes"
            "</pending_retirement></retired_pages>",
            {"retired.single_bit": 3, "retired.total_pages": "unreadable", "retired.pending": True},
        ),
        (
            "<gpu_power_readings><average_power_draw>N/A</average_power_draw>"
            "<instant_power_draw>99.5 W</instant_power_draw><current_power_limit>0.00 W"
            "</current_power_limit></gpu_power_readings>",
            {"power.draw_w": 99.5, "power.limit_percent": "unreadable"},
        ),
        (
            "<power_readings><power_draw>35.0 W</power_draw><power_limit>60.00 W</power_limit>"
            "<enforced_power_limit>70.00 W</enforced_power_limit></power_readings>",
            {"power.limit_w": 70.0, "power.limit_percent": 100 * 0.5},
        ),
        (
            "<temperature><gpu_temp>Unknown Error</gpu_temp><gpu_temp_tlimit>N/A"
            "</gpu_temp_tlimit><gpu_temp_slow_threshold>90 C</gpu_temp_slow_threshold>"
            "</temperature>",
            {"temperature.gpu_c": "unreadable", "temperature.margin_c": "unreadable"},
        ),
        (
            "<clocks_event_reasons><clocks_event_reason_sw_power_cap>Active"
            "</clocks_event_reason_sw_power_cap></clocks_event_reasons>",
            {"throttle.sw_power_cap": True, "throttle.idle": "not-in-input"},
        ),
        (
            "<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>"
            "<gpu_recovery_action>Drain and Reset</gpu_recovery_action>",
            {"reset_required": True, "recovery_action": "Drain and Reset", "answers": True},
        ),
        (
            "<gpu_reset_status><drain_and_reset_recommended>Yes</drain_and_reset_recommended>"
            "</gpu_reset_status>",
            {"reset_recommended": True, "reset_required": "not-in-input"},
        ),
        (
            "<fabric><state>Completed</state><health><summary>Unhealthy</summary><bandwidth>Full"
            "</bandwidth><route_recovery_in_progress>False</route_recovery_in_progress>"
            "<route_unhealthy>True</route_unhealthy><access_timeout_recovery>True"
            "</access_timeout_recovery><incorrect_configuration>None</incorrect_configuration>"
            "<partition_assigned>True</partition_assigned></health></fabric>",
            {
                "fabric.health": "Unhealthy",
                "fabric.bandwidth_degraded": False,
                "fabric.route_recovery": False,
                "fabric.route_unhealthy": True,
                "fabric.access_timeout_recovery": True,
                "fabric.incorrect_configuration": "None",
                "fabric.partition_assigned": True,
            },
        ),
        ("<fabric><health><bandwidth>Half</bandwidth></health></fabric>",
         {"fabric.bandwidth_degraded": "unreadable"}),
        ("<fb_memory_usage><total>40779 MiB</total></fb_memory_usage>",
         {"memory.total_mib": 40779, "memory.total_bytes": 40779 * 2**20}),
        (
            "<fabric><state>Completed</state><status>Insufficient Resources</status></fabric>",
            {"fabric.state": "Completed", "fabric.status": "Insufficient Resources"},
        ),
        ("<serial></serial><fan_speed></fan_speed>",
         {"serial": "not-applicable", "fan_percent": "unreadable"}),
        ("<mig_mode><current_mig>Disabled</current_mig></mig_mode>", {"mig.instances": ()}),
        ("<mig_mode><current_mig>Enabled</current_mig></mig_mode>",
         {"mig.instances": "not-in-input"}),
        ("<processes>Insufficient Permissions</processes>", {"processes": "denied"}),
        ("<processes><process_info><type>C</type></process_info></processes>",
         {"processes": "unreadable"}),
        ("", dict.fromkeys(("answers", "unreadable", "processes"), "not-in-input")),
    ],
)  # fmt: skip
def test_layouts(fields: str, facts: dict[str, Any]) -> None:
    gpu = one(fields)
    assert {path: seen(at(gpu, path)) for path in facts} == facts


def test_a_virtual_gpu_keeps_what_it_does_report() -> None:
    mode = (
        "<gpu_virtualization_mode><virtualization_mode>VGPU</virtualization_mode>"
        "</gpu_virtualization_mode>"
    )
    gpu = one(
        f"{mode}<temperature><gpu_temp>45 C</gpu_temp></temperature><clocks><sm_clock>0 MHz"
        "</sm_clock><mem_clock>Unknown Error</mem_clock></clocks>"
    )
    assert gpu.temperature.gpu_c == 45
    assert gpu.clocks.sm_mhz == Missing("not-applicable", "a virtual GPU does not report it")
    assert gpu.clocks.memory_mhz == Missing("unreadable", "Unknown Error")
    assert gpu.temperature.slowdown_c == NOT_IN_INPUT


def test_instances_of_newer_drivers_and_what_they_lack() -> None:
    gpu = one(
        "<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>"
        "<device_attributes><shared><multiprocessor_count>42</multiprocessor_count></shared>"
        "</device_attributes><shared_fb_memory_usage><total>20096 MiB</total>"
        "</shared_fb_memory_usage><shared_bar1_usage><total>1 MiB</total></shared_bar1_usage>"
        "</mig_device><mig_device><gpu_instance_id>5</gpu_instance_id><fb_memory_usage>"
        "<total>N/A</total></fb_memory_usage></mig_device></mig_devices>"
    )
    assert gpu.mig.instances == (
        MigInstance(1, 42, 20096 * 2**20),
        MigInstance(5, NOT_IN_INPUT, Missing("not-applicable", "nvidia-smi says N/A")),
    )


def test_a_name_with_an_ampersand_is_no_end_of_the_report() -> None:
    text = T4.replace(">python<", ">C:\\R&D tools\\x &amp; y.exe --a=b&c=d<")
    processes = nvidia_smi_xml(text).gpus[0].processes
    assert isinstance(processes, tuple)
    assert processes[1] == Process(5762, "C", "C:\\R&D tools\\x & y.exe --a=b&c=d", 1005 * 2**20)


def test_accounting_and_clocks_are_not_searched_for_errors() -> None:
    lists = (
        "<supported_clocks><supported_mem_clock><value>ERR!</value></supported_mem_clock>"
        "</supported_clocks><accounted_processes><accounted_process_info><pid>ERR!</pid>"
        "</accounted_process_info></accounted_processes><processes><process_info><pid>1</pid>"
        "<process_name>ERR!</process_name></process_info></processes>"
    )
    assert one(lists).unreadable == ()
    assert one(lists + "<voltage><graphics_volt>ERR!</graphics_volt></voltage>").unreadable == (
        "Graphics Volt: ERR!",
    )


def test_an_error_carries_the_label_of_the_text() -> None:
    """The same trouble reads the same in both forms."""
    fields = "<addressing_mode>Unknown Error</addressing_mode>"
    link = "<pci><pci_gpu_link_info><link_widths><current_link_width>ERR!</current_link_width>"
    close = "</link_widths></pci_gpu_link_info></pci>"
    assert one(fields + link + close).unreadable == (
        "Addressing Mode: Unknown Error",
        "PCI/GPU Link Info/Link Width/Current: ERR!",
    )


def test_line_numbers_hold_though_clocks_are_left_out() -> None:
    text = "MOTD\n\n" + TWO
    second = nvidia_smi_xml(text).gpus[1]
    assert second.line == 870
    assert text.split("\n")[869].strip() == '<gpu id="00000000:C1:00.0">'
    broken = text.replace("<uuid>GPU-", "<uuid><GPU-")
    first_uuid = broken[: broken.index("<uuid>")].count("\n") + 1
    with pytest.raises(ParseError, match=rf"^line {first_uuid}: not well-formed XML: ") as raised:
        nvidia_smi_xml(broken)
    assert raised.value.line == first_uuid


def test_the_bus_id_stands_in_for_an_id() -> None:
    fields = "<pci><pci_bus_id>0000:1C:00.0</pci_bus_id></pci>"
    text = f"<nvidia_smi_log><gpu>{fields}</gpu></nvidia_smi_log>"
    assert nvidia_smi_xml(text).gpus[0].bus_id == "00000000:1c:00.0"


BOMB = "".join(f'<!ENTITY lol{i} "{f"&lol{i - 1};" * 10 if i else "lol"}">' for i in range(10))


@pytest.mark.parametrize(
    "subset",
    [
        BOMB,
        '<!ENTITY file SYSTEM "file:///etc/passwd">',
        '<!ENTITY web PUBLIC "x" "http://192.0.2.1/x">',
        '<!ENTITY % all SYSTEM "file:///etc/passwd"> %all;',
        '<!ENTITY harmless "x">',
    ],
    ids=["billion laughs", "file", "web", "parameter", "harmless"],
)
def test_entities_are_refused(subset: str) -> None:
    name = re.findall(r"ENTITY (?:% )?(\w+)", subset)[0]
    text = T4.replace('SYSTEM "nvsmi_device_v11.dtd">', f"[{subset}]>").replace(
        "Tesla T4", "&lol9;&file;&web;"
    )
    assert subset in text
    with pytest.raises(ParseError, match=f"line 2: the XML declares an entity, '{name}': refused"):
        nvidia_smi_xml(text)


def test_an_entity_that_nothing_declares_brings_nothing() -> None:
    text = T4.replace("Tesla T4", "Tesla&undeclared; T4")
    assert nvidia_smi_xml(text).gpus[0].product == "Tesla T4"


def test_depth_is_no_trouble() -> None:
    deep = "<a>" * 100_000 + "</a>" * 100_000
    gpu = one(f"<serial>7</serial>{deep}<uuid>GPU-1</uuid>")
    assert (gpu.serial, gpu.uuid) == ("7", "GPU-1")


def test_a_cut_leaves_the_gpus_that_are_whole() -> None:
    whole = nvidia_smi_xml(TWO)
    for end in (
        TWO.index("</gpu>") + len("</gpu>"),
        TWO.index('<gpu id="00000000:C1'),
        TWO.rindex("<product_name>") + 5,
        TWO.rindex("</gpu>") + 3,
        TWO.rindex("<supported_clocks>") + 100,
    ):
        found = nvidia_smi_xml(TWO[:end])
        assert (found.driver, found.attached) == (whole.driver, 2)
        # The warning of a corrupted infoROM stands behind the last GPU.
        [first] = [structs.replace(gpu, inforom_corrupted=False) for gpu in found.gpus]
        assert first.name == "0000:81:00.0"
        assert structs.replace(first, index=0, name="gpu0") == whole.gpus[0]
    assert nvidia_smi_xml(TWO[: TWO.rindex("</nvidia_smi_log>") + 4]) == whole


def test_a_cut_in_the_head_leaves_the_head() -> None:
    found = nvidia_smi_xml(TWO[: TWO.index("<uuid>")])
    assert (found.driver.version, found.attached, found.gpus) == ("590.44.01", 2, ())
    found = nvidia_smi_xml(TWO[: TWO.index("</cuda_version>") + 3])
    assert (found.driver.version, found.driver.cuda, found.attached) == (
        "590.44.01", NOT_IN_INPUT, NOT_IN_INPUT,
    )  # fmt: skip


@pytest.mark.parametrize("end", ["<nvidia_smi_log>", "Tue Dec 30", "</timestamp>", "0.44.01</driv"])
def test_a_cut_before_anything_is_whole(end: str) -> None:
    text = TWO[: TWO.index(end) + len(end)]
    last = text.count("\n") + 1
    with pytest.raises(ParseError) as raised:
        nvidia_smi_xml(text)
    assert (
        str(raised.value)
        == f"line {last}: the XML ends at line {last}, before its first GPU is whole"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("</uuid>", "</uid>"), ("<serial>", "<ser<ial>"), ("Tesla", "\x00"), ("Tesla", "\ud800<")],
)
def test_malformed_is_an_error_with_its_line(old: str, new: str) -> None:
    text = T4.replace(old, new)
    line = T4[: T4.index(old)].count("\n") + 1
    with pytest.raises(ParseError, match=rf"^line {line}: not well-formed XML: "):
        nvidia_smi_xml(text)


def test_malformed_before_a_cut_is_no_cut() -> None:
    with pytest.raises(ParseError, match="not well-formed XML"):
        nvidia_smi_xml(MIG.replace("</uuid>", "</uid>")[: MIG.rindex("</nvidia_smi_log>")])
