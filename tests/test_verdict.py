"""One status out of many: unknown never passes, and nothing judged is not a pass."""

from __future__ import annotations

import pytest

from preflight.model import Counts, Finding, HostReport, MissingProbe, Result, Status
from preflight.verdict import count, host_verdict, report_verdict, verdict_of, with_fleet

PASS, WARN, FAIL, SKIP, ERROR = (
    Status.PASS, Status.WARN, Status.FAIL, Status.SKIP, Status.ERROR,
)  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        ([], SKIP),
        ([SKIP, SKIP], SKIP),
        ([SKIP, PASS], PASS),
        ([PASS, WARN], WARN),
        ([WARN, ERROR, PASS], ERROR),
        ([ERROR, FAIL, SKIP], FAIL),
    ],
)
def test_the_worst_counts(statuses: list[Status], verdict: Status) -> None:
    assert verdict_of(statuses) is verdict
    assert verdict_of(iter(reversed(statuses))) is verdict


GONE = MissingProbe("ssh", "unreachable", "timed out")
ABSENT = MissingProbe("ipmitool", "no-tool", "not found")
UNASKED = MissingProbe("dmesg", "not-in-input", "not in the input")


@pytest.mark.parametrize(
    ("statuses", "missing", "verdict"),
    [
        ([], [], SKIP),
        ([], [GONE], ERROR),
        ([], [UNASKED], SKIP),
        ([PASS], [ABSENT, UNASKED], PASS),
        ([PASS], [GONE], ERROR),
        ([FAIL], [GONE], FAIL),
    ],
)
def test_a_host_that_is_gone_never_passes(
    statuses: list[Status], missing: list[MissingProbe], verdict: Status
) -> None:
    assert host_verdict([Result("a.b", "x", one) for one in statuses], missing) is verdict


def test_the_report_is_as_bad_as_its_worst_part() -> None:
    host, fleet = HostReport("n1", PASS), Result("fleet.x", "n1", WARN)
    assert report_verdict([host], [], []) is PASS
    assert report_verdict([host], [fleet], []) is WARN
    assert report_verdict([host], [fleet], [Finding("slow", FAIL)]) is FAIL
    assert report_verdict([HostReport("n2", ERROR), host], [], []) is ERROR
    assert report_verdict([], [], []) is SKIP


def test_results_are_counted_by_status() -> None:
    results = [Result("a.b", "x", one) for one in (PASS, PASS, FAIL, SKIP, ERROR, ERROR, WARN)]
    assert count(results) == Counts(passed=2, warn=1, fail=1, skip=1, error=2)
    assert count([]) == Counts()


def one(name: str, *statuses: Status, missing: tuple[MissingProbe, ...] = ()) -> HostReport:
    results = tuple(Result("a.b", "x", status) for status in statuses)
    return HostReport(name, host_verdict(results, missing), missing, results=results)


@pytest.mark.parametrize(
    ("host", "status", "verdict"),
    [
        (one("n1", PASS), FAIL, FAIL),
        (one("n1", PASS), WARN, WARN),
        (one("n1", WARN), ERROR, ERROR),
        (one("n1", FAIL), WARN, FAIL),
        (one("n1", SKIP), PASS, SKIP),  # that it is like the others verifies nothing of it
        (one("n1", PASS), SKIP, PASS),
        (one("n1"), PASS, PASS),  # only the comparison was asked for
        (one("n1", missing=(ABSENT,)), PASS, PASS),
        (one("n1", missing=(GONE,)), PASS, ERROR),
        (one("n1"), WARN, WARN),
    ],
)
def test_what_was_found_over_the_fleet_is_of_the_hosts_it_names(
    host: HostReport, status: Status, verdict: Status
) -> None:
    other = one("n2", PASS)
    counts = len(host.results)
    with_fleet([host, other], [Result("fleet.x", "n1 gpu[0-7]", status)], {"n1", "n2"})
    assert (host.verdict, other.verdict) == (verdict, PASS)
    assert len(host.results) == counts


def test_a_host_that_was_not_compared_is_not_passed_by_the_others() -> None:
    hosts = [one("n1"), one("n2"), one("n3", missing=(ABSENT,))]
    with_fleet(hosts, [Result("fleet.x", "n1", PASS)], {"n1"})
    assert [host.verdict for host in hosts] == [PASS, SKIP, ERROR]
