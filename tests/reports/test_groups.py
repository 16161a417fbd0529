"""Equal results are one group; different ones stay apart."""

from __future__ import annotations

import pytest

from preflight.model import Action, Result, Status
from preflight.reports.groups import Place, bad, followers, gather, headline, leads, where
from tests.reports.built import host, report, undetermined


@pytest.mark.parametrize(
    ("places", "hosts", "text"),
    [
        ([("n1", "gpu0"), ("n1", "gpu1")], False, "gpu[0-1]"),
        ([("n1", "gpu0"), ("n1", "gpu1")], True, "n1 gpu[0-1]"),
        ([("n1", "gpu2"), ("n3", "gpu2"), ("n9", "gpu0")], True, "n[1,3] gpu2, n9 gpu0"),
        ([("n1", "n1")], False, "n1"),
        ([("n1", "n1"), ("n2", "n2")], True, "n[1-2]"),
        ([("n1", ""), ("n2", "n2"), ("n2", "gpu1")], True, "n[1-2], n2 gpu1"),
        ([("", "node[07,12]")], True, "node[07,12]"),
        ([("n1", "rank 5"), ("n1", "rank 6")], False, "rank 5, rank 6"),
        ([], True, ""),
    ],
)
def test_where(places: list[tuple[str, str]], hosts: bool, text: str) -> None:
    assert where([Place(*place) for place in places], hosts=hosts) == text


def test_where_in_brief_counts_what_nobody_reads() -> None:
    ranks = [Place("n1", f"rank {i}") for i in range(64)]
    text = "rank 0, rank 1, rank 2, rank 3, rank 4, rank 5 and 58 more (-v lists them)"
    assert where(ranks, hosts=False, brief=True) == text
    odd = [Place(f"node{i:03}", f"gpu{i % 7}") for i in range(0, 400, 3)]
    assert where(odd, hosts=True, brief=True) == "134 subjects on 134 hosts"


def result(**more: object) -> Result:
    told: dict[str, object] = {"check": "a.b", "subject": "x", "status": Status.FAIL, **more}
    return Result(**told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"check": "a.c"},
        {"status": Status.WARN},
        {"expected": "2"},
        {"action": Action.DRAIN},
        {"fix": ("other",)},
        {"why": "other"},
    ],
)
def test_what_is_mended_differently_stays_apart(change: dict[str, object]) -> None:
    assert len(gather([("n1", result()), ("n1", result(**change))])) == 2


@pytest.mark.parametrize("change", [{"measured": 4}, {"reason": "other"}, {"subject": "y"}, {}])
def test_what_is_mended_in_one_go_is_one_group(change: dict[str, object]) -> None:
    (group,) = gather([("n1", result()), ("n2", result(**change))])
    assert len(group.places) == 2


def test_errors_of_one_reason_and_place_join_over_checks() -> None:
    told = report(
        host("n1", *(undetermined(f"a.{i}", "gpu3", "GPU is lost") for i in range(3))),
        host("n2", *(undetermined(f"a.{i}", "gpu3", "GPU is lost") for i in range(2))),
    )
    assert [(group.checks, where(group.places, hosts=True)) for group in bad(told)] == [
        (["a.0", "a.1"], "n[1-2] gpu3"),
        (["a.2"], "n1 gpu3"),
    ]


def test_failures_of_one_reason_do_not_join_over_checks() -> None:
    told = report(host("n1", result(reason="x"), result(check="c.d", reason="x")))
    assert len(bad(told)) == 2


def test_what_follows_over_the_fleet_is_told_under_its_cause() -> None:
    lost = result(check="gpu.answers", subject="gpu7", reason="GPU is lost")
    odd = result(check="fleet.gpus", subject="n[1,3]", measured="7; the others 8",
                 cause="gpu.answers")  # fmt: skip
    groups = bad(report(host("n1", lost), host("n2"), host("n3"), fleet=[odd]))
    (lead,) = leads(groups)
    assert lead.checks == ["gpu.answers"]
    assert [group.checks for group in followers(lead, groups)] == [["fleet.gpus"]]


def test_what_follows_from_nothing_that_is_told_is_told_itself() -> None:
    odd = result(check="fleet.gpus", subject="n2", cause="gpu.answers")
    groups = bad(report(host("n1", result(check="gpu.answers")), host("n2"), fleet=[odd]))
    assert len(leads(groups)) == 2


def test_over_the_fleet_what_the_others_have_is_in_the_measured_text() -> None:
    (group,) = gather([("", result(measured="535; the other 9 have 550", expected="the same"))])
    assert headline(group) == "535; the other 9 have 550"
    (group,) = gather([("", result(measured=87, unit="C", expected="61 as the others"))])
    assert headline(group) == "87 C, expected 61 as the others"


def test_devices_with_one_name_are_told_together() -> None:
    told = [(f"n{i}", result(subject="gpu3", device="0000:91:00.0")) for i in range(1, 4)]
    (group,) = gather([*told, ("n9", result(subject="n9", device="n9"))])
    assert {name: where(at, hosts=True) for name, at in group.by_device.items()} == {
        "0000:91:00.0": "n[1-3] gpu3"
    }


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        ([3, 3], "3 C, expected 1"),
        ([3, 9, 5], "3 to 9 C, expected 1"),
        (["x8", "x4"], "expected 1"),
        ([None, None], "-, expected 1"),
        ([True, 1], "expected 1"),
    ],
)
def test_the_headline_tells_the_range(measured: list[object], text: str) -> None:
    results = [("n1", result(measured=one, unit="C", expected="1")) for one in measured]
    if measured == [None, None]:
        results = [("n1", result(expected="1"))] * 2
    assert headline(gather(results)[0]) == text
