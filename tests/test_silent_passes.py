"""Ways in which health checks pass what they did not see, fail what is sound, or judge the wrong
number: each was found in a tool that is in use, and each has a test of its own here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.judge.operators import OPERATORS
from preflight.model import HostReport, Missing, Raw, Result, Status
from tests.conftest import sample

ALL = load(DOMAINS).checks
X8 = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"
EIGHT_ON_PCI = "".join(
    f"0000:{bus}:00.0 0x030200 0x10de 0x2330 nvidia\n"
    for bus in ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")
)
IDENTITY = "hostname node-07\ndate 2026-01-02T03:04:05Z\nuptime 864000.0 1\nuid 0\n"


def judged(*raws: Raw) -> HostReport:
    return examine("node-07", raws, ALL)


def answer(probe: str, text: str = "", rc: int = 0, stderr: str = "") -> Raw:
    return Raw("node-07", probe, (probe,), rc, text, stderr)


def of(report: HostReport, check: str) -> list[Result]:
    return [one for one in report.results if one.check == check]


def edited(text: str, label: str, old: str, new: str, count: int = -1) -> str:
    """The text with another value behind the label; the edit must change something."""
    found = re.sub(rf"({label} +: ){old}\b", rf"\g<1>{new}", text, count=max(count, 0))
    assert found != text, f"{label} is never {old}"
    return found


def statuses(results: Iterable[Result]) -> set[Status]:
    return {one.status for one in results}


# "Could not run" equals OK


def test_a_tool_that_is_not_installed_is_not_a_healthy_gpu() -> None:
    report = judged(answer("pci", EIGHT_ON_PCI + "end\n"), answer("nvidia-smi", rc=127))
    assert statuses(of(report, "gpu.ecc.dram_uncorrected")) == {Status.ERROR}
    assert report.verdict is Status.ERROR


def test_a_tool_that_breaks_down_is_not_a_healthy_gpu() -> None:
    report = judged(answer("nvidia-smi", "", 255, "Segmentation fault"))
    assert Status.PASS not in statuses(of(report, "gpu.answers"))
    assert report.verdict is Status.ERROR


def test_nvidia_smi_that_exits_0_after_a_gpu_was_lost_is_not_a_pass() -> None:
    lost = "Unable to determine the device handle for GPU 0000:19:00.0: GPU is lost."
    report = judged(answer("nvidia-smi-q", sample(X8) + lost))
    assert Status.FAIL in statuses(of(report, "gpu.answers"))


def test_a_kernel_log_that_may_not_be_read_is_not_a_log_without_xids() -> None:
    report = judged(answer("dmesg", "", 1, "dmesg: read kernel buffer failed: not permitted"))
    assert statuses(of(report, "gpu.xid.79")) == {Status.ERROR}


def test_a_kernel_log_that_is_not_there_is_not_a_log_without_xids() -> None:
    report = judged(answer("nvidia-smi-q", sample(X8)))
    assert statuses(of(report, "gpu.xid.79")) == {Status.SKIP}


def test_an_empty_answer_is_not_a_healthy_host() -> None:
    report = judged(answer("nvidia-smi-q", ""), answer("dmesg", ""))
    assert report.verdict is Status.ERROR


def test_a_report_in_which_everything_was_skipped_is_not_verified_and_never_a_pass() -> None:
    report = examine("node-07", [], ALL)
    assert statuses(report.results) == {Status.SKIP}
    assert report.verdict is Status.SKIP


def test_a_value_that_the_driver_could_not_read_is_not_zero() -> None:
    text = edited(sample(X8), "DRAM Uncorrectable", "0", "N/A")
    (gpu, *_) = known(assemble("node-07", [answer("nvidia-smi-q", text)]).host.gpus)
    assert isinstance(gpu.ecc.volatile_dram_uncorrected, Missing)


def known(value: object) -> tuple:  # type: ignore[type-arg]
    assert isinstance(value, tuple)
    return value


# Rows that are not counted, and only the first of them judged


def test_seven_rows_of_eight_gpus_are_a_missing_gpu() -> None:
    text = edited(sample(X8), "Attached GPUs", "8", "7")
    seven = text[: text.index("GPU 00000000:DB:00.0")]
    report = judged(
        answer("identity", IDENTITY),
        answer("pci", EIGHT_ON_PCI + "end\n"),
        answer("nvidia-smi-q", seven),
    )
    (count,) = of(report, "gpu.count")
    assert (count.status, count.measured) == (Status.FAIL, 7)


def test_no_row_at_all_is_not_a_pass() -> None:
    report = judged(answer("pci", EIGHT_ON_PCI + "end\n"), answer("nvidia-smi-q", ""))
    assert report.verdict is Status.ERROR
    assert Status.PASS not in statuses(of(report, "gpu.count"))


def test_the_last_of_eight_gpus_is_judged_as_the_first() -> None:
    text = sample(X8)
    at = text.index("GPU 00000000:DB:00.0")
    hot = edited(text[at:], "HW Thermal Slowdown", "Not Active", "Active", 1)
    found = of(judged(answer("nvidia-smi-q", text[:at] + hot)), "gpu.throttle.hw_thermal")
    assert [one.subject for one in found if one.status is Status.FAIL] == ["gpu7"]


# The wrong column, the wrong table


REMAPPED = """\
    Remapped Rows
        Correctable Error             : 1
        Uncorrectable Error           : 2
        Pending                       : {pending}
        Remapping Failure Occurred    : {failure}
