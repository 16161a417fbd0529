"""How a job should be started on a host: computed from what the host is, never a constant."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.facts.host import Host
from preflight.facts.topology import GpuPlace
from preflight.model import NOT_IN_INPUT, Advice, Group, Missing
from preflight.placement.advice import adapters, gids, interfaces, numbering, software, tuning
from preflight.placement.advice.cpu_shares import count
from preflight.placement.advice.groups import common_size, groups_of, unread
from preflight.placement.advice.mesh import meshes
from preflight.placement.advice.said import Said
from preflight.placement.advice.seats import cpus_of, seats_of
from preflight.placement.advice.set_here import weighed
from preflight.placement.advice.snippets import launchers


def advise(host: Host) -> Advice:
    """Groups, seats, exports and snippets; empty parts where nothing is to be said, and `left`
    alone where there is nothing to advise on."""
    gpus = _gpus(host)
    if isinstance(gpus, str):
        return Advice(left=(gpus,))
    groups = groups_of(host, gpus)
    order = numbering.ordered(gpus, groups)
    seats = seats_of(host, order)
    said = _said(host, gpus, order)
    exports = tuple(one for part in said for one in part.exports)
    cpus = _cpus(host, order)
    return Advice(
        groups,
        seats,
        exports,
        (*launchers(seats, exports, cpus, software.torch(host)), *meshes(groups)),
        (
            *_lost(host),
            *_groups_lacking(host, gpus, groups),
            *(line for part in said for line in part.left),
        ),
    )


def _gpus(host: Host) -> tuple[GpuPlace, ...] | str:
    """The GPUs that ranks can have; or why there are none."""
    places = host.topology.gpus
    listed = () if isinstance(host.gpus, Missing) else host.gpus
    others = () if isinstance(host.accelerators, Missing) else host.accelerators
    if isinstance(places, Missing) or not places:
        if others:
            return f"no advice: it is computed for NVIDIA GPUs, and these are {others[0].vendor}"
        return _no_gpus(host)
    if not listed and host.topology.source == "pci":
        told = _reason(host)
        why = f": {told.text}" if told else ""
        return f"no advice: {len(places)} GPUs are on PCI, and the driver lists none{why}"
    if not listed and isinstance(host.topology.source, Missing):
        return "no advice: how the GPUs are joined is not known; `nvidia-smi topo -m` tells"
    if any(gpu.mig.mode == "Enabled" for gpu in listed):
        return "no advice: MIG is on, and instances of a GPU have no NVLink or P2P to each other"
    return places


def _no_gpus(host: Host) -> str:
    if host.gpus == () or host.topology.gpus == ():
        return "no advice: there is no GPU here that a rank could have"
    told = _reason(host)
    if told and told.kind == "not-applicable":
        return f"no advice: {told.text}"
    return f"no advice: which GPUs a rank could have is not known{f': {told.text}' if told else ''}"


def _reason(host: Host) -> Missing | None:
    """Why GPUs are not known, by whoever says more than that nobody was asked."""
    told = [one for one in (host.gpus, host.topology.gpus) if isinstance(one, Missing)]
    return next(iter([one for one in told if one != NOT_IN_INPUT] or told), None)


def _said(host: Host, gpus: Sequence[GpuPlace], order: Sequence[GpuPlace]) -> tuple[Said, ...]:
    said = (
        numbering.cuda_order(host, gpus, order),
        adapters.switched_on(host),
        adapters.hca(host),
        gids.gid_index(host),
        interfaces.sockets(host),
        tuning.constants(host, gpus),
    )
    return tuple(weighed(host, one) for one in said)


def _groups_lacking(
    host: Host, gpus: Sequence[GpuPlace], groups: Sequence[Group]
) -> tuple[str, ...]:
    domains = host.topology.domains
    if len(gpus) > 1 and not groups and isinstance(domains, Missing):
        return (f"no groups: whether NVLink joins the GPUs is not known: {domains.text}",)
    if len(gpus) > 1 and not groups and (why := unread(host, gpus)):
        return (f"no groups: how the GPUs are joined is not known: {why.text}",)
    if groups and common_size(groups) == 1:
        told = ", ".join(str(len(group.members)) for group in groups)
        return (f"no mesh: the groups ({told} GPUs) have no size in common",)
    return ()


def _lost(host: Host) -> tuple[str, ...]:
    """A GPU that is lost keeps its seat here; to CUDA the later ones move up."""
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    names = ", ".join(gpu.name for gpu in gpus if gpu.answers is False)
    return (f"{names} does not answer: the seats count it; see to it first",) if names else ()


def _cpus(host: Host, order: Sequence[GpuPlace]) -> int:
    """How many processors all nodes of the GPUs have; 0 where one is not known."""
    lists = {cpus_of(host, gpu) for gpu in order}
    return 0 if "" in lists else count(",".join(lists))
