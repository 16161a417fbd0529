"""The hosts that can take a job, and those that cannot."""

from __future__ import annotations

from preflight.model import HostReport, Report, Status
from preflight.nodesets import hosts_named
from preflight.reports.silent import machines

_BAD = (Status.FAIL, Status.ERROR)


def split_hosts(report: Report, *, strict: bool = False) -> tuple[list[str], list[str]]:
    """(passed, failed), each in the report's order.

    A host fails that failed, that could not be determined, of which nothing was verified, or that a
    failure over the fleet names; with `strict` also one that is warned of. A failure over the fleet
    that names no host is about all of them.
    """
    bad = (*_BAD, Status.WARN) if strict else _BAD
    hosts = machines(report.hosts)
    names = list(dict.fromkeys(host.host for host in hosts))
    failed = {host.host for host in hosts if not _usable(host, bad)}
    for result in report.fleet:
        if result.status in bad:
            failed |= hosts_named(result.subject, set(names)) or set(names)
    return [name for name in names if name not in failed], [n for n in names if n in failed]


def _usable(host: HostReport, bad: tuple[Status, ...]) -> bool:
    """Whether something was verified and nothing speaks against it."""
    if not host.results or host.verdict is Status.SKIP or host.verdict in bad:
        return False
    return not any(one.fault for one in host.missing)
