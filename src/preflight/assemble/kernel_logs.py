"""All kernel logs of a host as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from preflight.assemble.tables import SUPPLIERS
from preflight.facts.host import Identity
from preflight.facts.kernel import KernelLog
from preflight.model import Known, Missing


def all_logs(read: Mapping[str, Any], first: Any, identity: Known[Identity]) -> Any:
    """All kernel logs of the host as one; one that is closed to this user hurts nobody."""
    read = {name: log for name, log in read.items() if isinstance(log, KernelLog)}
    if not read:
        return first
    from preflight.probes.kernel_log.hosts import several  # late: many hosts come without a log
    from preflight.probes.kernel_log.union import hosts_of_all, relabelled, union

    logs = [log if log.probe == name else relabelled(log, name) for name, log in read.items()]
    logs.sort(key=_best_log_first)
    booted_at_s = _booted_at_s(identity)
    if len(hosts := hosts_of_all(logs)) > 1:
        return Missing("unreadable", f"the kernel logs: {several(hosts)}")
    log = union(logs, booted_at_s)
    return replace(log, reach_h=_reach_h(log, identity))


def _reach_h(log: KernelLog, identity: Known[Identity]) -> Known[float]:
    """How far back a log goes that lost its beginning."""
    if isinstance(identity, Missing):
        return identity
    if not log.truncated:
        return Missing("not-applicable", "the log begins at boot")
    now = identity.uptime_s if log.clock == "boot" else identity.date_s
    if isinstance(now, Missing) or log.first_at_s is None:
        return Missing("not-applicable", "the lines have no time")
    return max(now - log.first_at_s, 0.0) / 3600


def _best_log_first(log: KernelLog) -> int:
    return SUPPLIERS["kernel_log"].index(log.probe.partition("#")[0])


def _booted_at_s(identity: Known[Identity]) -> float | None:
    """When the host was booted, in seconds since 1970."""
    if isinstance(identity, Missing):
        return None
    date_s, uptime_s = identity.date_s, identity.uptime_s
    if isinstance(date_s, Missing) or isinstance(uptime_s, Missing):
        return None
    return date_s - uptime_s
