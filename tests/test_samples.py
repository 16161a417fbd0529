"""Every sample is judged as a person who knows GPUs judges it (samples' INDEX.md): the verdict, and
all checks that did not pass with their subjects."""

from __future__ import annotations

import re

import pytest

from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.judge.overrides import mark
from preflight.model import HostReport, Raw, Status
from tests.conftest import SAMPLES, sample_bytes

PROBES = {
    "nvidia_smi_q": "nvidia-smi-q",
    "nvidia_smi_xml": "nvidia-smi",
    "kernel_log": "kernel-log",
    "lspci": "lspci",
    "lspci_tree": "lspci-tree",
    "hwloc": "hwloc",
    "nvidia_smi_table": "nvidia-smi-table",
    "nvlink": "nvlink",
    "ipmi_sdr": "ipmi-sdr",
    "dcgmi_diag": "dcgmi-diag",
    "dmon": "nvidia-smi-dmon",
}
ALL_8 = "gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7"
CUT = "ERROR gpu.count input"
SLOT_POWER = (
    "1a:00.0 1b:00.0 1b:00.1 3c:00.0 4d:00.0 5e:00.0 9c:00.0 9d:00.0 9d:00.1 bc:00.0 cc:00.0"
)

#: sample -> the verdict, then one line per check that did not pass: status, check, subjects.
TABLE: dict[str, tuple[str, ...]] = {
    # All eight are held back by the chassis, near idle; the brake is told once, not again as the
    # hardware slowdown that comes with it.
    "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt": (
        "FAIL", f"FAIL gpu.throttle.power_brake {ALL_8}",
    ),
    "nvidia_smi_q/h100_sxm_x8_535.183_one_gpu_throttled.txt": (
        "FAIL", "FAIL gpu.throttle.power_brake gpu2", "FAIL gpu.throttle.sw_thermal gpu2",
        "WARN gpu.throttle.power_cap gpu2",
    ),
    "nvidia_smi_q/h100_sxm_535.183_truncated.txt": ("ERROR", CUT),
    "nvidia_smi_q/rtx4090_x8_535.154_idle.txt": ("PASS",),
    "nvidia_smi_q/rtx4090_x8_535.154_busy_unknown_error.txt": (
        "ERROR", f"WARN gpu.report.readable {ALL_8}", "ERROR gpu.addressing.same gpu0",
    ),
    "nvidia_smi_q/a10_535.129_row_remap_pending.txt": ("FAIL", "FAIL gpu.remap.pending gpu0"),
    "nvidia_smi_q/titan_v_560.35_workstation.txt": ("PASS",),
    "nvidia_smi_q/a100_510.73_row_remap_pending_excerpt.txt": (
        "FAIL", CUT, "FAIL gpu.remap.pending 10:1c.0",
    ),
    "nvidia_smi_q/sram_uncorrectable_volatile1_aggregate5_excerpt.txt": (
        "FAIL", "FAIL gpu.ecc.sram_uncorrected gpu0", "FAIL gpu.ecc.sram_lifetime gpu0",
    ),
    "nvidia_smi_q/d_page_retirement_535.86_x8_clean.txt": ("PASS",),
    "nvidia_smi_q/d_page_retirement_535.86_x8_pending_edited.txt": (
        "FAIL", "FAIL gpu.retired.pending gpu1 gpu3 gpu5 gpu7",
        "FAIL gpu.retired.total gpu0 gpu1 gpu5 gpu7",
    ),
    "nvidia_smi_q/d_clock_p100_375.66.txt": ("ERROR", CUT),
    "nvidia_smi_q/d_performance_v100_410.48_no_header.txt": ("PASS",),
    "nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml": (
        "ERROR", CUT, "WARN gpu.persistence 01:00.0", "WARN gpu.mig.off 01:00.0",
    ),
    "nvidia_smi_xml/a10g_515.105.xml": ("PASS",),
    "nvidia_smi_xml/tesla_t4_515.105.xml": ("PASS",),
    "nvidia_smi_xml/rtx3060_570.124.xml": ("PASS",),
    "nvidia_smi_xml/rtx4000_sff_ada_595.84_v13.xml": ("PASS",),
    "nvidia_smi_xml/quadro_p400_418.43_old.xml": ("WARN", "WARN gpu.persistence gpu0"),
    "nvidia_smi_xml/rtx_pro_6000_blackwell_590.44_v13.xml": ("PASS",),
    "nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml": ("PASS",),
    "nvidia_smi_xml/grid_p4_1q_vgpu_513.46_windows.xml": ("PASS",),
    "kernel_log/xid119_gsp_rpc_timeout_h100.log": ("FAIL", "FAIL gpu.xid.119 00000000:9b:00.0"),
    # 394 lines of one application's fault over the whole chip, and its echo 43.
    "kernel_log/xid13_43_pt_main_thread_decoded_iso.log": (
        "WARN", "WARN gpu.xid.13 00000000:38:00.0",
    ),
    "kernel_log/boot_xe9680_h100_mlx5_insufficient_power.log": (
        "WARN", f"WARN nic.slot_power {SLOT_POWER} dc:00.0",
    ),
    "kernel_log/libnccl_segfault_decoded_iso.log": (
        "WARN", "WARN kernel.segfault_cuda pt_main_thread",
    ),
    "kernel_log/peermem_invalid_context.log": ("WARN", "WARN gpu.peermem input"),
    "kernel_log/kmsg_raw_format_peermem.log": ("WARN", "WARN gpu.peermem input"),
    # The link events are ordinary; the log also holds 14 of the lines of the two samples above.
    "kernel_log/journal_short_iso_link_events.log": ("WARN", "WARN gpu.peermem input"),
    "kernel_log/pstore_genoa_panic_test.log": ("WARN", "WARN kernel.panic_asked input"),
    "kernel_log/syslog_ib6_link_flaps.log": ("FAIL", "FAIL nic.link_flap ib6"),
    "kernel_log/fabricmanager_nvswitch_12028_nonfatal.log": (
        "WARN",
        "WARN gpu.sxid.12028 00000000:83:00.0 00000000:84:00.0 00000000:85:00.0 00000000:86:00.0",
    ),
    "kernel_log/fabricmanager_inband_info_12028.log": (
        "WARN", "WARN gpu.sxid.12028 00000000:86:00.0",
    ),
    # The root fails; the switch lines that follow from it only warn.
    "kernel_log/xid79_then_sxid20034_fatal.log": (
        "FAIL", "FAIL gpu.xid.79 00000000:91:00.0",
        "WARN gpu.sxid.20034 nvidia-nvswitch0 nvidia-nvswitch1 nvidia-nvswitch2",
    ),
    "kernel_log/gb200_xid149_154_nvlink5.log": (
        "FAIL", "FAIL gpu.xid.149 00000008:01:00.0 00000009:01:00.0",
        "FAIL gpu.xid.154 00000008:01:00.0 00000009:01:00.0 00000018:01:00.0 00000019:01:00.0",
    ),
    # The line asks for a reset, and nothing in the input says that one came.
    "kernel_log/xid63_row_remap_a100.log": ("WARN", "WARN gpu.xid.63 00000000:10:1c.0"),
    "kernel_log/pcie_limited_by_gen4_switch_h100.log": (
        "WARN", "WARN pcie.limited 04:00.0 8b:00.0",
    ),
    # lspci
    "lspci/xe9680_h100_x8_cx7_vvv_devices.txt": ("PASS",),
    # Bridges alone: what is downgraded there has a slower device below it, and no GPU is shown.
    "lspci/xe9680_h100_bridges_acs_and_downgraded_vvv.txt": ("SKIP",),
    "lspci/gb200_plain.txt": ("PASS",),
    "lspci/a100_x8_nvswitch_nn.txt": ("PASS",),
    "lspci/a10_nn.txt": ("PASS",),
    # Drawings, without the links: what there is cannot be judged.
    "lspci_tree/esc8000a_e12_rtx6000ada_cx7_4_of_8_roots.txt": ("SKIP",),
    "hwloc/vm_2cpu_v1.xml": ("SKIP",),
    "hwloc/vm_2cpu_v2.xml": ("SKIP",),
    "lspci/optimus_gpu_rev_ff_excerpt.txt": ("WARN", "WARN pcie.device.asleep 01:00.0"),
    # The table of bare nvidia-smi, and NVLink
    "nvidia_smi_table/rtx_525.125_fan_err.txt": (
        "WARN", "WARN gpu.persistence gpu0", "WARN gpu.report.readable gpu0",
    ),
    "nvidia_smi_table/h100_sxm_x8_550.90_idle.txt": ("PASS",),
    # `0*`: no error, and the mode changes at the next reset.
    "nvidia_smi_table/h100_sxm_x8_555.42_ecc_asterisk.txt": (
        "WARN", f"WARN gpu.ecc.pending {ALL_8}", f"WARN gpu.persistence {ALL_8}",
    ),
    "nvidia_smi_table/h100_sxm_x8_535.183.txt": ("PASS",),
    "nvidia_smi_table/h100_sxm_x8_580.159.txt": ("PASS",),
    "nvidia_smi_table/h200_x8_570.172.txt": ("PASS",),
    "nvidia_smi_table/v100_pcie_x4_410.48.txt": (
        "WARN", "WARN gpu.persistence gpu0 gpu1 gpu2 gpu3",
        "WARN gpu.memory.unexplained gpu1 gpu2 gpu3",
    ),
    "nvidia_smi_table/k80_x4_375.66_old_layout.txt": ("PASS",),
    "nvlink/a100_sxm4_x8_status.txt": ("PASS",),
    "nvlink/a100_sxm4_gpu7_status.txt": ("PASS",),
    "nvlink/a100_sxm4_gpu6_all_links_inactive.txt": ("FAIL", "FAIL nvlink.up gpu6"),
    "nvlink/a100_sxm4_gpu0_status_two_space_indent.txt": ("PASS",),
    "nvlink/h100_gpu0_status_then_capabilities.txt": ("PASS",),
    "nvlink/h100_errorcounters_excerpt.txt": ("PASS",),
    "nvlink/h100_status_excerpt.txt": ("PASS",),
    # The BMC's sensors. A supply without AC, though its status column says ok; what it says of a
    # failure follows from that.
    "ipmi_sdr/sdr_elist_psu2_ac_lost_fragment.txt": (
        "FAIL", "FAIL chassis.psu.input Power Supply 2", "WARN chassis.redundancy Power Supplies",
    ),
    "ipmi_sdr/sdr_elist_v2_curated_lines.txt": ("PASS",),
    "ipmi_sdr/sdr_v1_ibm_x_full_ok.txt": ("PASS",),
    "ipmi_sdr/sdr_v1_with_command_errors.txt": ("PASS",),
    # DCGM's diagnostics. A part without its end verifies nothing, whatever it shows.
    "dcgmi_diag/r2_a100_x8_dcgm3.3.3_pass.txt": ("PASS",),
    "dcgmi_diag/r3_a16_x4_dcgm4.0.0_pass.txt": ("PASS",),
    "dcgmi_diag/dcgm3.1_json_leading_warning_and_nulls.json": ("PASS",),
    "dcgmi_diag/r4_memtest_persistence_mode_fail.txt": (
        "FAIL", "FAIL dcgm.config Persistence Mode gpu0",
    ),
    "dcgmi_diag/r2_thermal_violation_gpu0_fragment.txt": (
        "FAIL", "ERROR dcgm.verified input", "FAIL dcgm.thermal GPU Memory gpu0",
    ),
    "dcgmi_diag/deployment_row_remap_pending_gpu3_fragment.txt": (
        "FAIL", "ERROR dcgm.verified input", "FAIL dcgm.remap Deployment gpu3",
    ),
    # GPUs watched over time
    "dmon/one_gpu_7000mhz_ramp_up.txt": ("PASS",),
    "dmon/one_gpu_video_transcode_15s.txt": ("PASS",),
    "dmon/gtx1650ti_wsl_sm_mem_dashes.txt": ("PASS",),
    "dmon/k40m_x2_one_idle_one_busy.txt": ("WARN", "WARN live.load.even gpu0"),
}  # fmt: skip


