"""The limits of all that were asked for them as one list, and the rest of the system's facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight.facts.system import AskedProcess, Limit
from preflight.model import NOT_IN_INPUT, Known, Missing

#: Parts that are facts of the host as they are.
_AS_THEY_ARE = (
    "configured_limits", "asked_processes", "cgroup", "shared_memory", "disks", "processes", "clock",
    "cpu_state", "memory_state",
)  # fmt: skip
_NO_PROCESS = Missing("not-asked", "needs --pid PID, such as that of a rank of the training run")


def system_facts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of the host, by their names."""
    return {"limits": _limits(parts), **{name: parts[name] for name in _AS_THEY_ARE}}


def processes_of(
    found: Known[tuple[AskedProcess, ...]], *, asked: bool
) -> Known[tuple[AskedProcess, ...]]:
    """The processes that the user named, or why there are none."""
    return _NO_PROCESS if asked and found is NOT_IN_INPUT else found


def _limits(parts: Mapping[str, Any]) -> Known[tuple[Limit, ...]]:
    """Of the shell, of services that were told, of processes that were named. The shell's are the
    least that must be known."""
    shell: Known[tuple[Limit, ...]] = parts["limits"]
    if isinstance(shell, Missing):
        return shell
    services, named = parts["service_limits"], parts["asked_processes"]
    found = list(shell) + list(() if isinstance(services, Missing) else services)
    for process in () if isinstance(named, Missing) else named:
        found += process.limits
    return tuple(found)
