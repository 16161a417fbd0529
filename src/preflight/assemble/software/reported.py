"""What recorded texts of an environment tell of a host that was not asked itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.facts.host import Cpu
from preflight.facts.setup import Package
from preflight.facts.stack import EnvReport
from preflight.model import NOT_IN_INPUT, Missing


def reports_of(read: Mapping[str, Any]) -> tuple[EnvReport, ...]:
    """All reports that could be read."""
    return tuple(answer for answer in read.values() if isinstance(answer, EnvReport))


def as_reported(parts: Mapping[str, Any], reports: Sequence[EnvReport]) -> dict[str, Any]:
    """The parts with the reports, and those that no answer supplied taken from them."""
    parts = {**parts, "env_reports": tuple(reports)}
    if not reports:
        return parts
    told = {"packages": _packages(reports), "os": _os(reports), "cpu": _cpu(reports)}
    missing = {part for part in told if parts[part] is NOT_IN_INPUT}
    return {**parts, **{part: told[part] for part in missing}}


def _first(reports: Sequence[EnvReport], field: str) -> Any:
    values = (getattr(report, field) for report in reports)
    return next((value for value in values if not isinstance(value, Missing)), NOT_IN_INPUT)


def _os(reports: Sequence[EnvReport]) -> Any:
    """As the host itself tells it: collect_env writes the machine behind it."""
    told = _first(reports, "os")
    return re.sub(r" \(\w+\)$", "", told) if isinstance(told, str) else told


def _cpu(reports: Sequence[EnvReport]) -> Any:
    hypervisor, nodes = _first(reports, "hypervisor"), _first(reports, "nodes")
    if isinstance(hypervisor, Missing) and isinstance(nodes, Missing):
        return NOT_IN_INPUT
    return Cpu(hypervisor=hypervisor, nodes=() if isinstance(nodes, Missing) else nodes)


def _packages(reports: Sequence[EnvReport]) -> Any:
    """Those that a host itself is asked for; the first report that names one counts."""
    from preflight.probes.stack.package_names import matters  # late: most inputs hold no report

    found: dict[str, Package] = {}
    for report in reports:
        if isinstance(report.python, str):
            line = report.lines.get("python", report.line)
            found.setdefault("python", Package("python", report.python, line, report.probe))
        for one in report.packages:
            if matters(one.name):
                found.setdefault(one.name, one)
    return tuple(found.values()) or NOT_IN_INPUT


def both_limits(read: Mapping[str, Any], limits: Any) -> Any:
    """The limits; of a shell that told the soft and the hard ones apart, both in one."""
    soft, hard = read.get("ulimit"), read.get("ulimit-hard")
    if limits is not soft or not (isinstance(soft, tuple) and isinstance(hard, tuple)):
        return limits
    of_each = {limit.resource: limit.hard for limit in hard}
    return tuple(replace(one, hard=of_each.get(one.resource, one.hard)) for one in soft)
