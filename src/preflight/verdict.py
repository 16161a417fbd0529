"""One status out of many: of a host, of a report; and how many there are of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

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
from preflight.nodesets import hosts_named


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


def with_fleet(
    hosts: Sequence[HostReport], fleet: Iterable[Result], compared: AbstractSet[str]
) -> None:
    """Make the verdict of each host the worst of its own and of the fleet's results that name it,
    in place. `compared`: hosts of which anything was compared; one without results of its own
    passes by that alone."""
    bad = named(fleet, {host.host for host in hosts}, SEVERITY[:3])
    for host in hosts:
        statuses = [one.status for one in bad.get(host.host, ())]
        if not host.results and (statuses or host.host in compared):
            # What it did not answer shows in the comparisons; that it went away does not.
            gone = [one for one in host.missing if one.fault or one.kind == "unreachable"]
            host.verdict = verdict_of([host_verdict((), gone), *statuses, Status.PASS])
        else:
            host.verdict = verdict_of([host.verdict, *statuses])


def named(
    fleet: Iterable[Result], known: AbstractSet[str], statuses: Sequence[Status]
) -> dict[str, list[Result]]:
    """Of each host the fleet's results with one of these statuses that name it."""
    hosts_of: dict[str, set[str]] = {}  # many results name the same thousand hosts
    found: dict[str, list[Result]] = {}
    for result in fleet:
        if result.status in statuses:
            subject = result.subject
            if subject not in hosts_of:
                hosts_of[subject] = hosts_named(subject, known)
            for host in hosts_of[subject]:
                found.setdefault(host, []).append(result)
    return found


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
