"""Whether NCCL took the network that the machines have."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from preflight.facts.host import Host
from preflight.facts.nccl import NcclConnection, NcclHost, NcclLog, NcclSelection
from preflight.facts.nics import NicPort
from preflight.judge.nccl.machine import (
    between_hosts,
    interfaces,
    is_of,
    live_ports,
    over_tcp,
    told_variables,
)
from preflight.judge.nccl.within import across
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

_WANTED = "a network of RDMA where there is one"
_CAUSES = ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_HCA")
#: A host of so many GPUs is built with a network for them, wherever its ranks are.
_MANY = 8
#: So many ports as fast as that are bought for RoCE: what a virtual machine or a host without such
#: a network has of Ethernet are one or two, or slower ones.
_PORTS, _LEAST_GBITS = 4, 200.0
_TOLD = 3
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
    beside: str = ""  # what of this host goes over TCP while others of it do not


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
    ways = across(log)
    found = [
        _of_host(log, one, [each for each in selections if each.host == one.name],
                 ways.get(one.name, []))
        for one in hosts if isinstance(one.network, str)
    ]  # fmt: skip
    return found + [
        _Taken(one.name, one.network, over_tcp(one.network), 0, False, one.interfaces, _line(one))
        for one in selections if not one.host
    ]  # fmt: skip


def _of_host(
    log: NcclLog, one: NcclHost, mine: list[NcclSelection], ways: list[NcclConnection]
) -> _Taken:
    """What the host's processes say that they use, and what its ways to other hosts go over."""
    names = tuple(dict.fromkeys(name for each in mine for name in each.interfaces))
    by_tcp = [way for way in ways if over_tcp(way.way)]
    used = dict.fromkeys([*str(one.network).split(", "), *(way.way for way in by_tcp)])
    tcp = over_tcp(", ".join(used), one.provider)
    told = ", ".join(used) + (f" over {one.provider}" if isinstance(one.provider, str) else "")
    shown = by_tcp[0] if by_tcp else mine[0] if mine else one
    beside = _beside(used, ways, by_tcp, mine) if tcp else ""
    return _Taken(
        one.name, told, tcp, one.processes, between_hosts(log, one, ways), names, _line(shown),
        beside,
    )  # fmt: skip


def _beside(
    used: Iterable[str], ways: list[NcclConnection], by_tcp: list[NcclConnection],
    mine: list[NcclSelection],
) -> str:  # fmt: skip
    """ranks 3 -> 11, 11 -> 3 over Socket, others of this host over IB; "" where all use one."""
    others = list(dict.fromkeys(way.way for way in ways if not over_tcp(way.way)))
    if not (by_tcp and others):
        # Connections count where there are any: a network that is taken may go unused.
        others = [] if ways else [name for name in used if not over_tcp(name)]
    networks = [way.way for way in by_tcp] or [name for name in used if over_tcp(name)]
    if not (others and networks):
        return ""
    pairs = list(dict.fromkeys(f"{way.source} -> {way.target}" for way in by_tcp))
    who = f"ranks {', '.join(pairs[:_TOLD])}" if pairs else _processes(mine)
    more = f" and {len(pairs) - _TOLD} more" if len(pairs) > _TOLD else ""
    return f"{who}{more} over {networks[0]}, others of this host over {', '.join(others)}"


def _processes(mine: list[NcclSelection]) -> str:
    found = [one.name.rpartition(" ")[2] for one in mine if over_tcp(one.network)]
    return ", ".join(found[:_TOLD]) if len(mine) > len(found) > 0 else "some processes"


def _line(one: NcclHost | NcclSelection | NcclConnection) -> tuple[Evidence, ...]:
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


def _is_for_training(ports: tuple[NicPort, ...]) -> bool:
    rates = [one.rate_gbits for one in ports if not isinstance(one.rate_gbits, Missing)]
    return sum(rate >= _LEAST_GBITS for rate in rates) >= _PORTS


def _fallback(host: Host, log: NcclLog, one: _Taken, taken: list[_Taken]) -> tuple[Status, str]:
    if one.beside:
        return Status.FAIL, one.beside
    ports = live_ports(host) if is_of(host, log, one.name) else None
    used = interfaces(host, one.interfaces)
    used = f"; {used} used" if used else ""
    if ports is not None and not isinstance(ports, Missing):
        if ports.ports:
            sure = ports.infiniband or _is_for_training(ports.ports)
            status = Status.FAIL if sure else Status.WARN
            return status, f"{ports.told} idle{used}"
        return Status.PASS, ""
    others = [each for each in taken if each.processes and not each.tcp]
    if one.processes and others:
        return Status.FAIL, f"{others[0].name} uses {others[0].network}{used}"
    known = one.between or one.processes >= _MANY
    return (Status.WARN if known else Status.SKIP), f"{_HINT}{used}"
