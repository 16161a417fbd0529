"""What changed since an earlier report: nothing that got worse is left out, nothing is made up."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from preflight.model import Change, Changes, Override, Report, Result, Status
from preflight.nodesets import fold
from preflight.reports import render
from preflight.reports.changes import headline, rows
from preflight.reports.compare import compare
from preflight.reports.json import read
from preflight.reports.layout import cells
from tests.reports.built import host, passed, report, text_of
from tests.reports.fleet import broken, cluster, odd, yesterday

PASS, WARN, FAIL, SKIP, ERROR = Status.PASS, Status.WARN, Status.FAIL, Status.SKIP, Status.ERROR
OLD = {"started_at": "2026-01-01T03:04:05Z"}
#: So that the check is in both catalogues, whatever the result in question.
KNOWN = passed("gpu.a", "other", 1, "1")


def result(status: Status, measured: Any = 1, subject: str = "gpu0", **more: Any) -> Result:
    return Result("gpu.a", subject, status, measured, **more)


def since(now: list[Result], then: list[Result]) -> list[Change]:
    """Of one host; a passing result of the check is on another one in both."""
    other = host("n2", KNOWN)
    both = report(host("n1", *now), other), report(host("n1", *then), other, **OLD)
    return list(compare(*both).each)


def told(changes: Changes) -> list[tuple[str, ...]]:
    return [tuple(row) for row in rows(changes, hosts=True, most=100, more="")]


@pytest.mark.parametrize(
    ("then", "now", "kind"),
    [
        (PASS, FAIL, "failed"), (WARN, FAIL, "failed"), (SKIP, FAIL, "failed"),
        (ERROR, FAIL, "failed"), (None, FAIL, "failed"),
        (PASS, ERROR, "unknown"), (FAIL, ERROR, "unknown"), (None, ERROR, "unknown"),
        (PASS, WARN, "warned"), (SKIP, WARN, "warned"), (None, WARN, "warned"),
        (PASS, SKIP, "unseen"), (FAIL, SKIP, "unseen"), (ERROR, SKIP, "unseen"),
        (PASS, None, "unseen"), (FAIL, None, "unseen"), (WARN, None, "unseen"),
        (FAIL, WARN, "better"), (ERROR, WARN, "better"),
        (FAIL, PASS, "fixed"), (WARN, PASS, "fixed"), (ERROR, PASS, "fixed"),
        (SKIP, PASS, ""), (None, PASS, ""), (None, SKIP, ""), (SKIP, None, ""),
        *((status, status, "") for status in Status),
    ],
)  # fmt: skip
def test_each_step_has_its_kind(then: Status | None, now: Status | None, kind: str) -> None:
    alive = passed("b.c", "gpu0", 1, "1")  # the device itself is there in both
    before = [alive, *([result(then)] if then else [])]
    after = [alive, *([result(now)] if now else [])]
    assert [(one.kind, one.subject) for one in since(after, before)] == (
        [(kind, "gpu0")] if kind else []
    )


def test_values_are_told_where_the_status_changed_and_only_there() -> None:
    (one,) = since([result(FAIL, 12, unit="errors")], [result(PASS, 0, unit="errors")])
    assert (one.was, one.now) == ("0 errors", "12 errors")
    assert since([result(FAIL, 12)], [result(FAIL, 9)]) == []


def test_equal_changes_of_many_hosts_are_one() -> None:
    names = [f"n{i}" for i in range(1, 101)]
    now = report(*(host(name, *(result(FAIL, 8, f"gpu{i}") for i in (2, 3))) for name in names))
    then = report(*(host(name, *(result(PASS, 16, f"gpu{i}") for i in (2, 3))) for name in names),
                  **OLD)  # fmt: skip
    changes = compare(now, then)
    assert [(one.kind, len(one.hosts), one.subject) for one in changes.each] == [
        ("failed", 100, "gpu[2-3]")
    ]
    assert told(changes) == [("failed", "gpu.a", "n[1-100] gpu[2-3]", "was 16, now 8")]


def test_different_values_of_one_check_are_one_row() -> None:
    now = report(*(host(f"n{i}", result(FAIL, i)) for i in range(1, 9)))
    then = report(*(host(f"n{i}", result(PASS, 0)) for i in range(1, 9)), **OLD)
    ((kind, about, at, text),) = told(compare(now, then))
    assert (kind, about, at) == ("failed", "gpu.a", "n[1-8] gpu0")
    assert text.startswith("n1 gpu0 was 0, now 1; n2 gpu0 was 0, now 2; ")
    assert text.endswith("; and 4 more")


def test_a_lost_device_is_one_change_and_never_a_mended_one() -> None:
    checks = [Result(f"gpu.{i}", "gpu7", FAIL if i == 1 else PASS) for i in range(20)]
    others = [Result(f"gpu.{i}", "gpu6", PASS) for i in range(20)]
    (one,) = since(others, [*others, *checks])
    assert (one.kind, one.about, one.subject) == ("gone", "device", "gpu7")
    (one,) = since([*others, *checks[2:]], others)
    assert (one.kind, one.about, one.subject) == ("new", "device", "gpu7")


def test_a_device_whose_tool_is_not_in_the_input_is_not_gone() -> None:
    checks = [Result(f"gpu.{i}", "gpu7", FAIL if i == 1 else PASS) for i in range(20)]
    untold = [Result(f"gpu.{i}", "n1", SKIP, reason="not in the input") for i in range(15)]
    (one,) = since(untold, checks)
    assert (one.kind, one.about, one.subject) == ("unseen", "device", "gpu7")
    absent = [replace(each, reason="no GPU is listed by nvidia-smi") for each in untold]
    (one,) = since(absent, checks)
    assert (one.kind, one.about, one.subject) == ("gone", "device", "gpu7")


def test_a_new_device_that_fails_fails() -> None:
    checks = [Result(f"gpu.{i}", "gpu7", FAIL) for i in range(2)]
    others = [Result(f"gpu.{i}", "gpu6", PASS) for i in range(2)]
    found = since([*others, *checks], others)
    assert [(one.kind, one.about) for one in found] == [
        ("failed", "gpu.0"), ("failed", "gpu.1"), ("new", "device"),
    ]  # fmt: skip


def test_a_check_that_names_the_gpu_where_it_fails_and_the_host_where_it_passes() -> None:
    passing, failing = result(PASS, 0, "n1"), result(FAIL, 3, "gpu3")
    (one,) = since([failing], [passing])
    assert (one.kind, one.subject, one.was, one.now) == ("failed", "gpu3", "0", "3")
    (one,) = since([passing], [failing])
    assert (one.kind, one.subject, one.was, one.now) == ("fixed", "gpu3", "3", "0")


def test_another_device_that_passes_mends_nothing() -> None:
    alive = passed("b.c", "gpu3", 1, "1")
    found = since([alive, result(PASS, 1, "gpu4")], [alive, result(FAIL, 9, "gpu3")])
    assert [(one.kind, one.subject) for one in found] == [("unseen", "gpu3")]


def test_what_hung_for_the_whole_host_and_answers_again_is_mended() -> None:
    hung = result(ERROR, None, "n1", reason="nvidia-smi hung")
    found = since([result(PASS, 1, "gpu4"), result(PASS, 1, "gpu5")], [hung])
    assert [(one.kind, one.subject, one.was) for one in found] == [("fixed", "", "nvidia-smi hung")]


def test_new_and_gone_checks_are_counted_not_listed() -> None:
    now = report(host("n1", KNOWN, Result("new.one", "gpu0", FAIL)))
    then = report(host("n1", KNOWN, Result("old.one", "gpu0", FAIL), Result("old.two", "x", PASS)),
                  **OLD)  # fmt: skip
    changes = compare(now, then)
    assert (changes.each, changes.new_checks, changes.gone_checks) == ((), 1, 2)
    assert "1 result that had failed: the check is not in this report" in changes.notes
    assert headline(changes).endswith(
        "nothing changed; 1 host compared, 1 check new, 2 checks gone"
    )


@pytest.mark.parametrize(
    ("now", "then", "kind", "text"),
    [
        (broken("n1", "refused", "x"), host("n1", KNOWN), "silent", "the connection is refused"),
        (host("n1", KNOWN), broken("n1", "refused", "x"), "fixed",
         "it answers again; before: the connection is refused"),
        (broken("n1", "died", "x"), broken("n1", "refused", "x"), "silent",
         "the connection broke off; before: the connection is refused"),
    ],
)  # fmt: skip
def test_hosts_that_fall_silent_or_speak_again(now: Any, then: Any, kind: str, text: str) -> None:
    changes = compare(report(now), report(then, **OLD))
    assert told(changes) == [(kind, "", "n1", text)]
    assert compare(report(now), report(now, **OLD)).each == ()


def test_hosts_that_are_in_one_report_only() -> None:
    one, two, three = (host(name, KNOWN) for name in ("n1", "n2", "n3"))
    now, then = report(one, two), report(two, three, **OLD)
    assert told(compare(now, then)) == [
        ("gone", "", "n3", "not in this report"),
        ("new", "", "n1", "not in the earlier report"),
    ]


def test_a_changed_summary_tells_what_differs() -> None:
    was, is_ = "8 x H100, driver 550; 224 CPUs, 2 TiB", "7 x H100, driver 555; 224 CPUs, 2 TiB"
    now = report(*(host(f"n{i}", KNOWN, summary=is_) for i in range(3)))
    then = report(*(host(f"n{i}", KNOWN, summary=was) for i in range(3)), **OLD)
    assert told(compare(now, then)) == [
        ("changed", "", "n[0-2]", "was 8 x H100, driver 550, now 7 x H100, driver 555")
    ]


def facts(**more: Any) -> dict[str, Any]:
    unknown = {"kind": "no-tool", "text": "no dmidecode"}
    gpus = [{"name": f"gpu{i}", "vbios": "96.00", "temperature": {"gpu_c": 40 + i}, "line": i}
            for i in range(2)]  # fmt: skip
    return {
        "os": "Ubuntu", "identity": {"kernel": "5.15", "boot_id": "b1", "uptime_s": 5, "line": 1},
        "gpus": gpus, "memory": {"total_bytes": 10**12, "available_bytes": 5}, "dimms": unknown,
        **more,
    }  # fmt: skip


def test_facts_that_somebody_changed_are_told_and_those_that_drift_are_not() -> None:
    new = facts(
        os="Debian", memory={"total_bytes": 10**12 + 10**9, "available_bytes": 9},
        identity={"kernel": "6.1", "boot_id": "b2", "uptime_s": 9, "line": 2}, dimms={"count": 3},
    )  # fmt: skip
    new["gpus"][1].update(vbios="97.00", temperature={"gpu_c": 80}, line=99)
    changes = compare(
        report(host("n1", KNOWN, facts=new)), report(host("n1", KNOWN, facts=facts()), **OLD)
    )
    assert sorted(told(changes)) == [
        ("changed", "", "n1", "rebooted"),
        ("changed", "gpus.vbios", "n1 gpu1", "was 96.00, now 97.00"),
        ("changed", "identity.kernel", "n1", "was 5.15, now 6.1"),
        ("changed", "os", "n1", "was Ubuntu, now Debian"),
    ]


def test_facts_of_one_report_alone_are_compared_with_nothing() -> None:
    now, then = host("n1", KNOWN, facts=facts()), host("n1", KNOWN)
    assert compare(report(now), report(then, **OLD)).each == ()
    assert compare(report(then), report(now, **OLD)).each == ()


def test_over_the_fleet_a_host_that_is_odd_now_has_failed() -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(3)]
    one, both = report(*hosts, fleet=[odd("n1")]), report(*hosts, fleet=[odd("n[1-2]")])
    ((kind, _, at, text),) = told(compare(both, replace(one, **OLD)))
    assert (kind, at, text[:22]) == ("failed", "n2", "was not odd, now 535.1")
    ((kind, about, at, text),) = told(compare(one, replace(both, **OLD)))
    assert (kind, about, at) == ("fixed", "fleet.driver.version", "n2")
    assert text == "was 535.104.05; the other 123 have 550.54.15, now as the others"
    assert compare(one, replace(one, **OLD)).each == ()


def test_over_the_fleet_a_second_odd_value_is_not_overlooked() -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(4)]
    then = report(*hosts, fleet=[odd("n1")], **OLD)
    now = report(*hosts, fleet=[odd("n1"), odd("n3 gpu0", measured="530; the other 2 have 550")])
    ((kind, _, at, text),) = told(compare(now, then))
    assert (kind, at) == ("failed", "n3 gpu0")
    assert text == "was not odd, now 530; the other 2 have 550"


def test_over_the_fleet_the_status_changes_as_on_a_host() -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(3)]
    bad = report(*hosts, fleet=[odd("n1")])
    fine = report(*hosts, fleet=[odd("n[0-2]", status=PASS)])
    assert [one.kind for one in compare(bad, replace(fine, **OLD)).each] == ["failed"]
    assert [one.kind for one in compare(fine, replace(bad, **OLD)).each] == ["fixed"]


ALIKE = {"check": "fleet.driver.version", "status": PASS, "measured": "550"}


def alike(subject: str, **more: Any) -> Result:
    return Result(**{**ALIKE, "subject": subject, **more})


def test_over_the_fleet_those_that_were_mended_are_named_and_new_hosts_are_not() -> None:
    then = report(*(host(f"n{i}", KNOWN) for i in range(1, 13)), **OLD, fleet=[
        odd("n8 mlx5_0", measured="down; the other 11 have up"),
        Result("fleet.sysctl", "n10 vm.swappiness", WARN, "60; the other 11 have 1"),
    ])  # fmt: skip
    now = report(*(host(f"n{i}", KNOWN) for i in range(1, 15)), fleet=[
        alike("n[1-14]", measured="up"), alike("n[1-14]", check="fleet.sysctl", measured=1),
    ])  # fmt: skip
    assert told(compare(now, then)) == [
        ("new", "", "n[13-14]", "not in the earlier report"),
        ("fixed", "fleet.driver.version", "n8 mlx5_0",
         "was down; the other 11 have up, now up"),
        ("fixed", "fleet.sysctl", "n10 vm.swappiness", "was 60; the other 11 have 1, now 1"),
    ]  # fmt: skip


def test_over_the_fleet_some_devices_of_a_host_are_mended() -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(4)]
    then = report(*hosts, fleet=[odd("n[1-2] gpu[0-7]")], **OLD)
    now = report(*hosts, fleet=[odd("n1 gpu[0-7], n2 gpu[0-3]")])
    ((kind, _, at, _),) = told(compare(now, then))
    assert (kind, at) == ("fixed", "n2 gpu[4-7]")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("535; the other 11 have 550", "535; the other 1,012 have 550"),
        ("535; 11 others have 550", "535; the other 9 have 550"),
        ("nics: no answer; the other 11 told it", "nics: no answer; the other 12 told it"),
        ("91 C; the median 60 C", "88 C; the median 61 C"),
        ("mixed: 5.15 on n[1-2]; 6.8 on n[3-4]", "mixed: 6.8 on n[1-2]; 5.15 on 40 hosts"),
    ],
)
def test_over_the_fleet_what_is_as_odd_as_before_is_no_change(was: str, now: str) -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(4)]
    then = report(*hosts, fleet=[odd("n1", measured=was)], **OLD)
    assert compare(report(*hosts, fleet=[odd("n1", measured=now)]), then).each == ()
    other = report(*hosts, fleet=[odd("n1", measured="530; the other 3 have 550")])
    (one,) = compare(other, then).each
    assert (one.kind, one.hosts, one.was, one.now) == (
        "changed", ("n1",), was, "530; the other 3 have 550"
    )  # fmt: skip


def test_over_the_fleet_a_new_host_that_is_odd_was_not_there() -> None:
    then = report(*(host(f"n{i}", KNOWN) for i in range(3)), fleet=[alike("n[0-2]")], **OLD)
    now = report(*(host(f"n{i}", KNOWN) for i in range(4)), fleet=[odd("n3", measured="535")])
    assert told(compare(now, then))[0] == (
        "failed", "fleet.driver.version", "n3", "was not there, now 535",
    )  # fmt: skip


def test_over_the_fleet_a_host_that_does_not_tell_it_any_more_is_named() -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(6)]
    everyone = [alike("n[0-5]"), alike("n[0-5]", check="fleet.kernel")]
    fewer = [alike("n[0-4]"), alike("n[0-4]", check="fleet.kernel")]
    then, now = report(*hosts, fleet=everyone, **OLD), report(*hosts, fleet=fewer)
    assert told(compare(now, then)) == [
        ("unseen", "2 checks", "n5", "no longer told (fleet.driver.version, fleet.kernel)")
    ]
    assert compare(then, replace(now, **OLD)).each == ()
    # Nor was it mended.
    bad = report(*hosts, fleet=[odd("n5")], **OLD)
    ((kind, _, at, text),) = told(compare(report(*hosts, fleet=fewer[:1]), bad))
    assert (kind, at, text[:5], text[-18:]) == ("unseen", "n5", "was F", "now no longer told")
    untold = Result("fleet.told", "n5 driver", ERROR, "no answer in 30 s; the other 5 told it")
    more = report(*hosts, fleet=[odd("n4"), untold])
    assert [one.kind for one in compare(more, bad).each if one.hosts == ("n5",)] == ["unseen"]
    # Another part of it that is not told says nothing of one that is.
    mended = report(*hosts, fleet=[alike("n[0-5]"), untold])
    assert [one.kind for one in compare(mended, bad).each] == ["fixed"]


def test_over_the_fleet_what_is_compared_no_more_is_not_mended() -> None:
    hosts = [host(f"n{i}", KNOWN) for i in range(3)]
    skip = Result("fleet.driver.version", "n[0-2]", SKIP, reason="no host tells it")
    bad = report(*hosts, fleet=[odd("n1")], **OLD)
    (one,) = compare(report(*hosts, fleet=[skip]), bad).each
    assert (one.kind, one.now) == ("unseen", "no host tells it")
    gone = report(hosts[0], broken("n1", "refused", "x"), hosts[2], fleet=[alike("n[0,2]")])
    assert [one.kind for one in compare(gone, bad).each] == ["silent"]


def test_of_a_thousand_hosts_the_values_stand_in_the_line() -> None:
    names = [f"node{i:04}" for i in range(1000)]
    some = [name for name in names if int(name[4:]) % 3]
    hosts = [host(name, KNOWN) for name in names]
    then = report(*hosts, fleet=[alike(fold(names))], **OLD)
    now = report(*hosts, fleet=[odd(fold(some), measured="535; the other 334 have 550")])
    ((_, _, at, text),) = told(compare(now, then))
    assert (at, text) == ("666 hosts", "was not odd, now 535; the other 334 have 550")
    both = report(
        *hosts,
        fleet=[
            odd(fold(some[:333]), measured="530; the other 667 have 550"),
            odd(fold(some[333:]), measured="535; the other 667 have 550"),
        ],
    )
    ((_, _, at, text),) = told(compare(both, then))
    assert text == (
        "333 hosts was not odd, now 530; the other 667 have 550; "
        "333 hosts was not odd, now 535; the other 667 have 550"
    )


def test_reports_of_a_comparison_alone_are_compared() -> None:
    hosts = [host(f"n{i}", summary="Ubuntu") for i in range(3)]
    then, now = report(*hosts, fleet=[alike("n[0-2]")], **OLD), report(*hosts, fleet=[odd("n1")])
    assert [(one.kind, one.hosts) for one in compare(now, then).each] == [("failed", ("n1",))]
    full = report(*(host(f"n{i}", KNOWN, passed("b.c", "other", 1, "1"), summary="Ubuntu")
                    for i in range(3)), fleet=[alike("n[0-2]")], **OLD)  # fmt: skip
    assert [one.kind for one in compare(now, full).each] == ["failed"]


def test_a_part_of_a_host_that_is_not_told_any_more_is_named() -> None:
    missing = {"kind": "timeout", "text": "nvidia-smi: no answer in 30 s"}
    now, then = host("n1", KNOWN, facts=facts(gpus=missing)), host("n1", KNOWN, facts=facts())
    assert told(compare(report(now), report(then, **OLD))) == [
        ("unseen", "gpus", "n1", "was told, now no longer told: nvidia-smi: no answer in 30 s")
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"started_at": "2026-01-03T00:00:00Z"}, "is the later one"),
        ({"started_at": "2026-01-02T03:04:05Z"}, "began at the same time"),
        ({"preflight": "0.0.1"}, "of preflight 0.0.1, this one of 0.1.0"),
        ({"command": "run"}, "its command was run, now it is gpu-health"),
        ({"level": "full"}, "its level was full, now it is quick"),
        ({"profile": "cloud-vm"}, "its profile was cloud-vm, now it is none"),
        ({"overrides": (Override("gpu.count", 8, "--set"),)}, "other values of gpu.count"),
        ({"hosts": (host("x9", KNOWN),)}, "no host in common; the earlier one is of x9"),
    ],
)
def test_what_makes_them_hard_to_compare_is_said(change: dict[str, Any], said: str) -> None:
    now = report(host("n1", KNOWN))
    then = replace(report(host("n1", KNOWN), **OLD), **change)
    (note,) = compare(now, then).notes
    assert said in note
    now.changes = compare(now, then)
    assert said.split()[0] in text_of(now)


def test_reports_alike_have_nothing_to_keep_in_mind() -> None:
    now, then = report(host("n1", KNOWN)), report(host("n1", KNOWN), **OLD)
    assert compare(now, then).notes == ()
    now.changes = compare(now, then)
    assert "since 2026-01-01 03:04:05 UTC: nothing changed; 1 host compared\n" in text_of(now)


def test_the_verdict_stays_that_of_the_new_report_and_changes_are_stored() -> None:
    now = cluster()
    verdict, counts = now.verdict, now.counts
    now.changes = compare(now, yesterday())
    assert (now.verdict, now.counts) == (verdict, counts)
    assert read("".join(render(now, "json"))) == now
    lines = [line for line in render(now, "jsonl") if '"preflight.change/1"' in line]
    assert len(lines) == len(now.changes.each)


def test_of_the_cluster_the_worst_stands_first_and_all_of_it_fits() -> None:
    changes = compare(cluster(), yesterday())
    kinds = [row[0] for row in told(changes)]
    assert kinds[:4] == ["silent", "silent", "failed", "failed"]
    assert kinds[-1] == "fixed"
    many = list(rows(changes, hosts=True, most=3, more="-v lists them"))
    assert many[-1].told == "and 10 more (-v lists them)"


_RESULTS = st.lists(
    st.builds(Result, check=st.sampled_from(["a.b", "a.c"]), subject=st.sampled_from("xyz"),
              status=st.sampled_from(Status)), max_size=6,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_RESULTS, _RESULTS)
def test_nothing_that_became_worse_is_left_out(now: list[Result], then: list[Result]) -> None:
    catalogue = [passed("a.b", "other", 1, "1"), passed("a.c", "other", 1, "1")]
    both: list[Report] = [
        report(host("n1", *catalogue, *told), **when) for told, when in ((now, {}), (then, OLD))
    ]
    found = compare(*both).each
    before = {(one.check, one.subject, one.status) for one in then}
    for one in now:
        if one.status is FAIL and (one.check, one.subject, FAIL) not in before:
            assert any(change.kind == "failed" and change.about == one.check for change in found)
    for change in found:
        if change.kind == "fixed":
            assert any(one.status is PASS and one.check == change.about
                       for one in [*now, *catalogue])  # fmt: skip


_ANY = st.text(max_size=40)


_ANY_RESULTS = st.lists(
    st.builds(Result, check=_ANY, subject=_ANY, status=st.sampled_from(Status), measured=_ANY,
              reason=_ANY), max_size=4,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_ANY_RESULTS, _ANY_RESULTS, _ANY, st.sampled_from([40, 100]))
def test_no_change_makes_a_line_too_wide(
    now: list[Result], then: list[Result], any_: str, columns: int
) -> None:
    new = report(host(any_, *now, summary="a"), host("n2", *then))
    old = report(host(any_, *then, summary=any_), host(any_ + "x"), started_at=any_, level=any_)
    new.changes = compare(new, old)
    text = text_of(new, columns=columns)
    assert "\x1b" not in text
    # What the shell takes as one word, here a check's long id, is never broken.
    wide = [line for line in text.split("\n") if cells(line) > columns]
    words = [re.findall(r"'[^']*(?:'|$)|\"[^\"]*(?:\"|$)|[^ ]+", line) for line in wide]
    assert all(max(map(cells, each)) > columns - 24 for each in words)
    assert "\x1b" not in "".join(render(new, "markdown"))
