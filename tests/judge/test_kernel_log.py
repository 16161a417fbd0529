"""The tables of the kernel log and the function that judges by them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from preflight import datafiles, strict_yaml
from preflight.collect import examine
from preflight.errors import UsageError
from preflight.facts.gpu import Gpu, Remap, Retired
from preflight.facts.host import Host, Identity
from preflight.judge.kernel_log.log import table_checks
from preflight.judge.load import load
from preflight.judge.rules import judge_rule
from preflight.model import Action, Check, Evidence, Missing, Raw, Result, Status
from preflight.probes.kernel_log.log import kernel_log
from tests.conftest import sample

TABLES = {"xid": "xid", "sxid": "sxid", "kernel-events": "kernel_events"}


def table(kind: str) -> Any:
    path = datafiles.root() / "checks" / "data" / f"{TABLES[kind]}.yaml"
    return strict_yaml.load(path.read_text(encoding="utf-8"), path.name)["rows"]


@cache
def shipped() -> tuple[Check, ...]:
    return tuple(check for kind in TABLES for check in table_checks(kind, table(kind), kind))


def host(text: str, **fields: Any) -> Host:
    return Host("node-07", kernel_log=kernel_log(text), **fields)


def judged(text: str, **fields: Any) -> list[Result]:
    return judge_rule("kernel-log", host(text, **fields), shipped())


def bad(results: Sequence[Result]) -> dict[tuple[str, str], str]:
    """(check, subject) -> status, of what did not pass."""
    return {
        (one.check, one.subject): one.status.value
        for one in results
        if one.status is not Status.PASS
    }


def of(results: Sequence[Result], check: str) -> Result:
    (one,) = [one for one in results if one.check == check]
    return one


def xid(at: object, code: int, bus: str = "3b", rest: str = "pid=1, name=a, x") -> str:
    return f"[{at}] NVRM: Xid (PCI:0000:{bus}:00): {code}, {rest}\n"


GPU_3B = "00000000:3b:00.0"
SWITCHES = [f"00000000:{bus}:00.0" for bus in ("83", "84", "85", "86")]

#: Sample -> what does not pass.
SAMPLED: dict[str, dict[tuple[str, str], str]] = {
    "boot_xe9680_h100_mlx5_insufficient_power.log": {
        ("nic.slot_power", f"0000:{nic}"): "WARN"
        for nic in (
            "1a:00.0", "1b:00.0", "1b:00.1", "3c:00.0", "4d:00.0", "5e:00.0",
            "9c:00.0", "9d:00.0", "9d:00.1", "bc:00.0", "cc:00.0", "dc:00.0",
        )
    },
    "fabricmanager_inband_info_12028.log": {("gpu.sxid.12028", SWITCHES[3]): "WARN"},
    "fabricmanager_nvswitch_12028_nonfatal.log": {
        ("gpu.sxid.12028", switch): "WARN" for switch in SWITCHES
    },
    "gb200_xid149_154_nvlink5.log": {
        ("gpu.xid.149", "00000008:01:00.0"): "FAIL",
        ("gpu.xid.149", "00000009:01:00.0"): "FAIL",
        **{("gpu.xid.154", f"000000{gpu}:01:00.0"): "FAIL" for gpu in ("08", "09", "18", "19")},
    },
    "journal_short_iso_link_events.log": {("gpu.peermem", "node-07"): "WARN"},
    "kmsg_raw_format_peermem.log": {("gpu.peermem", "node-07"): "WARN"},
    "libnccl_segfault_decoded_iso.log": {("kernel.segfault_cuda", "pt_main_thread"): "WARN"},
    "pcie_limited_by_gen4_switch_h100.log": {
        ("pcie.limited", "0000:04:00.0"): "WARN", ("pcie.limited", "0000:8b:00.0"): "WARN",
    },
    "peermem_invalid_context.log": {("gpu.peermem", "node-07"): "WARN"},
    "pstore_genoa_panic_test.log": {("kernel.panic_asked", "node-07"): "WARN"},
    "syslog_ib6_link_flaps.log": {("nic.link_flap", "ib6"): "FAIL"},
    "xid119_gsp_rpc_timeout_h100.log": {("gpu.xid.119", "00000000:9b:00.0"): "FAIL"},
    "xid13_43_pt_main_thread_decoded_iso.log": {("gpu.xid.13", "00000000:38:00.0"): "WARN"},
    "xid63_row_remap_a100.log": {("gpu.xid.63", "00000000:10:1c.0"): "WARN"},
    "xid79_then_sxid20034_fatal.log": {
        ("gpu.xid.79", "00000000:91:00.0"): "FAIL",
        **{("gpu.sxid.20034", f"nvidia-nvswitch{n}"): "WARN" for n in (0, 1, 2)},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLED)
def test_verdicts_on_samples(name: str) -> None:
    results = judged(sample(f"kernel_log/{name}"))
    told = {key: status for key, status in bad(results).items() if status != "SKIP"}
    assert told == SAMPLED[name]
    assert {one.check for one in results} == {check.id for check in shipped()}


def test_the_story_of_a_lost_gpu() -> None:
    results = judged(sample("kernel_log/xid79_then_sxid20034_fatal.log"))
    lost = of(results, "gpu.xid.79")
    assert (lost.action, lost.runbook, lost.device) == (
        Action.REBOOT, "gpu-lost", "00000000:91:00.0",
    )  # fmt: skip
    assert lost.reason == "Xid 79 once at 78 d after boot: GPU has fallen off the bus."
    assert lost.evidence == (Evidence("kernel-log", line=3),)
    after = [one for one in results if one.check == "gpu.sxid.20034"]
    assert {one.action for one in after} == {Action.WATCH}
    assert all(
        one.reason.endswith("; follows Xid 79 on 00000000:91:00.0 12 s earlier") for one in after
    )
    assert [one.measured for one in after] == [1, 2, 1]
    # "GPU 0000:91:00.0: GPU has fallen off the bus" is the same fact.
    assert of(results, "kernel.off_bus").status is Status.PASS
    assert of(results, "kernel.off_bus").expected.startswith("none without an Xid 79")


def test_the_story_of_an_application_fault() -> None:
    results = judged(sample("kernel_log/xid13_43_pt_main_thread_decoded_iso.log"))
    fault = of(results, "gpu.xid.13")
    assert fault.measured == 394
    assert fault.reason.startswith("Xid 13 394 times from 2025-01-21 02:21:33 to 2025-01-21 04:26:")
    assert "first by pt_main_thread (pid 2815167) as Xid 43 tells" in fault.reason
    assert fault.reason.endswith("; in 8 bursts, in 63 different TPCs")
    assert fault.evidence == (Evidence("kernel-log", line=1), Evidence("kernel-log", line=400))
    echo = of(results, "gpu.xid.43")
    assert (echo.status, echo.measured, echo.subject) == (Status.PASS, 6, "00000000:38:00.0")
    assert echo.expected == "none but the echo of another Xid"


def test_the_recovery_action_is_the_last_one_told() -> None:
    results = judged(sample("kernel_log/gb200_xid149_154_nvlink5.log"))
    asked = {one.subject[6:8]: one.action for one in results if one.check == "gpu.xid.154"}
    reset = Action.RESET_GPU
    assert asked == {"09": Action.DRAIN, "19": reset, "18": reset, "08": reset}


def test_flaps_are_counted_without_the_gains() -> None:
    flaps = of(judged(sample("kernel_log/syslog_ib6_link_flaps.log")), "nic.link_flap")
    assert flaps.measured == 6
    assert flaps.reason == "6 times from Aug 17 06:18:01 to Aug 17 06:18:06: ib6: lost carrier"
    assert flaps.expected == "at most 2 in 24 h"


def test_ports_without_cable_are_information() -> None:
    results = judged(sample("kernel_log/boot_xe9680_h100_mlx5_insufficient_power.log"))
    ports = [one.subject for one in results if one.check == "nic.unplugged"]
    assert ports == ["0000:1b:00.1", "0000:9d:00.1"]


RECOVERY = "GPU recovery action changed from 0x4 (Drain and Reset) to"
#: Once is information; more of the same is told, see seen_to_fail.yaml.
INFORMS = {
    "nic.unplugged": "[9.0] mlx5_core 0000:1b:00.1: Port module event: module 1, Cable unplugged",
}
QUIET = "[    0.000000] Linux version 6.8.0\n[   12.0] usb 1-2: new device\n"


def test_every_row_passes_on_a_quiet_log() -> None:
    results = judged(QUIET)
    assert len(results) == len(shipped())
    for one in results:
        assert (one.status, one.subject, one.measured, one.unit) == (
            Status.PASS, "node-07", 0, "events",
        )  # fmt: skip
        assert one.expected


@pytest.mark.parametrize("check", INFORMS)
def test_a_row_informs(check: str) -> None:
    one = of(judged(INFORMS[check]), check)
    assert (one.status, one.measured) == (Status.PASS, 1)
    assert one.subject != "node-07"


def test_every_runbook_is_there() -> None:
    books = {path.stem for path in (datafiles.root() / "runbooks").glob("*.md")}
    assert {check.runbook for check in shipped()} <= books


def test_checks_of_rows() -> None:
    by_id = {check.id: check for check in shipped()}
    lost = by_id["gpu.xid.79"]
    assert lost.title == "Xid 79: GPU has fallen off the bus"
    assert (lost.rule, lost.fact, lost.host_only) == ("kernel-log", "kernel_log", True)
    assert lost.source.startswith("xid:")
    assert lost.row["source"].startswith("https://docs.nvidia.com/")
    assert by_id["gpu.xid.other"].title == "an Xid that has no row here"
    assert 79 in by_id["gpu.xid.other"].row["known"]
    assert 12021 in by_id["gpu.sxid.other"].row["known"]


@pytest.mark.parametrize(
    ("said", "action", "status"),
    [
        ("0x0 (None)", "none", "PASS"),
        ("0x1 (GPU Reset Required)", "reset-gpu", "FAIL"),
        ("0x1 (PF FLR)", "reset-gpu", "FAIL"),
        ("0x2 (Node Reboot Required)", "reboot", "FAIL"),
        ("0x2 (OS Reboot)", "reboot", "FAIL"),
        ("0x3 (Drain P2P)", "drain", "FAIL"),
        ("0x4 (Drain and Reset)", "drain", "FAIL"),
        ("0x9 (Something New)", "watch", "WARN"),
    ],
)
def test_recovery_actions(said: str, action: str, status: str) -> None:
    lines = [xid("1.0", 154, rest=f"{RECOVERY} 0x1 (GPU Reset Required)"),
             xid("2.0", 154, rest=f"{RECOVERY} {said}")]  # fmt: skip
    one = of(judged("".join(lines)), "gpu.xid.154")
    assert (one.status.value, one.measured) == (status, 2)
    if status != "PASS":
        assert one.action.value == action
        assert said in one.reason


@pytest.mark.parametrize(
    ("word", "status"),
    [("Fatal", "FAIL"), ("Nonfatal", "WARN"), ("Non-fatal", "WARN"), ("", "WARN")],
)
def test_severity_of_nvlink_errors(word: str, status: str) -> None:
    one = of(judged(xid("1.0", 149, rest=f"NETIR_LINK_EVT {word} XC0 i0 Link 01")), "gpu.xid.149")
    assert one.status.value == status


@pytest.mark.parametrize(
    ("word", "status"), [("Fatal, ", "FAIL"), ("Non-fatal, ", "WARN"), ("", "WARN")]
)
@pytest.mark.parametrize(("code", "check"), [(12028, "12028"), (20034, "20034"), (25001, "other")])
def test_severity_of_switch_errors(code: int, check: str, word: str, status: str) -> None:
    text = f"[1.0] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): {code}, {word}Link 30 x"
    one = of(judged(text), f"gpu.sxid.{check}")
    assert (one.status.value, one.subject) == (status, "nvidia-nvswitch0")
    assert f"SXid {code} once" in one.reason


def test_counters_of_corrected_switch_errors_are_information() -> None:
    text = "[1.0] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12021, Non-fatal, Link 30 x"
    assert bad(judged(text)) == {}
    assert of(judged(text), "gpu.sxid.correctable").measured == 1


@pytest.mark.parametrize(("later_s", "status"), [(119, "WARN"), (121, "FAIL"), (-1, "FAIL")])
@pytest.mark.parametrize(("root", "code"), [(79, 20034), (74, 20034), (79, 25001), (48, 0)])
def test_consequences(root: int, code: int, later_s: int, status: str) -> None:
    text = xid("1000.0", root)
    check = f"gpu.sxid.{code if code == 20034 else 'other'}"
    if not code:  # an Xid that explains nothing
        code, status, check = 20034, "FAIL", "gpu.sxid.20034"
    text += f"[{1000 + later_s}.0] nvidia-nvswitch0: SXid (PCI:0000:05:00.0): {code}, Fatal, x"
    assert of(judged(text), check).status.value == status


def test_nvlink_errors_of_the_neighbours_of_a_lost_gpu() -> None:
    text = xid("10.0", 79, "91") + xid("10.5", 74, "3b") + xid("500.0", 74, "4c")
    assert bad(judged(text)) == {
        ("gpu.xid.79", "00000000:91:00.0"): "FAIL",
        ("gpu.xid.74", GPU_3B): "WARN",
        ("gpu.xid.74", "00000000:4c:00.0"): "FAIL",
    }


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([(10, 13), (11, 43)], "PASS"),
        ([(10, 13), (71, 43)], "WARN"),  # 60 s are over
        ([(10, 43)], "WARN"),
        ([(10, 43), (11, 13)], "WARN"),  # before, not after
        ([(10, 13), (60, 43), (110, 43), (160, 43)], "PASS"),  # a chain
        ([(10, 43), (11, 43)], "WARN"),  # not of itself
    ],
)
def test_echoes(lines: list[tuple[int, int]], status: str) -> None:
    results = judged("".join(xid(f"{at}.0", code) for at, code in lines))
    assert of(results, "gpu.xid.43").status.value == status


def test_no_echo_of_another_gpu() -> None:
    results = judged(xid("10.0", 48, "91") + xid("11.0", 45, "3b"))
    assert bad(results)["gpu.xid.45", GPU_3B] == "WARN"
    assert of(judged(xid("10.0", 48) + xid("11.0", 45)), "gpu.xid.45").status is Status.PASS
    # 94 and 154 are never echoes.
    assert of(judged(xid("10.0", 48) + xid("11.0", 94)), "gpu.xid.94").status is Status.WARN


def tpc(at: float, gpc: int, number: int, name: str = "<unknown>") -> str:
    text = f"Graphics SM Warp Exception on (GPC {gpc}, TPC {number}, SM 0): Illegal Instruction"
    return xid(at, 13, rest=f"pid='<unknown>', name={name}, {text}")


@pytest.mark.parametrize(
    ("lines", "status", "note"),
    [
        (
            [tpc(0.5, 1, 2, "a"), tpc(200.5, 1, 2, "b")],
            "FAIL",
            "in 2 bursts, each time in GPC 1, TPC 2 and nowhere else, by 2 programs",
        ),
        # A program that is run again does the same again; who is not known may be one program.
        ([tpc(0.5, 1, 2, "a"), tpc(200.5, 1, 2, "a")], "WARN", "in 2 bursts, in one TPC"),
        ([tpc(0.5, 1, 2, "a"), tpc(200.5, 1, 2)], "WARN", "in 2 bursts, in one TPC"),
        ([tpc(0.5, 1, 2), tpc(200.5, 1, 2)], "WARN", "in 2 bursts, in one TPC"),
        (
            [
                tpc(0.5, 1, 2),
                xid(1.5, 43, rest="pid=1, name=a, Ch 8"),
                tpc(200.5, 1, 2),
                xid(201.5, 43, rest="pid=2, name=b, Ch 8"),
            ],
            "FAIL",
            "in 2 bursts, each time in GPC 1, TPC 2",
        ),
        ([tpc(0.5, 1, 2), tpc(179.5, 1, 2)], "WARN", "in one burst, in one TPC"),
        ([tpc(0.5, 1, 2), tpc(200.5, 1, 3)], "WARN", "in 2 bursts, in 2 different TPCs"),
        ([tpc(0.5, 1, 2), tpc(0.6, 4, 0), tpc(200.5, 1, 2)], "WARN", "in 2 bursts, in 2 diff"),
        ([tpc(0.5, 1, 2), tpc(90000.5, 1, 2)], "WARN", "in 2 bursts, in one TPC"),
        ([xid(0.5, 13), xid(200.5, 13)], "WARN", "in 2 bursts"),
    ],
)
def test_bursts_at_one_place(lines: list[str], status: str, note: str) -> None:
    one = of(judged("".join(lines)), "gpu.xid.13")
    assert one.status.value == status
    assert f"; {note}" in one.reason
    assert one.action is (Action.INSPECT if status == "FAIL" else Action.RESTART_JOB)


def fault(at: float, pid: str, bus: str = "3b", name: str = "python") -> str:
    return xid(at, 31, bus, f"pid={pid}, name={name}, Ch 00000010, MMU Fault")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([fault(0.5, "1"), fault(200.5, "2", name="bench")], "FAIL"),
        ([fault(0.5, "1"), fault(200.5, "2"), fault(400.5, "3")], "WARN"),  # one program, rerun
        ([fault(0.5, "1"), fault(100.5, "2", name="bench")], "WARN"),  # one burst
        ([fault(0.5, "1"), fault(200.5, "1")], "WARN"),  # one process
        ([fault(0.5, "'<unknown>'"), fault(200.5, "'<unknown>'")], "WARN"),
        ([fault(0.5, "1", name="<unknown>"), fault(200.5, "2")], "WARN"),
        ([fault(0.5, "1"), fault(0.6, "3", "4c"), fault(200.5, "2", name="x")], "WARN"),  # two GPUs
    ],
)
def test_bursts_of_several_programs(lines: list[str], status: str) -> None:
    results = [one for one in judged("".join(lines)) if one.check == "gpu.xid.31"]
    assert next(one for one in results if one.subject == GPU_3B).status.value == status


@pytest.mark.parametrize(
    ("code", "hours", "status", "said"),
    [
        (48, 23, "FAIL", ""),
        (48, 25, "WARN", "; last seen 25 h ago"),
        (48, 144, "WARN", "; last seen 6 d ago"),
        (79, 71, "FAIL", ""),
        (79, 1440, "FAIL", ""),  # a lost GPU stays lost until the host is booted
        (94, 23, "WARN", ""),
        (94, 25, "PASS", ""),
    ],
)
def test_windows(code: int, hours: int, status: str, said: str) -> None:
    now = 1000.0 + hours * 3600
    by_log = judged(xid("1000.0", code) + f"[{now}] usb 1-2: new device")
    uptime = Identity("node-07", uptime_s=now)
    for results in (by_log, judged(xid("1000.0", code), identity=uptime)):
        one = of(results, f"gpu.xid.{code}")
        assert one.status.value == status
        assert one.reason.endswith(said)
        if said:
            assert one.action is Action.WATCH


def test_the_hosts_clock_counts_on_its_own_axis_only() -> None:
    week_on = Identity("node-07", date_s=1740327858 + 7 * 86400, uptime_s=1e6)
    wall = "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:3b:00): 48, x"
    assert "last seen 7 d ago" in of(judged(wall, identity=week_on), "gpu.xid.48").reason
    # syslog writes no year, so that its times cannot be compared with a date.
    yearless = "Feb 23 16:24:18 node-07 kernel: NVRM: Xid (PCI:0000:3b:00): 48, x"
    assert of(judged(yearless, identity=week_on), "gpu.xid.48").status is Status.FAIL
    # A log of another boot may end later than this one lasts.
    young = Identity("node-07", uptime_s=5.0)
    assert of(judged(xid("1000.0", 48), identity=young), "gpu.xid.48").status is Status.FAIL


def test_an_event_without_time_counts() -> None:
    one = of(judged("NVRM: Xid (PCI:0000:3b:00): 48, x"), "gpu.xid.48")
    assert one.status is Status.FAIL
    assert one.reason == "Xid 48 once, at an unknown time and so counted as new: x"


@pytest.mark.parametrize(
    ("losses", "status"), [(1, "PASS"), (2, "PASS"), (3, "WARN"), (4, "WARN"), (5, "FAIL")]
)
def test_flaps(losses: int, status: str) -> None:
    text = (
        "[9.0] mlx5_core 0000:1a:00.0 eth2: Link down\n[9.5] mlx5_core 0000:1a:00.0 eth2: Link up\n"
    )
    one = of(judged(text * losses), "nic.link_flap")
    assert (one.status.value, one.measured, one.subject) == (status, losses, "eth2")
    day_later = "[100000.0] usb 1-2: new device"
    assert of(judged(text * losses + day_later), "nic.link_flap").status is Status.PASS


def test_a_link_that_only_came_up_is_nothing() -> None:
    text = "[9.5] mlx5_core 0000:1a:00.0 eth2: Link up\n"
    one = of(judged(text * 9), "nic.link_flap")
    assert (one.status, one.subject, one.measured) == (Status.PASS, "node-07", 0)
    assert of(judged(text, container="docker"), "nic.link_flap").status is Status.SKIP


def test_a_gpu_has_its_name() -> None:
    gpus = (Gpu(0, "gpu0", "00000000:91:00.0"), Gpu(3, "gpu3", GPU_3B))
    text = xid("1.0", 48) + xid("1.0", 48, "4c")
    text += "[1.0] pci 0000:3b:00.0: 252.048 Gb/s available PCIe bandwidth, limited by 16 GT/s"
    results = judged(text, gpus=gpus)
    assert bad(results) == {
        ("gpu.xid.48", "gpu3"): "FAIL",
        ("gpu.xid.48", "00000000:4c:00.0"): "FAIL",
        ("pcie.limited", "gpu3"): "WARN",
    }
    assert next(one for one in results if one.subject == "gpu3").device == GPU_3B


def test_unknown_codes_are_told_apart() -> None:
    text = xid("1.0", 998) + xid("2.0", 999) + xid("3.0", 999)
    reasons = [one.reason for one in judged(text) if one.check == "gpu.xid.other"]
    assert reasons[0].startswith("Xid 998 once at 1.0 s after boot, by a (pid 1): x")
    assert reasons[1].startswith("Xid 999 2 times from 2.0 s to 3.0 s after boot, first by a")
    # Only the row `other` is asked for: it still knows which codes have rows.
    only = [check for check in shipped() if check.id == "gpu.xid.other"]
    assert bad(judge_rule("kernel-log", host(xid("1.0", 79)), only)) == {}


def test_the_links_of_a_switch_error() -> None:
    results = judged(sample("kernel_log/fabricmanager_nvswitch_12028_nonfatal.log"))
    third = next(one for one in results if one.subject == SWITCHES[2])
    assert third.reason.endswith("; links 0, 1, 19, 33")


@pytest.mark.parametrize(
    ("kind", "status"), [("denied", "ERROR"), ("not-in-input", "SKIP"), ("no-tool", "ERROR")]
)
def test_a_missing_log_is_undetermined(kind: Any, status: str) -> None:
    missing = Host("node-07", kernel_log=Missing(kind, "why not"))
    results = judge_rule("kernel-log", missing, shipped())
    assert [one.check for one in results] == [check.id for check in shipped()]
    assert {(one.status.value, one.subject, one.reason) for one in results} == {
        (status, "node-07", "why not")
    }


def test_in_a_container() -> None:
    skip = (Status.SKIP, "belongs to the host, not to a container")
    closed = Host("node-07", container="docker", kernel_log=Missing("denied", "why not"))
    results = judge_rule("kernel-log", closed, shipped())
    assert {(one.status, one.reason) for one in results} == {skip}
    # A log that is readable tells of nothing that was not there: what it shows is not hidden.
    results = judged(xid("1.0", 79), container="docker")
    assert of(results, "gpu.xid.79").status is Status.FAIL
    assert {(one.status, one.reason) for one in results if one.check != "gpu.xid.79"} == {skip}
    assert len(results) == len(shipped())
    # "none", or not known, is no container.
    assert of(judged(QUIET, container="none"), "gpu.xid.79").status is Status.PASS


def test_a_log_that_lost_its_beginning_says_so() -> None:
    one = of(judged("[ 7300.0] usb 1-2: new device\n[ 7301.0] x"), "gpu.xid.79")
    assert (one.status, one.expected) == (Status.PASS, "none (the log begins 2 h after boot)")
    assert of(judged(QUIET), "gpu.xid.79").expected == "none"


def test_text_of_a_host_is_made_safe() -> None:
    one = of(
        judged(xid("1.0", 48, rest="pid=1, name=\x1b[31m, \x1b]0;x\x07" + "y" * 900)), "gpu.xid.48"
    )
    assert "\x1b" not in one.reason
    assert len(one.reason) < 400


def row(**changed: Any) -> dict[str, Any]:
    values = {**next(dict(one) for one in table("xid") if one["code"] == 79), **changed}
    return {key: value for key, value in values.items() if value != "-"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"statos": "FAIL"}, "unknown key 'statos'"),
        ({"at_most": 3}, "unknown key 'at_most'"),
        ({"why": "-"}, "why is missing"),
        ({"fix": []}, "fix is missing"),
        ({"status": "BAD"}, "Invalid enum value 'BAD'"),
        ({"status": "ERROR"}, "Invalid enum value 'ERROR'"),
        ({"action": "pray"}, "Invalid enum value 'pray'"),
        ({"window_h": "long"}, "Expected `float`, got `str`"),
        ({"by_text": [{"matches": "(", "status": "FAIL", "action": "none"}]}, "'(' is no regular"),
        ({"burst": {"count": 2}}, "missing required field"),
        ({"burst": {"count": 2, "most": 3}}, "unknown field `most`"),
    ],
)
def test_a_wrong_row_is_told(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        table_checks("xid", [row(), row(code=80, **changed)], "checks/data/xid.yaml")
    assert "checks/data/xid.yaml:row 2: row 80: " in caught.value.what
    assert said in caught.value.what


def test_all_wrong_rows_are_told_at_once() -> None:
    rows: list[Any] = [row(), row(), row(code=80, x=1, why="-"), "text"]
    with pytest.raises(UsageError) as caught:
        table_checks("xid", rows, "t.yaml")
    assert caught.value.what.splitlines()[1:] == [
        "  t.yaml:row 2: row 79: code 79 stands in a row above",
        "  t.yaml:row 3: row 80: unknown key 'x'",
        "  t.yaml:row 3: row 80: why is missing",
        "  t.yaml:row 4: row 'text': a row is a mapping with code, title, status, action, why, fix,"
        " runbook, source",
    ]


def test_marks_of_the_command_line_change_nothing() -> None:
    marked = [structs.replace(one, row={**one.row, "asked": True}) for one in shipped()]
    assert bad(judge_rule("kernel-log", host(xid("1.0", 48)), marked)) == {
        ("gpu.xid.48", GPU_3B): "FAIL"
    }


def test_a_flood_is_judged_in_time() -> None:
    import time

    flood = "".join(xid(f"{at}.0", 45) for at in range(6000))
    flood += "".join(xid(f"{at}.0", 74) for at in range(6000, 12000))
    switch = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, x"
    flood += "".join(f"[{at}.0] {switch}\n" for at in range(12000, 18000))
    flooded = host(flood)
    begin = time.process_time()
    judge_rule("kernel-log", flooded, shipped())
    assert time.process_time() - begin < 2  # about 0.1 on an idle machine


def test_the_tables_are_where_the_wheel_has_them() -> None:
    assert all((Path(datafiles.root()) / "checks/data" / f"{name}.yaml").is_file()
               for name in TABLES.values())  # fmt: skip


def test_the_first_and_the_last_program_are_those_of_the_first_and_the_last_event() -> None:
    text = "".join(
        xid(f"{hours * 3600}.0", 94, rest=f"pid={pid}, name={name}, Contained: SM (0x1). RST: No")
        for hours, pid, name in ((0, 11, "alpha"), (25, 22, "beta"), (50, 33, "gamma"))
    )
    one = of(judged(text), "gpu.xid.94")
    assert "first by alpha (pid 11), last by gamma (pid 33)" in one.reason


@pytest.mark.parametrize(
    ("said", "status", "action"),
    [
        ("RST: No, D-RST: No", "WARN", "restart-job"),
        ("RST: Yes, D-RST: No", "FAIL", "reset-gpu"),
        ("RST: No, D-RST: Yes", "FAIL", "drain"),
        ("RST: Yes, D-RST: Yes", "FAIL", "drain"),
    ],
)
def test_a_contained_error_that_asks_for_a_reset_gets_one(
    said: str, status: str, action: str
) -> None:
    one = of(judged(xid("1.0", 94, rest=f"Contained: SM (0x1). {said}")), "gpu.xid.94")
    assert (one.status.value, one.action.value) == (status, action)


@pytest.mark.parametrize(
    ("hours", "status"), [((0, 20, 40), "FAIL"), ((0, 40), "WARN"), ((0, 30, 60), "WARN")]
)
def test_three_contained_errors_in_two_days_fail(hours: tuple[int, ...], status: str) -> None:
    text = "".join(xid(f"{at * 3600}.0", 94, rest="Contained: CE. RST: No") for at in hours)
    assert of(judged(text), "gpu.xid.94").status.value == status
    each = "".join(
        xid(f"{at * 3600}.0", 94, bus, "Contained: CE. RST: No")
        for at, bus in zip(hours, ("3b", "4c", "5d"), strict=False)
    )  # one each on several GPUs
    assert "FAIL" not in bad(judged(each)).values()


REMAPPED = "Row Remapper: New row marked for remapping, reset gpu to activate."


def test_a_remapped_row_waits_for_a_reset_until_the_gpu_says_otherwise() -> None:
    text = xid("1.0", 63, rest=REMAPPED)
    one = of(judged(text), "gpu.xid.63")
    assert (one.status, one.action, one.device) == (Status.WARN, Action.RESET_GPU, GPU_3B)
    assert "no hurry" in one.fix[0]
    month_on = f"{text}[2592000.0] usb 1-2: new device"
    assert of(judged(month_on), "gpu.xid.63").status is Status.WARN  # it waits for ever
    for pending, said in ((False, "while nothing waits"), (True, "told by what waits")):
        gpu = Gpu(3, "gpu3", GPU_3B, remap=Remap(pending=pending))
        one = of(judged(text, gpus=(gpu,)), "gpu.xid.63")
        assert (one.status, one.subject) == (Status.PASS, "gpu3")
        assert said in one.expected
    retired = Gpu(3, "gpu3", GPU_3B, retired=Retired(pending=False))
    assert of(judged(text, gpus=(retired,)), "gpu.xid.63").status is Status.PASS
    other = Gpu(0, "gpu0", "00000000:4c:00.0", remap=Remap(pending=False))
    assert of(judged(text, gpus=(other,)), "gpu.xid.63").status is Status.WARN
    many = "".join(xid(f"{at}.0", 63, rest=REMAPPED) for at in range(20))
    gpu = Gpu(3, "gpu3", GPU_3B, remap=Remap(pending=False))
    assert of(judged(many), "gpu.xid.63").status is Status.WARN
    flooded = of(judged(many, gpus=(gpu,)), "gpu.xid.63")
    assert (flooded.status, flooded.action) == (Status.WARN, Action.WATCH)


BOOT = "[    0.000000] Linux version 6.8.0\n"
AFTER = f"[ 5010.000000] usb 1-2: gone\n{BOOT}[   20.000000] usb 1-2: new device\n"


def test_what_a_reset_mends_only_warns_after_a_boot() -> None:
    text = f"{BOOT}[ 5000.000000] {xid(0, 79).partition('] ')[2]}{AFTER}"
    one = of(judged(text), "gpu.xid.79")
    assert (one.status, one.action) == (Status.WARN, Action.WATCH)
    assert "at 10 s or more before the boot" in one.reason
    assert one.reason.endswith("; before the last boot of the host")
    again = f"{text}[   30.000000] {xid(0, 79).partition('] ')[2]}"
    assert of(judged(again), "gpu.xid.79").status is Status.FAIL
    asked = f"{BOOT}[ 5000.000000] {xid(0, 63, rest=REMAPPED).partition('] ')[2]}{AFTER}"
    assert of(judged(asked), "gpu.xid.63").status is Status.PASS  # the boot was the reset
    cable = f"{BOOT}[ 5000.000000] {xid(0, 54).partition('] ')[2]}{AFTER}"
    assert of(judged(cable), "gpu.xid.54").status is Status.FAIL  # no boot puts a cable in
    panic = f"{BOOT}[ 5000.000000] Kernel panic - not syncing: Fatal machine check\n{AFTER}"
    assert of(judged(panic), "kernel.panic").status is Status.FAIL


def test_a_load_of_the_driver_answers_what_the_driver_told() -> None:
    load = "[ 6000.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07\n"
    one = of(judged(xid("5000.0", 119) + load), "gpu.xid.119")
    assert (one.status, one.reason.rpartition("; ")[2]) == (
        Status.WARN,
        "before the driver was loaded anew",
    )
    adapter = "[ 5.0] mlx5_core 0000:1a:00.0: x: device's health compromised - reached miss count\n"
    assert of(judged(adapter + load), "nic.health").status is Status.FAIL


def test_the_advice_for_what_is_over_says_that_nothing_is_to_be_done() -> None:
    old = of(judged(xid("1.0", 48) + "[600000.0] usb 1-2: new device"), "gpu.xid.48")
    assert old.action is Action.WATCH
    assert old.fix == (
        "nothing to do now; if it comes back, `preflight explain gpu.xid.48` says what to do",
    )
    lost = judged(sample("kernel_log/xid79_then_sxid20034_fatal.log"))
    after = next(one for one in lost if one.check == "gpu.sxid.20034")
    assert after.fix == ("see to Xid 79 on 00000000:91:00.0 first; this needs nothing of its own",)
    for said, steps in (("0x2 (Node Reboot Required)", "reboot"), ("0x3 (Drain P2P)", "NVLink")):
        one = of(judged(xid("1.0", 154, rest=f"{RECOVERY} {said}")), "gpu.xid.154")
        assert len(one.fix) == 1
        assert steps in one.fix[0]


def test_no_event_passes_for_an_xid_line_that_could_not_be_read() -> None:
    wrapped = '{"msg":"[ 9.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, x"}\n'
    results = judged(QUIET + wrapped + xid("20.0", 48))
    by_check = {one.check: one for one in results}
    assert by_check["gpu.xid.48"].status is Status.FAIL
    for check in ("gpu.xid.79", "gpu.xid.other", "gpu.sxid.20034", "kernel.off_bus"):
        one = by_check[check]
        assert (one.status, one.evidence) == (Status.ERROR, (Evidence("kernel-log", line=3),))
        assert one.reason.startswith("line 3 speaks of an Xid in a form that is not known: {")
    assert by_check["kernel.oom"].status is Status.PASS


def test_what_only_the_kernel_tells_is_skipped_where_its_lines_are_missing() -> None:
    def skipped(name: str) -> dict[str, Status]:
        return {one.check: one.status for one in judged(sample(f"kernel_log/{name}"))}

    flaps = skipped("syslog_ib6_link_flaps.log")
    assert flaps.pop("nic.link_flap") is Status.FAIL
    assert set(flaps.values()) == {Status.SKIP}
    fabric = skipped("fabricmanager_nvswitch_12028_nonfatal.log")
    assert (fabric["gpu.sxid.20034"], fabric["gpu.xid.79"]) == (Status.SKIP, Status.SKIP)


def test_a_message_without_a_device_is_about_the_one_that_is_named() -> None:
    lost = "[9.0] NVRM: nvCheckOkFailed: GPU lost from the bus [NV_ERR_GPU_IS_LOST]\n"
    assert bad(judged(QUIET + lost)) == {("kernel.off_bus", "node-07"): "FAIL"}
    assert bad(judged(lost + xid("10.0", 79))) == {("gpu.xid.79", GPU_3B): "FAIL"}
    init = "[9.0] NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x0:1860)\n"
    vbios = "[8.9] NVRM: failed to copy vbios to system memory.\n"
    assert bad(judged(vbios + init)) == {("gpu.init_failed", GPU_3B): "FAIL"}


@pytest.mark.parametrize(("errors", "status"), [(1, "PASS"), (999, "PASS"), (3000, "WARN")])
def test_single_corrected_errors_are_only_counted(errors: int, status: str) -> None:
    line = "x 0000:02:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"
    text = "".join(f"[{at}.0] {line}\n" for at in range(errors))
    one = of(judged(text), "pcie.aer_corrected")
    assert (one.status.value, one.measured) == (status, errors)


def test_advice_names_the_gpu_that_it_is_for() -> None:
    for check in shipped():
        for fix in check.fix:
            assert "-i GPU" not in fix, check.id


def test_a_line_from_the_future_does_not_age_the_others() -> None:
    text = (
        "2026-01-02T03:03:00+00:00 n kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, lost\n"
        "2036-01-02T03:03:00+00:00 n kernel: usb 1-2: new device\n"
    )
    identity = Identity("n", date_s=1767323045, uptime_s=1e6)
    assert of(judged(text, identity=identity), "gpu.xid.79").status is Status.FAIL


def test_a_flood_that_goes_on_is_judged_by_its_last_day() -> None:
    error = "nvidia 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"
    text = "".join(f"[{10 * n:>12}.000000] {error}\n" for n in range(30_000))
    found = of(judged(text), "pcie.aer_corrected")
    assert (found.status, found.measured) == (Status.WARN, 19_000)


def test_what_the_fabric_manager_refused_is_told_and_its_silence_is_none_of_the_kernel() -> None:
    text = (
        "Mar 04 09:12:13 n nv-fabricmanager[2303]: fabric manager NVIDIA GPU driver interface versi"
        "on 535.129.03 don't match with driver version 535.161.08. Please update\n"
        "Mar 04 09:12:13 n systemd[1]: Failed to start NVIDIA fabric manager service.\n"
    )
    raws = [Raw("n", "kernel-log", stdout=text)]
    results = examine("n", raws, load(["gpu", "fabric", "kernel"]).checks).results
    assert [one.check for one in results if one.status is Status.FAIL] == ["fabric.log.version"]
    assert not [one.check for one in results if one.status is Status.PASS]
