"""Which connections over a network have both ends on one host, and which have not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.facts.nccl import NcclConnection, NcclLog
from preflight.model import Missing

#: A process and its rank -> communicators in which it has that rank.
_Own = Mapping[tuple[str, int, int], Sequence[str]]
#: Communicator and rank -> the host.
_Hosts = Mapping[tuple[str, int], str]


def within(log: NcclLog) -> dict[str, list[NcclConnection]]:
    """Host -> its ways over a network whose ends the log shows on that host. Where a process is in
    several communicators the ends are there in each that the line may be of."""
    return _ways(log, inside=True)


def across(log: NcclLog) -> dict[str, list[NcclConnection]]:
    """Host -> its ways over a network that are not seen to end on that host."""
    return _ways(log, inside=False)


def _ways(log: NcclLog, *, inside: bool) -> dict[str, list[NcclConnection]]:
    own: dict[tuple[str, int, int], list[str]] = {}
    hosts: dict[tuple[str, int], str] = {}
    for one in () if isinstance(log.ranks, Missing) else log.ranks:
        own.setdefault((one.host, one.device, one.rank), []).append(one.communicator)
        hosts[one.communicator, one.rank] = one.host
    found: dict[str, list[NcclConnection]] = {}
    for way in () if isinstance(log.connections, Missing) else log.connections:
        net = way.transport == "NET" and way.source != way.target
        if net and _is_within(way, own, hosts) is inside:
            found.setdefault(way.host, []).append(way)
    return found


def _is_within(way: NcclConnection, own: _Own, hosts: _Hosts) -> bool:
    """One end is who wrote the line. An end that the log does not tell is of no host."""
    ends = (way.source, way.target)
    told = {name for end in ends for name in own.get((way.host, way.device, end), ())}
    return bool(told) and all(hosts.get((name, end)) == way.host for name in told for end in ends)
