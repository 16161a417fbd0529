"""The limits of all that were asked for them as one list, and of services that start jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight.facts.system import AskedProcess, JobService, Limit
from preflight.model import NOT_IN_INPUT, Known, Missing

_NO_PROCESS = Missing("not-asked", "needs --pid PID, such as that of a rank of the training run")


def limit_facts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of the host, by their names."""
    return {
        "limits": _limits(parts),
        "job_services": _job_services(parts["service_limits"]),
    }


def processes_of(
    found: Known[tuple[AskedProcess, ...]], *, asked: bool
) -> Known[tuple[AskedProcess, ...]]:
    """The processes that the user named, or why there are none."""
    return _NO_PROCESS if asked and found is NOT_IN_INPUT else found


def _job_services(found: Known[tuple[Limit, ...]]) -> Known[tuple[JobService, ...]]:
    """The services that start jobs here, one record each."""
    if isinstance(found, Missing):
        return found
    names = dict.fromkeys(each.of for each in found if each.for_jobs)
    services = []
    for name in names:
        own = [each for each in found if each.of == name]
        soft = {each.resource: each.soft for each in own}
        nofile, memlock = soft.get("nofile", NOT_IN_INPUT), soft.get("memlock", NOT_IN_INPUT)
        services.append(JobService(name, nofile, memlock, own[0].line, own[0].probe))
    return tuple(services) or Missing("not-applicable", "no service starts jobs here")


def _limits(parts: Mapping[str, Any]) -> Known[tuple[Limit, ...]]:
    """Of the shell, of services that were told, of processes that were named. The shell's are the
    least that must be known."""
    shell: Known[tuple[Limit, ...]] = parts["limits"]
    if isinstance(shell, Missing):
        return shell
    services, named = parts["service_limits"], parts["asked_processes"]
    found = list(shell)
    found += () if isinstance(services, Missing) else services
    for process in () if isinstance(named, Missing) else named:
        found += process.limits
    return tuple(found)
