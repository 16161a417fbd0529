"""Whether NCCL took the network that the machines have."""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.nccl import NcclHost, NcclLog, NcclSelection
from preflight.judge.nccl.machine import interfaces, is_of, live_ports, told_variables
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

#: Networks of plain TCP.
_SOCKETS = ("Socket", "FastSocket")
_WANTED = "a network of RDMA where there is one"
_CAUSES = ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_HCA")
#: A host of so many GPUs is built with a network for them.
_MANY = 8
_HINT = "cannot tell whether there is another: give `ibstat` or `preflight capture` of it"


class _Taken(Struct, frozen=True):
    """Who took which network."""

    name: str
    network: str
    processes: int
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
    found = [_of_host(one, selections) for one in hosts if isinstance(one.network, str)]
    return found + [
        _Taken(one.name, one.network, 0, one.interfaces, _line(one))
        for one in selections if not one.host
    ]  # fmt: skip


def _of_host(one: NcclHost, selections: tuple[NcclSelection, ...]) -> _Taken:
    mine = [each for each in selections if each.host == one.name]
    names = tuple(dict.fromkeys(name for each in mine for name in each.interfaces))
    shown = mine[0] if mine else one
    return _Taken(one.name, str(one.network), one.processes, names, _line(shown))


def _line(one: NcclHost | NcclSelection) -> tuple[Evidence, ...]:
    return (Evidence(one.probe, line=one.line),)


def _is_socket(network: str) -> bool:
    return any(part in _SOCKETS for part in network.split(", "))


def _judged(host: Host, log: NcclLog, check: Check, one: _Taken, taken: list[_Taken]) -> Result:
    if not _is_socket(one.network):
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
    others = [each for each in taken if each.processes and not _is_socket(each.network)]
    if one.processes and others:
        return Status.FAIL, f"{others[0].name} uses {others[0].network}{used}"
    return (Status.WARN if one.processes >= _MANY else Status.SKIP), f"{_HINT}{used}"
