"""Whether adapters reach the memory of GPUs by themselves (GPUDirect RDMA)."""

from __future__ import annotations

import re

from preflight.facts.host import Host
from preflight.facts.nccl import NcclConnection, NcclHost, NcclLog
from preflight.judge.nccl.machine import gpu_of, is_of, over_tcp, told_variables
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

#: Networks that say GDRDMA where they use it; those over TCP (GPUDirect-TCPX) do not.
_TELLS = re.compile("^IB|Libfabric")
_NEAR = ("PIX", "PXB")
_NO_NET = Missing("not-applicable", "no connection of this host goes over an adapter of RDMA")
_OMNIPATH = Missing("not-applicable", "Omni-Path by verbs has no GPUDirect: see nccl.omnipath")
_TCP = Missing("not-applicable", "libfabric goes over TCP, which has no GPUDirect: nccl.network")
#: The adapters inside a GB10, by the names that every one of them has.
_GB10 = re.compile(r"roce(?:p1|P2p1)s0f[01]$")
_CAUSES = ("NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_DMABUF_ENABLE", "NCCL_IB_CUDA_SUPPORT")


def judge_gpudirect(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """One result for each host of the log."""
    assert not isinstance(log.hosts, Missing)
    assert not isinstance(log.connections, Missing)
    ways = {one.name: _ways(log.connections, one.name) for one in log.hosts}
    anywhere = any(way.gpudirect for found in ways.values() for way in found)
    return [_judged(host, log, check, one, ways[one.name], anywhere) for one in log.hosts]


def _ways(connections: tuple[NcclConnection, ...], name: str) -> list[NcclConnection]:
    """What is received over adapters: what is sent may go through the host's memory by design
    (NCCL_NET_GDR_READ). All, where the log does not tell the direction."""
    mine = [
        one for one in connections
        if one.host == name and one.transport == "NET" and _TELLS.search(one.way)
    ]  # fmt: skip
    return [one for one in mine if one.direction == "receive"] or mine


def _judged(
    host: Host, log: NcclLog, check: Check, one: NcclHost, ways: list[NcclConnection],
    anywhere: bool,
) -> Result:  # fmt: skip
    if not ways:
        return undetermined(check, one.name, _NO_NET)
    if one.omnipath_by_verbs is True:
        return undetermined(check, one.name, _OMNIPATH)
    if over_tcp("", one.provider):
        return undetermined(check, one.name, _TCP)
    without = [way for way in ways if not way.gpudirect]
    told = f"{len(ways) - len(without)} of {len(ways)} connections"
    if not without:
        return result(check, one.name, Status.PASS, told, "all")
    status, reason = _why(host, log, one, without, some=len(without) < len(ways) or anywhere)
    return result(
        check, one.name, status, told, "all", reason=reason,
        evidence=(Evidence(without[0].probe, line=without[0].line),),
    )  # fmt: skip


def _why(
    host: Host, log: NcclLog, one: NcclHost, without: list[NcclConnection], *, some: bool
) -> tuple[Status, str]:
    causes = told_variables(log, one.name, _CAUSES)
    cause = f"; {causes} is set" if causes else ""
    cause += f"; NCCL says: {one.gpudirect_off}" if isinstance(one.gpudirect_off, str) else ""
    near, known = _near(host, log, one, without)
    if near:
        return Status.FAIL, f"{near} sits beside its adapter{cause}"
    if known:
        return Status.SKIP, f"no GPU of these sits beside an adapter ({known} at best){cause}"
    if one.net_gpudirect:
        return Status.SKIP, f"cannot tell whether the others are near: `nvidia-smi topo -m`{cause}"
    if some:
        return Status.FAIL, f"other hosts of the job use it{cause}"
    if _is_gb10(log, one):
        return (
            Status.SKIP,
            f"not used at all: these are the adapters of GB10, which has none{cause}",
        )
    return Status.WARN, f"not used at all; cannot tell why: `nvidia-smi topo -m`, `lsmod`{cause}"


def _is_gb10(log: NcclLog, one: NcclHost) -> bool:
    selections = () if isinstance(log.selections, Missing) else log.selections
    names = {each.name for sel in selections if sel.host == one.name for each in sel.adapters}
    return bool(names) and all(map(_GB10.match, names))


def _near(
    host: Host, log: NcclLog, one: NcclHost, without: list[NcclConnection]
) -> tuple[str, str]:
    """A GPU that sits beside an adapter and yet receives through memory; else the best path of
    all. Both empty where the input does not tell."""
    if isinstance(host.topology.gpus, Missing) or not is_of(host, log, one.name):
        return "", ""
    places = {gpu.name: gpu.nic_path for gpu in host.topology.gpus}
    named = {gpu_of(host, log, _own(way)) or f"gpu{way.device}" for way in without}
    paths = {name: str(places[name]) for name in sorted(named) if isinstance(places.get(name), str)}
    near = next((name for name, path in paths.items() if path in _NEAR), "")
    return near, "" if near else ", ".join(sorted(set(paths.values())))


def _own(way: NcclConnection) -> str:
    return way.source_device if way.direction == "send" else way.target_device
