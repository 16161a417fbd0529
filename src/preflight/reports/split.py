"""The hosts that can take a job, and those that cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from preflight.model import HostReport, Report, Status
from preflight.nodesets import hosts_named, of_all
from preflight.reports.silent import answered, machines, unverified

_BAD = (Status.FAIL, Status.ERROR)
#: What a host may not lack where most have it. Others may be without for good: PCIe cards have no
#: NVLink, a cloud's machines no management controller.
_NEEDED = frozenset({"gpu"})


def split_hosts(report: Report, *, strict: bool = False) -> tuple[list[str], list[str]]:
    """(passed, failed), each in the report's order.

    A host fails that failed, that gave no answer, that could not be determined, of which nothing
    was verified, be it only of its GPUs where those of most hosts were, or that a failure over the
    fleet names; with `strict` also one that is warned of. A failure over the fleet that names no
    host is about all of them, save where it is of what they did together and a host has failed in
    that itself: it is the one without which they can go on.
    """
    bad = (*_BAD, Status.WARN) if strict else _BAD
    hosts = machines(report.hosts)
    names = list(dict.fromkeys(host.host for host in hosts))
    failed = {host.host for host in hosts if not _usable(host, bad)} | lacking(hosts).keys()
    at_fault = {
        one.check.partition(".")[0] for host in hosts for one in host.results
        if one.status is Status.FAIL
    }  # fmt: skip
    for result in report.fleet:
        explained = result.check.partition(".")[0] in at_fault and of_all(result.subject)
        if result.status in bad and not explained:
            failed |= hosts_named(result.subject, set(names)) or set(names)
    return [name for name in names if name not in failed], [n for n in names if n in failed]


def _usable(host: HostReport, bad: tuple[Status, ...]) -> bool:
    """Whether something was verified and nothing speaks against it."""
    if not answered(host) or unverified(host) or host.verdict in bad:
        return False
    return not any(one.fault for one in host.missing)


def lacking(hosts: Sequence[HostReport]) -> dict[str, set[str]]:
    """The hosts of which nothing was verified in a domain that all need and in which most of them
    were judged, each with these domains."""
    seen = {host.host: _verified(host) for host in hosts if host.results}
    counts = Counter(name for found in seen.values() for name in found)
    usual = {name for name in _NEEDED if 2 * counts[name] > len(seen)}
    return {host: usual - found for host, found in seen.items() if usual - found}


def _verified(host: HostReport) -> set[str]:
    checks = {one.check for one in host.results if one.status is not Status.SKIP}
    return {check.partition(".")[0] for check in checks}
