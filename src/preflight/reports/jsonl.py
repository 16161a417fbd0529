"""One JSON line per result, for tools that read line by line; the last line sums up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from preflight.model import STATUS_OF_MISSING, Report
from preflight.reports.groups import entries
from preflight.reports.json import encode


def render(report: Report, *, verbose: int, quiet: bool, facts: bool) -> Iterator[str]:
    """Results of hosts and fleet, findings, why hosts gave no answer, and one summary."""
    for record in _records(report):
        yield encode(record) + "\n"


def _records(report: Report) -> Iterator[dict[str, Any]]:
    run = {"command": report.command, "started_at": report.started_at}
    for name, result in entries(report):
        # `host` is null for what was judged over all hosts.
        told = msgspec.to_builtins(result)
        yield {"schema": "preflight.result/1", "host": name or None, **run, **told}
    for host in report.hosts:
        for missing in (one for one in host.missing if one.fault or not host.results):
            told = {"status": STATUS_OF_MISSING[missing.kind], **msgspec.to_builtins(missing)}
            yield {"schema": "preflight.missing/1", "host": host.host, **run, **told}
    for finding in report.findings:
        told = msgspec.to_builtins(finding)
        yield {"schema": "preflight.finding/1", "host": None, **run, **told}
    if report.changes:
        run_since = {**run, "since": report.changes.since}
        for change in report.changes.each:
            yield {"schema": "preflight.change/1", **run_since, **msgspec.to_builtins(change)}
    yield {"schema": "preflight.summary/1", **run, **_summary(report)}


def _summary(report: Report) -> dict[str, Any]:
    return {
        "level": report.level,
        "elapsed_s": report.elapsed_s,
        "verdict": report.verdict,
        "counts": report.counts,
        "hosts": [{"host": one.host, "verdict": one.verdict} for one in report.hosts],
    }
