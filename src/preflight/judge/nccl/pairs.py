"""Whether GPUs of a host reach each other by the best way between them."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.facts.nccl import NcclConnection, NcclGraph, NcclHost, NcclLog
from preflight.judge.nccl.machine import is_of, joined_by_nvlink, told_variables
from preflight.judge.nccl.within import within
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

_NONE = Missing("not-applicable", "no two ranks of this host are connected with each other")
_UNTOLD = Missing(
    "not-in-input",
    "which ranks share a host is not in the log: write it with NCCL_DEBUG_SUBSYS=INIT,NET,P2P",
)
_CAUSES = (
    "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_IGNORE_DISABLED_P2P", "NCCL_SHM_DISABLE",
    "NCCL_NET_DISABLE_INTRA",
)  # fmt: skip
_TOLD = 3
_SHARED = "through the host's memory"
_NETWORK = "over the network within the host"


def judge_pairs(host: Host, log: NcclLog, check: Check) -> list[Result]:
    """One result for each host of the log."""
    assert not isinstance(log.hosts, Missing)
    assert not isinstance(log.connections, Missing)
    off = within(log)
    for way in log.connections:
        if way.transport == "SHM":
            off.setdefault(way.host, []).append(way)
    #: Processes of the hosts on which all go by P2P.
    sound = {one.processes for one in log.hosts if one.p2p and one.name not in off}
    return [_judged(host, log, check, one, off.get(one.name, []), sound) for one in log.hosts]


def _judged(
    host: Host, log: NcclLog, check: Check, one: NcclHost, off: list[NcclConnection],
    sound: set[int],
) -> Result:  # fmt: skip
    whole = one.p2p + len(off)
    if not whole:
        return undetermined(check, one.name, _none(log, one))
    told = f"{one.p2p} of {whole} connections by P2P"
    if not off:
        return result(check, one.name, Status.PASS, told, "all")
    status, reason = _why(host, log, one, off, elsewhere=one.processes in sound)
    return result(
        check, one.name, status, told, "all where GPUs are peers", reason=reason,
        evidence=(Evidence(off[0].probe, line=off[0].line),),
    )  # fmt: skip


def _none(log: NcclLog, one: NcclHost) -> Missing:
    return _UNTOLD if one.net and isinstance(log.ranks, Missing) else _NONE


def _why(
    host: Host, log: NcclLog, one: NcclHost, off: list[NcclConnection], *, elsewhere: bool
) -> tuple[Status, str]:
    causes = told_variables(log, one.name, _CAUSES)
    cause = f"; {causes} is set" if causes else ""
    if one.p2p_refused:
        cause += f"; CUDA refused it: {', '.join(one.p2p_refused[:_TOLD])}"
    known = [joined_by_nvlink(host, log, way) for way in off] if is_of(
        host, log, one.name
    ) else []  # fmt: skip
    wrong = [way for way, nvlink in zip(off, known, strict=False) if nvlink]
    going = _going(wrong or off)
    if wrong:
        return Status.FAIL, f"joined by NVLink, and yet {going}{cause}"
    if known and all(nvlink is False for nvlink in known):
        status = Status.WARN if cause else Status.PASS
        return status, f"{going}; no NVLink joins them{cause}"
    if elsewhere:
        return Status.FAIL, f"{going}; on other hosts of the job none do{cause}"
    hint = "cannot tell whether they could be peers: give `nvidia-smi topo -m`"
    # The host's memory may be the best way; an adapter is where even that is barred.
    untold = Status.WARN if cause or off[0].transport == "NET" else Status.SKIP
    return untold, f"{going}; {hint}{cause}"


def _going(ways: list[NcclConnection]) -> str:
    """ranks 6 -> 7, 0 -> 1 go over the network within the host (IB)."""
    ways = [way for way in ways if way.transport == ways[0].transport]
    pairs = ", ".join(dict.fromkeys(f"{way.source} -> {way.target}" for way in ways[:_TOLD]))
    net = ways[0].transport == "NET"
    return f"ranks {pairs} go {f'{_NETWORK} ({ways[0].way})' if net else _SHARED}"


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
