"""The variables of the environment, whoever told them: the host, a recorded `env`, a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from preflight.facts.stack import Environment, EnvReport, EnvTargets, EnvVar
from preflight.model import NOT_IN_INPUT, Known, Missing


def environment_facts(
    told: Known[Environment | tuple[EnvVar, ...]], parts: Iterable[Any]
) -> dict[str, Any]:
    """`environment` and `env_targets` of a host. `told` by a recorded `env` are variables alone;
    reports are among the parts."""
    reports = [part for part in parts if isinstance(part, EnvReport)]
    of_reports = tuple(one for report in reports for one in report.environment)
    if isinstance(told, Missing):
        found = of_reports if told is NOT_IN_INPUT and of_reports else told
        return {"environment": found, "env_targets": EnvTargets()}
    if isinstance(told, Environment):
        return {"environment": (*told.variables, *of_reports), "env_targets": told.targets}
    return {"environment": (*told, *of_reports), "env_targets": EnvTargets()}