def _judge(name: str) -> HostReport:
    text = sample_bytes(name).decode(errors="replace")
    checks = mark(load(DOMAINS).checks, ["gpu.present"], asked=True)
    return examine("input", [Raw("input", PROBES[name.split("/")[0]], stdout=text)], checks)


def _lines(report: HostReport) -> set[str]:
    found: dict[str, list[str]] = {}
    for one in report.results:
        if one.status not in (Status.PASS, Status.SKIP):
            subject = re.sub(r"^0000:(?=..:)", "", one.subject)
            found.setdefault(f"{one.status.value} {one.check}", []).append(subject)
    return {f"{key} {' '.join(sorted(subjects))}" for key, subjects in found.items()}


@pytest.mark.parametrize("name", TABLE)
def test_sample(name: str) -> None:
    report = _judge(name)
    assert _lines(report) == set(TABLE[name][1:])
    assert report.verdict.value == TABLE[name][0]


def test_every_sample_is_in_the_table() -> None:
    here = {
        f"{path.parent.name}/{path.name}" for kind in PROBES for path in (SAMPLES / kind).iterdir()
    }
    assert here == set(TABLE)
    assert len(here) == 75


@pytest.mark.parametrize("name", TABLE)
def test_what_did_not_pass_shows_the_line_that_says_so(name: str) -> None:
    lines = sample_bytes(name).decode(errors="replace").split("\n")
    for one in _judge(name).results:
        for evidence in one.evidence:
            assert evidence.line is not None
            told = evidence.text.rpartition(" / ")[2]
            assert told[:40] in lines[evidence.line - 1].strip().replace("\t", " ")
        if one.status in (Status.FAIL, Status.WARN):
            assert one.evidence, one.check
            assert one.why, one.check
            assert one.fix, one.check
            assert one.runbook, one.check


