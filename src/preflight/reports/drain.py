"""What is typed to have Slurm drain the hosts that failed, and why: printed, never run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from preflight import nodesets
from preflight.model import HostReport, Report, Status

#: A reason is one column of sinfo's; more of it nobody reads there.
_REASON_CHARS = 120
#: What stays as it is between double quotes in any shell, and in Slurm's own columns.
_UNSAFE = re.compile(r"[^A-Za-z0-9 .,:_/\[\]()+-]+")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def drain_lines(report: Report) -> list[str]:
    """One `scontrol update` for all hosts that failed alike, in the order of the report.

    Only hosts with a check that failed: what warns, or could not be determined, drains nothing.
    """
    hosts: dict[str, list[str]] = {}
    for host in report.hosts:
        reason = _reason(host)
        if reason and _NODE.fullmatch(host.host):
            hosts.setdefault(reason, []).append(host.host)
    return [
        f'scontrol update nodename="{nodesets.fold(names)}" state=drain reason="{reason}"'
        for reason, names in hosts.items()
    ]


def _reason(host: HostReport) -> str:
    """`preflight: gpu.xid.79 gpu3, ...`; empty where nothing failed."""
    subjects: dict[str, list[str]] = {}
    failed = [result for result in host.results if result.status is Status.FAIL]
    # What follows from another failure is not a reason of its own.
    for result in [one for one in failed if not one.cause] or failed:
        subjects.setdefault(result.check, []).append(result.subject)
    parts = [_part(check, found, host.host) for check, found in subjects.items()]
    return f"preflight: {', '.join(_fitting(parts))}" if parts else ""


def _part(check: str, subjects: Iterable[str], host: str) -> str:
    named = nodesets.fold(subject for subject in subjects if subject != host)
    return _UNSAFE.sub("_", f"{check} {named}".strip())


def _fitting(parts: list[str]) -> Iterator[str]:
    """As many as are read, at least the first, and how many there are besides."""
    used = 0
    for number, part in enumerate(parts):
        used += len(part) + 2
        if number and used > _REASON_CHARS:
            yield f"{len(parts) - number} more"
            return
        yield part[:_REASON_CHARS]