"""


@pytest.mark.parametrize(
    ("pending", "failure", "failed"),
    [
        ("No", "Yes", {"gpu.remap.failure"}),
        ("Yes", "No", {"gpu.remap.pending"}),
        ("No", "No", set()),
    ],
)
def test_a_failed_row_remapping_is_read_from_its_own_field_and_is_told(
    pending: str, failure: str, failed: set[str]
) -> None:
    text = "GPU 00000000:19:00.0\n" + REMAPPED.format(pending=pending, failure=failure)
    report = judged(answer("nvidia-smi-q", text))
    assert {one.check for one in report.results if one.status is Status.FAIL} == failed


def test_more_than_512_uncorrectable_remaps_fail_although_nothing_is_pending() -> None:
    text = REMAPPED.format(pending="No", failure="No").replace(": 2", ": 513")
    report = judged(answer("nvidia-smi-q", "GPU 00000000:19:00.0\n" + text))
    assert statuses(of(report, "gpu.remap.uncorrected")) == {Status.FAIL}


def test_rows_that_wait_for_their_spare_count_on_a_gpu_that_retires_no_pages() -> None:
    report = judged(
        answer("nvidia-smi-q", sample("nvidia_smi_q/a10_535.129_row_remap_pending.txt"))
    )
    assert statuses(of(report, "gpu.remap.pending")) == {Status.FAIL}
    assert statuses(of(report, "gpu.retired.pending")) == {Status.SKIP}


def test_versions_are_compared_as_numbers_and_not_as_text() -> None:
    holds = OPERATORS["version"].holds
    assert holds("1.9.0", "<1.39.0")
    assert not holds("1.100.0", "<1.39.0")


# Xids


def xid(code: int, rest: str = "pid=1, name=python") -> Raw:
    log = "[    0.0] Linux version 6.8.0\n"
    return answer("kernel-log", f"{log}[ 9.0] NVRM: Xid (PCI:0000:19:00): {code}, {rest}\n")


def test_xid_63_alone_is_a_remapped_row_and_no_fault() -> None:
    report = judged(xid(63, "Row Remapper: New row (0x1) marked for remapping"))
    assert Status.FAIL not in statuses(of(report, "gpu.xid.63"))


@pytest.mark.parametrize("code", [95, 109, 119, 120, 140, 143])
def test_an_xid_that_others_leave_out_of_their_list_fails(code: int) -> None:
    assert statuses(of(judged(xid(code)), f"gpu.xid.{code}")) == {Status.FAIL}


def test_xid_43_and_45_after_another_xid_are_its_echo_and_not_two_more_faults() -> None:
    log = (
        "[ 9.0] NVRM: Xid (PCI:0000:19:00): 79, pid=1, GPU has fallen off the bus.\n"
        "[ 9.5] NVRM: Xid (PCI:0000:19:00): 45, pid=1, name=python, Ch 00000001\n"
    )
    report = judged(answer("kernel-log", log))
    assert statuses(of(report, "gpu.xid.79")) == {Status.FAIL}
    assert statuses(of(report, "gpu.xid.45")) == {Status.PASS}


def test_a_gpu_that_fell_off_the_bus_without_an_xid_is_found() -> None:
    line = "[ 9.0] NVRM: GPU 0000:19:00.0: GPU has fallen off the bus.\n"
    assert statuses(of(judged(answer("kernel-log", line)), "kernel.off_bus")) == {Status.FAIL}


def test_an_xid_of_last_week_does_not_warn_for_ever() -> None:
    log = (
        "2026-01-02T03:04:05,000000+00:00 kernel: Linux version 6.8.0\n"
        "2026-01-02T03:05:05,000000+00:00 NVRM: Xid (PCI:0000:19:00): 31, pid=1, name=python, MMU\n"
        "2026-01-12T03:05:05,000000+00:00 usb 1-2: new device\n"
    )
    assert statuses(of(judged(answer("kernel-log", log)), "gpu.xid.31")) == {Status.PASS}


# A question that hangs


def test_a_question_that_hangs_is_named_and_not_called_script_timed_out() -> None:
    hung = Raw("node-07", "nvidia-smi", ("nvidia-smi", "-q", "-x"), 124, elapsed_s=30.0)
    report = judged(hung)
    assert statuses(of(report, "gpu.driver.hangs")) == {Status.FAIL}
    (seen,) = of(report, "gpu.driver.hangs")
    assert "hangs" in str(seen.measured)


# What is normal, called a fault


def test_a_low_pcie_generation_at_idle_is_power_saving() -> None:
    report = judged(answer("nvidia-smi", sample("nvidia_smi_xml/rtx3060_570.124.xml")))
    assert Status.FAIL not in statuses(of(report, "pcie.gen"))
    assert Status.WARN not in statuses(of(report, "pcie.gen"))


def test_a_gen3_link_of_a_gen5_card_at_work_is_told_although_gen3_is_fast() -> None:
    text = edited(sample(X8), "Current", "5", "3")
    assert Status.WARN in statuses(of(judged(answer("nvidia-smi-q", text)), "pcie.gen"))


def test_corrected_errors_alone_never_fail() -> None:
    text = edited(sample(X8), "DRAM Correctable", "0", "99000000")
    report = judged(answer("nvidia-smi-q", text))
    assert statuses(of(report, "gpu.ecc.dram_corrected")) == {Status.WARN}


def test_the_power_cap_at_full_power_is_normal() -> None:
    text = edited(sample(X8), "SW Power Cap", "Not Active", "Active")
    text = edited(text, "Power Draw", r"\d+\.\d+ W", "698.00 W")
    report = judged(answer("nvidia-smi-q", text))
    assert statuses(of(report, "gpu.throttle.power_cap")) == {Status.PASS}


def test_a_gpu_without_ecc_is_skipped_and_not_failed() -> None:
    report = judged(answer("nvidia-smi-q", sample("nvidia_smi_q/rtx4090_x8_535.154_idle.txt")))
    assert statuses(of(report, "gpu.ecc.dram_uncorrected")) == {Status.SKIP}


# What is expected comes from the model, not from a constant


def links(product: str, up: int, listed: int) -> HostReport:
    head = f"GPU 0: {product} (UUID: GPU-0000feed-0000-4000-8000-000000000001)\n"
    told = [
        f"\t Link {link}: {'26.562 GB/s' if link < up else '<inactive>'}\n"
        for link in range(listed)
    ]
    return judged(answer("nvlink", head + "".join(told)))


def test_links_that_are_down_are_found_although_nobody_stated_how_many_there_are() -> None:
    assert statuses(of(links("NVIDIA H100 80GB HBM3", 17, 18), "nvlink.up")) == {Status.FAIL}


def test_a_gpu_with_all_its_links_down_is_not_a_gpu_without_nvlink() -> None:
    text = sample("nvlink/a100_sxm4_gpu6_all_links_inactive.txt")
    assert statuses(of(judged(answer("nvlink", text)), "nvlink.up")) == {Status.FAIL}


def test_twelve_of_eighteen_links_are_whole_on_a_card_that_is_built_so() -> None:
    assert statuses(of(links("NVIDIA H100 NVL", 12, 18), "nvlink.up")) == {Status.PASS}


def test_links_are_not_counted_twice_where_the_capabilities_follow() -> None:
    report = judged(answer("nvlink", sample("nvlink/h100_gpu0_status_then_capabilities.txt")))
    (up,) = of(report, "nvlink.up")
    assert (up.status, up.measured) == (Status.PASS, 18)


# DCGM's diagnostics, read by others

DIAG = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Hardware",
                "tests": [
                    {
                        "name": "memory",
                        "results": [
                            {
                                "entity_group": "GPU",
                                "entity_group_id": 1,
                                "entity_id": 0,
                                "status": "Pass",
                            },
                            {
                                "entity_group": "GPU",
                                "entity_group_id": 1,
                                "entity_id": 1,
                                "status": "Fail",
                            },
                        ],
                    }
                ],
            }
        ]
    },
    "entity_groups": [
        {
            "entities": [{"entity_id": 0}, {"entity_id": 1}],
            "entity_group": "GPU",
            "entity_group_id": 1,
        }
    ],
}


def diag(*, status: str = "Fail", warning: dict[str, object] | None = None) -> HostReport:
    text = json.dumps(DIAG).replace('"Fail"', json.dumps(status))
    told = json.loads(text)
    result = told["DCGM Diagnostic"]["test_categories"][0]["tests"][0]["results"][1]
    result.update({"warnings": [warning]} if warning else {})
    return judged(answer("dcgmi-diag", json.dumps(told)))


def failed(report: HostReport) -> list[Result]:
    return [one for one in report.results if one.status is Status.FAIL]


def test_the_second_gpu_of_a_dcgm_test_is_judged_as_the_first() -> None:
    assert ["gpu1" in one.subject.replace(" ", "") for one in failed(diag())] == [True]


def test_dcgm_tests_that_were_all_skipped_verified_nothing() -> None:
    text = json.dumps(DIAG).replace('"Pass"', '"Skip"').replace('"Fail"', '"Skip"')
    report = judged(answer("dcgmi-diag", text))
    assert Status.PASS not in statuses(of(report, "dcgm.verified"))
    assert report.verdict is not Status.PASS


@pytest.mark.parametrize(
    ("severity", "action"), [(2, "drain"), (6, "reset-gpu"), (5, "fix-config")]
)
def test_dcgm_s_severities_are_not_read_upside_down(severity: int, action: str) -> None:
    warning = {
        "warning": "it failed",
        "error_id": 1,
        "error_severity": severity,
        "error_category": 3,
    }
    (one,) = failed(diag(warning=warning))
    assert one.action.value == action


def test_an_allocation_error_beside_a_dcgm_pass_is_not_a_pass() -> None:
    warning = {"warning": "Error using CUDA API cudaMalloc: out of memory", "error_id": 28}
    assert diag(status="Pass", warning=warning).verdict is not Status.PASS


# Services and bit masks


def test_a_combined_mask_of_throttle_reasons_is_not_read_as_none() -> None:
    text = edited(sample(X8), "SW Power Cap", "Not Active", "Active")
    report = judged(answer("nvidia-smi-q", text))  # power cap, slowdown and brake at once
    assert statuses(of(report, "gpu.throttle.power_brake")) == {Status.FAIL}
