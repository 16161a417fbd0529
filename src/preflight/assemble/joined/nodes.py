"""GPUs and the NUMA nodes they are on: whether the driver's columns fit its paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from preflight import cpulists
from preflight.assemble.joined.domains import Pairs, on_board
from preflight.assemble.network.places import Between
from preflight.facts.host import Host
from preflight.facts.topology import PATHS, GpuPlace, Matrix, NicPlace, NvlinkDomain
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.nodesets import fold

#: As many GPUs as the boards with NVSwitches that span two processors have.
_TWO_SOCKETS = 8
#: Paths that do not leave a NUMA node.
_WITHIN = ("PIX", "PXB", "PHB", "NODE")
FITS = "fits"


def node_path(
    of: Pairs, gpus: Sequence[GpuPlace], domains: Known[tuple[NvlinkDomain, ...]]
) -> Known[str]:
    """The best path between two GPUs of one node without NVLink; those near the same processors
    are of one node where the node itself is not told."""
    if isinstance(domains, Missing):
        return domains
    if any(on_board(one) for one in domains):
        return Missing("not-applicable", "a board joins the GPUs of this host by NVLink")
    nodes = {gpu.name: gpu.cpus if isinstance(gpu.numa_node, Missing) else gpu.numa_node
             for gpu in gpus}  # fmt: skip
    found = {
        link.path
        for (a, b), link in of.between.items()
        if nodes[a] == nodes[b] and not isinstance(nodes[a], Missing) and link.path != "NV"
    }
    known = [path for path in found if not isinstance(path, Missing)]
    if known:
        return min(known, key=PATHS.index)
    unread = next((path for path in found if isinstance(path, Missing)), None)
    return unread or Missing("not-applicable", "no two GPUs of one NUMA node without NVLink")


def gpu_nodes(
    host: Host, gpus: Sequence[GpuPlace], domains: Known[tuple[NvlinkDomain, ...]]
) -> Known[int]:
    """How many nodes the GPUs of such a board are on, unless the host has but one processor."""
    if isinstance(domains, Missing):
        return domains
    if not any(one.switched is True and len(one.gpus) >= _TWO_SOCKETS for one in domains):
        return Missing("not-applicable", f"no {_TWO_SOCKETS} GPUs on a board with NVSwitches")
    sockets = host.cpu if isinstance(host.cpu, Missing) else host.cpu.sockets
    if sockets == 1 and host.virtualization == "none":
        return Missing("not-applicable", "the host has one processor")
    unknown = next((gpu.numa_node for gpu in gpus if isinstance(gpu.numa_node, Missing)), None)
    return unknown or len({gpu.numa_node for gpu in gpus})


def node_fits(
    host: Host,
    matrix: Known[Matrix],
    gpus: Sequence[GpuPlace],
    nics: Known[Sequence[NicPlace]],
    between: Between,
) -> dict[str, Known[str]]:
    """Of each GPU FITS, or what of its neighbours or processors is of another node."""
    known = {gpu.name: gpu.numa_node for gpu in gpus if isinstance(gpu.numa_node, int)}
    adapters = () if isinstance(nics, Missing) else nics
    found: dict[str, Known[str]] = {}
    for gpu in gpus:
        node = gpu.numa_node
        if isinstance(node, Missing):
            found[gpu.name] = (
                matrix if node is NOT_IN_INPUT and isinstance(matrix, Missing) else node
            )
            continue
        told = [*_by_cpus(host, gpu, node), *_by_gpus(gpu.name, known, between),
                *_by_nics(gpu.name, known, adapters, between)]  # fmt: skip
        found[gpu.name] = f"node {node}, but {told[0]}" if told else FITS
    return found


def _by_cpus(host: Host, gpu: GpuPlace, node: int) -> Iterator[str]:
    """Where none of its processors is of its node."""
    nodes = () if isinstance(host.numa_nodes, Missing) else host.numa_nodes
    own = next((one.cpu_list for one in nodes if one.name == f"node{node}"), None)
    if not isinstance(own, str) or not isinstance(gpu.cpus, str):
        return
    try:
        apart = set(cpulists.parse(own)).isdisjoint(cpulists.parse(gpu.cpus))
    except ValueError:
        return
    if own and gpu.cpus and apart:
        yield f"its CPUs are {gpu.cpus}, and those of the node {own}"


def _by_gpus(name: str, known: Mapping[str, int], between: Between) -> Iterator[str]:
    """Where most GPUs that are within a node with it are said to be on another one."""
    near = [other for other in known if other != name and _within(between(name, other))]
    yield from _elsewhere(
        known[name], {other: known[other] for other in near}, "within a node with"
    )


def _by_nics(
    name: str, known: Mapping[str, int], nics: Sequence[NicPlace], between: Between
) -> Iterator[str]:
    """The same by an adapter: of its own node, or of the other GPUs that are within a node with
    it."""
    for nic in nics:
        if not _within(between(name, nic.name)):
            continue
        if isinstance(nic.numa_node, int):
            if nic.numa_node != known[name]:
                yield f"within a node with {nic.name} of node {nic.numa_node}"
            continue
        near = [other for other in known if other != name and _within(between(nic.name, other))]
        text = f"within a node with {nic.name}, as are"
        yield from _elsewhere(known[name], {other: known[other] for other in near}, text)


def _within(link: object) -> bool:
    return getattr(link, "path", None) in _WITHIN


def _elsewhere(node: int, peers: Mapping[str, int], text: str) -> Iterator[str]:
    """What to say where more than half of these are of one other node."""
    if not peers:
        return
    other, count = Counter(peers.values()).most_common(1)[0]
    if other != node and count * 2 > len(peers):
        yield f"{text} {fold([one for one in peers if peers[one] == other])} of node {other}"
