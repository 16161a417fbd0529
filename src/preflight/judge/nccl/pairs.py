"""Whether GPUs of a host reach each other by the best way between them."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.facts.nccl import NcclConnection, NcclGraph, NcclHost, NcclLog
from preflight.judge.nccl.machine import is_of, joined_by_nvlink, told_variables
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

_NONE = Missing("not-applicable", "no two ranks of this host are connected with each other")
_CAUSES = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_IGNORE_DISABLED_P2P")
_TOLD = 3
_SHARED = "through the host's memory"


def judge_pairs(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """One result for each host of the log."""
    assert not isinstance(log.hosts, Missing)
    assert not isinstance(log.connections, Missing)
    found = []
    for one in log.hosts:
        mine = [each for each in log.connections if each.host == one.name]
        found.append(_judged(host, log, check, one, mine))
    return found


def _judged(
    host: Host, log: NcclLog, check: Check, one: NcclHost, ways: list[NcclConnection]
) -> Result:
    if not one.p2p + one.shm:
        return undetermined(check, one.name, _NONE)
    told = f"{one.p2p} of {one.p2p + one.shm} connections by P2P"
    shared = [way for way in ways if way.transport == "SHM"]
    if not shared:
        return result(check, one.name, Status.PASS, told, "all")
    status, reason = _why(host, log, one, shared)
    return result(
        check, one.name, status, told, "all where GPUs are peers", reason=reason,
        evidence=(Evidence(shared[0].probe, line=shared[0].line),),
    )  # fmt: skip


def _why(
    host: Host, log: NcclLog, one: NcclHost, shared: list[NcclConnection]
) -> tuple[Status, str]:
    causes = told_variables(log, one.name, _CAUSES)
    cause = f"; {causes} is set" if causes else ""
    if one.p2p_refused:
        cause += f"; CUDA refused it: {', '.join(one.p2p_refused[:_TOLD])}"
    known = [joined_by_nvlink(host, log, way) for way in shared] if is_of(
        host, log, one.name
    ) else []  # fmt: skip
    wrong = [way for way, nvlink in zip(shared, known, strict=False) if nvlink]
    pairs = ", ".join(f"{way.source} -> {way.target}" for way in (wrong or shared)[:_TOLD])
    if wrong:
        return Status.FAIL, f"ranks {pairs} are joined by NVLink and go {_SHARED}{cause}"
    if known and all(nvlink is False for nvlink in known):
        status = Status.WARN if cause else Status.PASS
        return status, f"ranks {pairs} go {_SHARED}; no NVLink joins them{cause}"
    if _others_all_p2p(log, one):
        return Status.FAIL, f"ranks {pairs} go {_SHARED}; on other hosts of the job none do{cause}"
    hint = "cannot tell whether they could be peers: give `nvidia-smi topo -m`"
    return (Status.WARN if cause else Status.SKIP), f"ranks {pairs} go {_SHARED}; {hint}{cause}"


def _others_all_p2p(log: NcclLog, one: NcclHost) -> bool:
    hosts = () if isinstance(log.hosts, Missing) else log.hosts
    return any(
        each.name != one.name and each.processes == one.processes and each.p2p and not each.shm
        for each in hosts
    )


def judge_graphs(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """NCCL's own search found NVLink, where the host has it."""
    assert not isinstance(log.graphs, Missing)
    by_host: dict[str, list[NcclGraph]] = {}
    for one in log.graphs:
        by_host.setdefault(one.name, []).append(one)
    elsewhere = any(not any(map(_slow, graphs)) for graphs in by_host.values())
    return [
        _graph(host, log, check, name, graphs, elsewhere=elsewhere)
        for name, graphs in by_host.items()
    ]


def _slow(graph: NcclGraph) -> bool:
    return not graph.intra.startswith(("NV", "LOC"))  # LOC: a GPU by itself


def _graph(
    host: Host, log: NcclLog, check: Check, name: str, graphs: list[NcclGraph], *, elsewhere: bool
) -> Result:
    worst = next(filter(_slow, graphs), None)
    shown = ", ".join(sorted({one.intra for one in graphs}))
    if worst is None:
        return result(check, name, Status.PASS, shown, "NVL")
    whole = _whole_domain(host) if is_of(host, log, name) else None
    status, reason = (
        (Status.FAIL, "NVLink joins all GPUs of the host") if whole
        else (Status.SKIP, "no domain of NVLink holds all GPUs") if whole is False
        else (Status.FAIL, "other hosts of the job have NVL") if elsewhere
        else (Status.SKIP, "cannot tell what joins the GPUs: give `nvidia-smi topo -m`")
    )  # fmt: skip
    return result(
        check, name, status, shown, "NVL", reason=reason,
        evidence=(Evidence(worst.probe, line=worst.line),),
    )  # fmt: skip


def _whole_domain(host: Host) -> bool | None:
    """Whether NVLink joins all GPUs; None where the input does not tell."""
    domains, gpus = host.topology.domains, host.topology.gpus
    if isinstance(domains, Missing) or isinstance(gpus, Missing):
        return None
    return any(one.complete and len(one.gpus) == len(gpus) > 1 for one in domains)
