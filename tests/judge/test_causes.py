"""One cause, not eight bad GPUs: what follows from another failure names it; nothing is lost."""

from __future__ import annotations

from fnmatch import fnmatchcase

from preflight.collect import examine
from preflight.judge.causes import Row, attribute, attribute_fleet, rows
from preflight.judge.load import DOMAINS, load
from preflight.model import HostReport, Raw, Report, Result, Status
from preflight.verdict import count
from tests.conftest import sample
from tests.reports.built import text_of

FABRIC = (
    Row(("fabric.manager",), same=("gpu.slow",), anywhere=("gpu.fabric.*", "!gpu.fabric.id")),
)

ALL = load(DOMAINS).checks


def bad(check: str, subject: str, status: Status = Status.FAIL, device: str = "") -> Result:
    return Result(check, subject, status, reason="so", device=device)


def causes(*results: Result, table: tuple[Row, ...] = FABRIC) -> list[str]:
    attribute(results, table)
    return [one.cause for one in results]


def test_a_cause_of_the_host_explains_all_its_gpus() -> None:
    found = causes(
        bad("fabric.manager", "node-07"), bad("gpu.fabric.state", "gpu0"),
        bad("gpu.fabric.state", "gpu7", Status.ERROR), bad("gpu.fabric.id", "gpu0"),
        bad("gpu.ecc", "gpu0"),
    )  # fmt: skip
    assert found == ["", "fabric.manager", "fabric.manager", "", ""]


def test_what_must_be_on_the_same_device_may_go_by_subject_or_by_address() -> None:
    found = causes(
        bad("fabric.manager", "gpu3", device="1b"), bad("gpu.slow", "gpu3"),
        bad("gpu.slow", "0000:1b", device="1b"), bad("gpu.slow", "gpu4", device="2c"),
    )  # fmt: skip
    assert found == ["", "fabric.manager", "fabric.manager", ""]


def test_a_warning_explains_nothing() -> None:
    assert causes(bad("fabric.manager", "n", Status.WARN), bad("gpu.fabric.state", "gpu0")) == [
        "",
        "",
    ]


def test_a_cause_that_follows_from_another_hands_on_the_root() -> None:
    table = (Row(("a.root",), anywhere=("b.middle",)), Row(("b.middle",), anywhere=("c.end",)))
    assert causes(bad("c.end", "x"), bad("b.middle", "x"), bad("a.root", "x"), table=table) == [
        "a.root", "a.root", "",
    ]  # fmt: skip


def test_two_causes_of_one_row_do_not_explain_each_other_away() -> None:
    table = (Row(("a.one", "b.two"), same=("a.*", "b.*")),)
    assert causes(bad("b.two", "x"), bad("a.one", "x"), table=table) == ["a.one", ""]


def test_every_pattern_of_the_table_names_a_check() -> None:
    known = [check.id for check in load(DOMAINS).checks]
    for row in rows():
        for pattern in (*row.cause, *row.same, *row.anywhere, *row.undetermined):
            assert any(fnmatchcase(name, pattern.lstrip("!")) for name in known), pattern


def _shown(told: HostReport, verbose: int = 0) -> str:
    report = Report(
        "gpu-health", (), "quick", "2026-01-02T03:04:05Z", 0.1, told.verdict, count(told.results),
        (told,),
    )  # fmt: skip
    return text_of(report, verbose=verbose)


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"


def test_a_driver_that_does_not_answer_leads_and_counts_what_it_leaves_open() -> None:
    told = examine(
        "node-07", [Raw("node-07", "nvidia-smi-q", stdout=MISMATCH)], load(DOMAINS).checks
    )
    text = _shown(told)
    assert text.count("\nERROR") == 0
    assert "results follow from this (-v shows them): gpu.present" in text
    assert "\nERROR" in _shown(told, verbose=1)
    assert count(told.results).error > 50


def test_a_denied_kernel_log_is_not_put_down_to_the_driver() -> None:
    raws = [
        Raw("node-07", "nvidia-smi-q", stdout=MISMATCH),
        Raw("node-07", "dmesg", ("dmesg",), 1, "", "dmesg: Operation not permitted"),
    ]
    told = examine("node-07", raws, ALL)
    assert {one.cause for one in told.results if one.check == "gpu.xid.79"} == {""}


LOST = "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost."
XID_79 = "[ 9.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"


def test_a_gpu_that_is_lost_stands_once_in_the_report() -> None:
    text = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
    text = text.replace("00000000:19:00.0", "00000000:01:00.0", 1) + LOST
    raws = [Raw("n", "nvidia-smi-q", stdout=text), Raw("n", "kernel-log", stdout=XID_79)]
    told = examine("n", raws, ALL)
    follow = {one.check for one in told.results if one.cause == "gpu.xid.79"}
    assert "gpu.answers" in follow


OFF_BUS = (Row(("gpu.xid.79", "gpu.answers"), fleet=("fleet.gpu.*",)),)


def fleet_cause(odd: Result, **failing: Result) -> str:
    hosts = [HostReport(name, Status.FAIL, results=(one,)) for name, one in failing.items()]
    attribute_fleet([odd], [*hosts, HostReport("node9", Status.PASS)], OFF_BUS)
    return odd.cause


def test_what_only_a_comparison_shows_may_follow_from_what_failed_there() -> None:
    odd = bad("fleet.gpu.count", "node[1-2] gpu3")
    lost = bad("gpu.xid.79", "gpu3")
    assert fleet_cause(odd, node1=lost, node2=bad("gpu.answers", "gpu3")) == "gpu.xid.79"


def test_it_follows_only_where_every_host_that_it_names_has_the_cause() -> None:
    lost = bad("gpu.xid.79", "gpu3")
    assert fleet_cause(bad("fleet.gpu.count", "node[1,9]"), node1=lost) == ""
    assert fleet_cause(bad("fleet.gpu.count", "rank 7"), node1=lost) == ""
    assert fleet_cause(bad("fleet.driver", "node1"), node1=lost) == ""
    assert fleet_cause(bad("fleet.gpu.count", "node1", Status.PASS), node1=lost) == ""
    warned = bad("gpu.xid.79", "gpu3", Status.WARN)
    assert fleet_cause(bad("fleet.gpu.count", "node1"), node1=warned) == ""


def test_a_lost_gpu_explains_the_count_and_not_what_else_is_unlike() -> None:
    lost = bad("gpu.xid.79", "gpu3")
    for check, cause in (
        ("fleet.gpu.count.same", "gpu.xid.79"), ("fleet.gpu.listed.same", "gpu.xid.79"),
        ("fleet.topology.same", ""), ("fleet.nic.count.same", ""),
    ):  # fmt: skip
        odd = bad(check, "node1")
        attribute_fleet([odd], [HostReport("node1", Status.FAIL, results=(lost,))])
        assert odd.cause == cause, check


def test_what_a_host_itself_could_not_tell_is_told_once() -> None:
    own = Result("gpu.ecc.mode", "node1", Status.ERROR, reason="nvidia-smi exited with 1")
    hosts = [HostReport("node1", Status.ERROR, results=(own,)), HostReport("node2", Status.PASS)]
    reason = "gpus: nvidia-smi exited with 1; the other 5 told it"
    for subject, said, cause in (
        ("node1 gpus", reason, "gpu.ecc.mode"),
        ("node[1-2] gpus", reason, ""),  # of node2 nothing else tells it
        ("node1 gpus", "nics: sh did not end within 10 s; the other 5 told it", ""),
    ):
        untold = Result("fleet.told.same", subject, Status.ERROR, reason=said)
        attribute_fleet([untold], hosts)
        assert untold.cause == cause
