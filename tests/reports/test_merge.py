"""Several reports as one: the later answer counts, and no failure is lost on the way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.model import Finding, MissingProbe, Override, Report, Result, Status
from preflight.reports.matrix import kinds
from preflight.reports.merge import merge
from preflight.reports.split import split_hosts
from preflight.verdict import with_fleet
from tests.reports.built import (
    host,
    one_host,
    passed,
    report,
    rich,
    text_of,
    undetermined,
    width,
)

EARLY, LATE = "2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z"
GONE = MissingProbe("ssh", "unreachable", "ssh: timed out")


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(UsageError, match="no report to merge"):
        merge([])


def test_one_report_stays_as_it_is() -> None:
    assert merge([one_host()]) == one_host()
    assert merge([rich()]) == rich()


def test_hosts_are_joined_and_counted_anew() -> None:
    first = report(host("n1", passed("a.b", "n1", 1, "1")), command="gpu-health")
    second = report(
        host("n2", width("gpu0", 1)), host("n1", passed("c.d", "n1", 1, "1")), command="run"
    )
    merged = merge([first, second])
    assert [one.host for one in merged.hosts] == ["n1", "n2"]
    assert [one.check for one in merged.hosts[0].results] == ["a.b", "c.d"]
    assert (merged.counts.passed, merged.counts.fail) == (2, 1)
    assert merged.verdict is Status.FAIL
    assert merged.command == "gpu-health+run"


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_results_of_one_check_and_subject_the_later_counts(order: int) -> None:
    broken = report(host("n1", width("gpu0", 1)), started_at=EARLY)
    mended = report(host("n1", passed("pcie.width", "gpu0", "x16", "x16")), started_at=LATE)
    merged = merge([broken, mended][::order])
    assert [one.status for one in merged.hosts[0].results] == [Status.PASS]
    assert merged.verdict is Status.PASS
    assert merged.started_at == EARLY
    assert merge([replace(mended, started_at=EARLY), replace(broken, started_at=LATE)]).verdict is (
        Status.FAIL
    )


def test_a_check_that_was_undetermined_for_the_host_gives_way_to_its_gpus() -> None:
    hung = report(host("n1", undetermined("pcie.width", "n1", "timed out")), started_at=EARLY)
    answered = report(host("n1", passed("pcie.width", "gpu0", 16, "16")), started_at=LATE)
    assert merge([hung, answered]).verdict is Status.PASS
    assert merge([replace(answered, started_at=EARLY), replace(hung, started_at=LATE)]).verdict is (
        Status.ERROR
    )


def test_a_host_that_answered_later_was_not_gone() -> None:
    gone = report(host("n1", missing=[GONE]), started_at=EARLY)
    there = report(host("n1", passed("a.b", "n1", 1, "1")), started_at=LATE)
    merged = merge([gone, there])
    assert merged.verdict is Status.PASS
    assert merged.hosts[0].missing == ()


def test_a_host_that_is_gone_now_does_not_pass_on_what_it_said_before() -> None:
    there = report(host("n1", passed("a.b", "n1", 1, "1")), started_at=EARLY)
    gone = report(host("n1", missing=[GONE]), started_at=LATE)
    merged = merge([there, gone])
    assert merged.verdict is Status.ERROR
    assert merged.hosts[0].missing == (GONE,)
    assert merged.counts.passed == 1


def _fleet(subject: str, status: Status) -> Result:
    return Result("fleet.driver.same", subject, status)


def test_a_later_look_at_the_same_hosts_replaces_the_fleets_results() -> None:
    hosts = [host("n1", passed("a.b", "n1", 1, "1")), host("n2", passed("a.b", "n2", 1, "1"))]
    off = report(*hosts, fleet=[_fleet("n2", Status.FAIL)], started_at=EARLY)
    same = report(*hosts, fleet=[_fleet("n[1-2]", Status.PASS)], started_at=LATE)
    assert merge([off, same]).fleet == same.fleet
    assert merge([off, same]).verdict is Status.PASS


def test_a_look_at_other_hosts_does_not() -> None:
    one, two = (host(name, passed("a.b", name, 1, "1")) for name in ("n1", "n2"))
    off = report(one, fleet=[_fleet("n1", Status.FAIL)], started_at=EARLY)
    fine = report(two, fleet=[_fleet("n2", Status.PASS)], started_at=LATE)
    merged = merge([off, fine])
    assert merged.verdict is Status.FAIL
    assert merged.fleet == off.fleet
    assert merged.counts.fail == 1
    assert [host.verdict for host in merged.hosts] == [Status.FAIL, Status.PASS]


def test_hosts_of_different_reports_were_not_compared_and_that_is_said() -> None:
    good = passed("gpu.a", "gpu0", 1, "1")
    parts = [
        report(*(host(f"{name}{i}", good) for i in range(2)), fleet=[
            _fleet(f"{name}[0-1]", Status.PASS),
            Result("fleet.kernel", f"{name}[0-1]", Status.SKIP, reason="no host tells it"),
            Result("fleet.os", f"{name}1", Status.WARN, "another"),
        ]) for name in "ab"
    ]  # fmt: skip
    merged = merge(parts)
    assert [(one.check, one.subject) for one in merged.fleet] == [
        ("fleet.os", "a1"), ("fleet.os", "b1"),
    ]  # fmt: skip
    assert [(row.hosts, row.marks.get("fleet")) for row in kinds(merged)] == [
        (["a1", "b1"], Status.WARN), (["a0", "b0"], None),
    ]  # fmt: skip
    assert merged.counts.passed == 4
    (hint,) = merged.hints
    assert hint.startswith("hosts of different reports were not compared; judge their captures")
    assert "together: --from a.capture.gz --from b" in " ".join(text_of(merged).split())


def test_where_one_of_the_reports_is_of_all_hosts_its_comparison_stands() -> None:
    good = passed("gpu.a", "gpu0", 1, "1")
    file = host("junk.bin", missing=[MissingProbe("junk.bin", "unreadable", "is not text")])
    whole = report(*(host(f"n{i}", good) for i in range(3)),
                   fleet=[_fleet("n[0-2]", Status.PASS)], started_at=EARLY)  # fmt: skip
    later = report(host("n1", good), file, started_at=LATE)
    merged = merge([whole, later])
    assert merged.fleet == whole.fleet
    assert merged.hints == ()


def test_hosts_that_were_only_compared_among_themselves_pass_nothing_among_others() -> None:
    def compared(name: str) -> Report:
        hosts = [host(f"{name}{i}", summary="Ubuntu") for i in range(2)]
        fleet = [_fleet(f"{name}[0-1]", Status.PASS)]
        with_fleet(hosts, fleet, {f"{name}0", f"{name}1"})
        return report(*hosts, fleet=fleet)

    one = compared("a")
    assert {host.verdict for host in one.hosts} == {Status.PASS}
    assert merge([one, replace(one, started_at=LATE)]).verdict is Status.PASS
    both = merge([one, compared("b")])
    assert {host.verdict for host in both.hosts} == {Status.SKIP}
    assert split_hosts(both)[0] == []


def test_what_surrounds_the_results_is_joined() -> None:
    first = report(
        host("n1", facts={"a": 1, "b": {"kind": "not-asked", "text": "x"}}, summary="old"),
        argv=("preflight", "a"), hints=("h",), profile="p", overrides=(Override("i", 1, "--set"),),
        findings=[Finding("slow", Status.FAIL, "rank 1"), Finding("data", Status.WARN)],
        measurements=({"table": "t"},), started_at=EARLY, elapsed_s=1.0, level="standard",
    )  # fmt: skip
    second = report(
        host("n1", facts={"a": {"kind": "not-asked", "text": "x"}, "b": 2}),
        argv=("preflight", "b"), hints=("h", "k"), overrides=(Override("i", 1, "--set"),),
        findings=[Finding("slow", Status.PASS, "rank 1")],
        measurements=({"table": "t"}, {"table": "u"}), started_at=LATE, elapsed_s=2.0,
    )  # fmt: skip
    merged = merge([first, second])
    assert merged.argv == ("preflight", "a", ";", "preflight", "b")
    assert merged.command == "gpu-health"
    assert merged.level == "quick+standard"
    assert merged.elapsed_s == 3.0
    assert merged.profile == "p"
    assert merged.hints == ("h", "k")
    assert merged.overrides == (Override("i", 1, "--set"),)
    assert [one.status for one in merged.findings] == [Status.PASS, Status.WARN]
    assert merged.measurements == ({"table": "t"}, {"table": "u"})
    assert merged.hosts[0].facts == {"a": 1, "b": 2}
    assert merged.hosts[0].summary == "old"


def test_merging_changes_none_of_the_reports() -> None:
    first, second = one_host(), rich()
    merge([first, second])
    assert (first, second) == (one_host(), rich())
