"""Whether NCCL took the network that the machines have."""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.nccl import NcclHost, NcclLog, NcclSelection
from preflight.judge.nccl.machine import (
    between_hosts,
    interfaces,
    is_of,
    live_ports,
    over_tcp,
    told_variables,
)
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

_WANTED = "a network of RDMA where there is one"
_CAUSES = ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_HCA")
#: A host of so many GPUs is built with a network for them, wherever its ranks are.
_MANY = 8
_HINT = "cannot tell whether there is another: give `ibstat` or `preflight capture` of it"


class _Taken(Struct, frozen=True):
    """Who took which network."""

    name: str
    network: str  # AWS Libfabric over tcp;ofi_rxm
    tcp: bool
    processes: int
    between: bool  # whether the host is seen to work with others
    interfaces: tuple[str, ...]
    evidence: tuple[Evidence, ...]


def judge_network(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """One result for each host of the log, or for each line that has no host."""
    taken = list(_taken(log))
    if not taken:
        return [undetermined(check, host.name, _unsaid(log))]
    return [_judged(host, log, check, one, taken) for one in taken]


def _unsaid(log: NcclLog) -> Missing:
    return log.selections if isinstance(log.selections, Missing) else Missing(
        "not-in-input", "the log does not say which network was taken"
    )  # fmt: skip


def _taken(log: NcclLog) -> list[_Taken]:
    selections = () if isinstance(log.selections, Missing) else log.selections
    hosts = () if isinstance(log.hosts, Missing) else log.hosts
    found = [_of_host(log, one, selections) for one in hosts if isinstance(one.network, str)]
    return found + [
        _Taken(one.name, one.network, over_tcp(one.network), 0, False, one.interfaces, _line(one))
        for one in selections if not one.host
    ]  # fmt: skip


def _of_host(log: NcclLog, one: NcclHost, selections: tuple[NcclSelection, ...]) -> _Taken:
    mine = [each for each in selections if each.host == one.name]
    names = tuple(dict.fromkeys(name for each in mine for name in each.interfaces))
    shown = mine[0] if mine else one
    network = str(one.network)
    network += f" over {one.provider}" if isinstance(one.provider, str) else ""
    return _Taken(
        one.name, network, over_tcp(str(one.network), one.provider), one.processes,
        between_hosts(log, one), names, _line(shown),
    )  # fmt: skip


def _line(one: NcclHost | NcclSelection) -> tuple[Evidence, ...]:
    return (Evidence(one.probe, line=one.line),)


def _judged(host: Host, log: NcclLog, check: Check, one: _Taken, taken: list[_Taken]) -> Result:
    if not one.tcp:
        return result(check, one.name, Status.PASS, one.network, _WANTED)
    if _alone(log):
        why = "all ranks are on one host: no network is used"
        return result(check, one.name, Status.SKIP, one.network, _WANTED, reason=why)
    status, reason = _fallback(host, log, one, taken)
    causes = told_variables(log, one.name, _CAUSES)
    reason += f"; {causes} is set" if causes else ""
    return result(
        check, one.name, status, one.network, _WANTED, reason=reason, evidence=one.evidence
    )


def _alone(log: NcclLog) -> bool:
    """Whether every communicator is within one host."""
    told = log.communicators
    if isinstance(told, Missing):
        return False
    return all(one.hosts == 1 and one.seen == one.ranks for one in told)


def _fallback(host: Host, log: NcclLog, one: _Taken, taken: list[_Taken]) -> tuple[Status, str]:
    ports = live_ports(host) if is_of(host, log, one.name) else None
    used = interfaces(host, one.interfaces)
    used = f"; {used} used" if used else ""
    if ports is not None and not isinstance(ports, Missing):
        if ports.ports:
            status = Status.FAIL if ports.infiniband else Status.WARN
            return status, f"{ports.told} idle{used}"
        return Status.PASS, ""
    others = [each for each in taken if each.processes and not each.tcp]
    if one.processes and others:
        return Status.FAIL, f"{others[0].name} uses {others[0].network}{used}"
    known = one.between or one.processes >= _MANY
    return (Status.WARN if known else Status.SKIP), f"{_HINT}{used}"