def test_the_line_of_a_label_that_many_sections_have_names_its_section() -> None:
    report = _judge("nvidia_smi_q/a10_535.129_row_remap_pending.txt")
    (pending,) = [one for one in report.results if one.check == "gpu.remap.pending"]
    assert " ".join(pending.evidence[0].text.split()) == "Remapped Rows / Pending : Yes"


def _measured(name: str, check: str) -> dict[str, object]:
    return {one.subject: one.measured for one in _judge(name).results if one.check == check}


def test_what_a_section_does_not_hold_is_skipped_and_says_so() -> None:
    report = _judge("nvidia_smi_q/d_page_retirement_535.86_x8_clean.txt")
    by_check = {one.check: one for one in report.results}
    assert by_check["gpu.retired.total"].status is Status.PASS
    for check in ("gpu.temperature", "pcie.width", "gpu.ecc.dram_uncorrected", "gpu.xid.79"):
        assert by_check[check].status is Status.SKIP, check


def test_figures_that_a_person_would_read_off() -> None:
    brake = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"
    assert set(_measured(brake, "pcie.width").values()) == {16}
    assert set(_measured(brake, "pcie.gen").values()) == {5}
    assert set(_measured(brake, "gpu.ecc.dram_uncorrected").values()) == {0}
    vgpu = "nvidia_smi_xml/grid_p4_1q_vgpu_513.46_windows.xml"
    assert _measured(vgpu, "gpu.temperature") == {"gpu0": None}
    pages = "nvidia_smi_q/d_page_retirement_535.86_x8_pending_edited.txt"
    assert _measured(pages, "gpu.retired.total") == {
        "gpu0": 65, "gpu1": 63, "gpu2": 0, "gpu3": 6, "gpu4": 0, "gpu5": 65, "gpu6": 0, "gpu7": 64,
    }  # fmt: skip
    # A cloud's x8 of x16 is how the instance presents its slot: shown, not judged.
    skipped = _measured("nvidia_smi_xml/a10g_515.105.xml", "pcie.width")
    assert list(skipped.values()) == ["8"]


def test_two_consequences_name_their_root() -> None:
    report = _judge("kernel_log/xid79_then_sxid20034_fatal.log")
    reasons = [one.reason for one in report.results if one.check == "gpu.sxid.20034"]
    assert all("follows Xid 79 on 00000000:91:00.0" in reason for reason in reasons)


def test_nvlink_is_counted_once_and_never_of_an_excerpt() -> None:
    assert _measured("nvlink/h100_gpu0_status_then_capabilities.txt", "nvlink.up") == {"gpu0": 18}
    eight = _measured("nvlink/a100_sxm4_x8_status.txt", "nvlink.up")
    assert eight == {f"gpu{index}": 12 for index in range(8)}
    for name, check in (("status", "nvlink.up"), ("errorcounters", "nvlink.errors.replay")):
        report = _judge(f"nvlink/h100_{name}_excerpt.txt")
        (found,) = [one for one in report.results if one.check == check]
        assert (found.status, found.measured) == (Status.SKIP, None)
        assert "excerpt" in found.reason
