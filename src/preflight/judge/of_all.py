"""What hosts measured together, and one of them tells: no result of that is this one's alone."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.facts.host import Host
from preflight.model import Check, HostReport, Result, Status
from preflight.nodesets import ALL_HOSTS, of_all
from preflight.verdict import host_verdict, verdict_of

#: Facts of a job over all hosts. What a host finds out about itself is not among them.
_SHARED = ("collectives[", "collective_shapes[", "bench_settings[", "lasting[")
_ENDED = "collectives[*].ended"


def name_all(results: Sequence[Result], host: Host, checks: Sequence[Check]) -> None:
    """Make all hosts the subject of what the host tells of all, in place. That the job ended by a
    fault of the host itself stays its own."""
    if not host.speaks_for_all:
        return
    shared = {
        check.id for check in checks
        if check.fact.startswith(_SHARED) and not (check.fact == _ENDED and host.ended_job)
    }  # fmt: skip
    for one in results:
        if one.check in shared and one.status is not Status.SKIP:
            one.subject = f"{ALL_HOSTS} {one.subject}"


def taken_out(hosts: Sequence[HostReport]) -> list[Result]:
    """The results that are of all hosts, out of the reports of those that told them, in place. A
    host that has nothing else against it was part of what was measured."""
    found: list[Result] = []
    for host in hosts:
        shared = [one for one in host.results if of_all(one.subject)]
        if shared:
            host.results = tuple(one for one in host.results if one not in shared)
            own = host_verdict(host.results, host.missing)
            host.verdict = verdict_of([own, Status.PASS])
            found += shared
    return found
