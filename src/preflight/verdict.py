"""One status out of many: of a host, of a report; and how many there are of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from preflight.model import (
    SEVERITY,
    STATUS_OF_MISSING,
    Counts,
    Finding,
    HostReport,
    MissingProbe,
    Result,
    Status,
)


def verdict_of(statuses: Iterable[Status]) -> Status:
    """The worst of FAIL, ERROR, WARN, PASS; SKIP where nothing else, or nothing at all, is there.

    Nothing judged is not PASS: unknown never passes.
    """
    return min(statuses, key=SEVERITY.index, default=Status.SKIP)


def host_verdict(results: Sequence[Result], missing: Iterable[MissingProbe]) -> Status:
    """The verdict of one host.

    Without results the questions without answers decide. With results these have shown already in
    the checks that needed them, save that the host went away.
    """
    unanswered = (
        STATUS_OF_MISSING[one.kind]
        for one in missing
        if not results or one.fault or one.kind == "unreachable"
    )
    return verdict_of([*(one.status for one in results), *unanswered])


def report_verdict(
    hosts: Iterable[HostReport], fleet: Iterable[Result], findings: Iterable[Finding]
) -> Status:
    """The verdict over all hosts, fleet results and findings."""
    return verdict_of(
        [
            *(host.verdict for host in hosts),
            *(result.status for result in fleet),
            *(finding.status for finding in findings),
        ]
    )


def count(results: Iterable[Result | Finding]) -> Counts:
    """How many there are of each status. A report counts its hosts' and its fleet's results."""
    found = Counter(one.status for one in results)
    return Counts(
        passed=found[Status.PASS],
        warn=found[Status.WARN],
        fail=found[Status.FAIL],
        skip=found[Status.SKIP],
        error=found[Status.ERROR],
    )
