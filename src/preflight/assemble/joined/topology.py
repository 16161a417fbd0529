"""How the GPUs and network adapters of a host are joined: by the matrix of nvidia-smi, else by
where each hangs on PCI."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from preflight.assemble.joined.boards import board_gpus, bridged
from preflight.assemble.joined.devices import Devices, devices_of, rows_of
from preflight.assemble.joined.domains import (
    Board,
    Pairs,
    comparable,
    domain_by_status,
    domains_of,
    links_of,
    links_within,
    pairs,
    peers_of,
)
from preflight.assemble.joined.nodes import gpu_nodes, node_fits, node_path
from preflight.assemble.joined.p2p import gpu_p2p
from preflight.assemble.network.chosen import by_choice
from preflight.assemble.network.places import (
    Near,
    beside,
    nearest,
    place,
    training_places,
    with_roles,
)
from preflight.assemble.pci.distance import Way
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.nics import Nic
from preflight.facts.pci_tree import PciTree
from preflight.facts.topology import (
    GpuPlace,
    Link,
    Matrix,
    MatrixDevice,
    NicPlace,
    NvlinkDomain,
    P2p,
    Topology,
)
from preflight.model import NOT_IN_INPUT, Known, Missing

_CUT = Missing("unreadable", "the matrix of nvidia-smi topo -m is cut short")
_NO_ROW = Missing("not-in-input", "the matrix of nvidia-smi topo -m does not show this GPU")
_LIST_CUT = Missing(
    "unreadable",
    "the list of PCI functions stops early, or may: a nearer adapter can stand behind its end; "
    "give the whole of `sudo lspci -Dvvvnn`",
)


def topology_of(host: Host, matrix: Known[Matrix], p2p: Known[tuple[P2p, ...]]) -> Topology:
    """The topology of a host whose other facts are known."""
    if isinstance(host.gpus, Missing) and host.gpus.kind == "not-applicable":
        matrix = host.gpus if isinstance(matrix, Missing) else matrix
        p2p = host.gpus if isinstance(p2p, Missing) else p2p
    known = devices_of(host, matrix, p2p)
    nics = _nics(known)
    found = Topology(matrix=matrix, p2p=p2p, nics=nics, matrix_gpus=_matrix_gpus(matrix))
    found = replace(found, training_places=training_places(nics, known.between))
    if not isinstance(matrix, Missing):
        found = replace(found, source="nvidia-smi topo", line=matrix.line, probe=matrix.probe)
    elif known.links:
        found = replace(found, source="pci")
    if not known.names:
        told = [one for one in (host.gpus, matrix, p2p) if isinstance(one, Missing)]
        why = next((one for one in told if one is not NOT_IN_INPUT), NOT_IN_INPUT)
        return replace(found, **dict.fromkeys(_OF_GPUS, why), links=_links(known, why))
    domains = _domains(known, pairs(known.links.values(), known.names))
    if isinstance(matrix, Missing) and not isinstance(domains, Missing):
        known.links |= links_within(domains, known.links)
    of_gpus = _of_gpus(known, nics, p2p, domains)
    return replace(found, domains=domains, links=_links(known, NOT_IN_INPUT), **of_gpus)


#: What is missing where no GPU is known.
_OF_GPUS = ("gpus", "domains", "gpu_p2p", "node_path", "gpu_nodes", "board_gpus")


def _links(known: Devices, why: Missing) -> Known[tuple[Link, ...]]:
    return tuple(known.links.values()) or why


def _nics(known: Devices) -> Known[tuple[NicPlace, ...]]:
    if isinstance(known.nic_names, Missing):
        return known.nic_names
    host = known.host
    told = {} if isinstance(host.nics, Missing) else {nic.name: nic for nic in host.nics}
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    rows = {each.name: each for each in rows_of(known.matrix, "nic")}
    seen = []
    for name in known.nic_names:
        own = [port for port in ports if port.nic == name]
        rdma = name in told or name in rows or name in _infiniband(host)
        seen.append(place(name, told.get(name), own, known.names, known.between, rdma=rdma))
    found = by_choice(with_roles(seen, known.names), host.nic_ports, host.nic_choice)
    return tuple(_placed(known, nic, told.get(nic.name) or rows.get(nic.name)) for nic in found)


def _infiniband(host: Host) -> set[str]:
    """Adapters on PCI that do RDMA by their class: InfiniBand (PCI Code and ID Assignment)."""
    tree = () if isinstance(host.pci_tree, Missing) else host.pci_tree.devices
    return {each.name for each in tree if each.class_id == "0x0207"}


def _placed(known: Devices, nic: NicPlace, told: Nic | MatrixDevice | None) -> NicPlace:
    """With where it was told of; its address and node by PCI, where sysfs does not tell."""
    nic = replace(nic, line=told.line, probe=told.probe) if told else nic
    way = known.ways.get(nic.name)
    if way is None:
        return nic
    node = way.node if isinstance(nic.numa_node, Missing) else nic.numa_node
    return replace(nic, address=way.address, numa_node=node)


def _of_gpus(
    known: Devices,
    nics: Known[tuple[NicPlace, ...]],
    p2p: Known[tuple[P2p, ...]],
    domains: Known[tuple[NvlinkDomain, ...]],
) -> dict[str, Any]:
    """The fields of Topology that are about its GPUs."""
    of = pairs(known.links.values(), known.names)
    near = {name: nearest(name, nics, known.between) for name in known.names}
    by_side: dict[str, Known[bool]] = beside(near)
    if _may_be_cut(known):
        by_side = {name: _LIST_CUT if told is False else told for name, told in by_side.items()}
        near = {
            name: Near(_LIST_CUT, _LIST_CUT) if one.path == "SYS" else one
            for name, one in near.items()
        }
    judged = gpu_p2p(known.names, p2p, known.gpus, domains, known.host.virtualization)
    places = [_gpu(known, of, name, domains, near[name]) for name in known.names]
    status = {one.name: one.status for one in judged}
    fits = node_fits(known.host, known.matrix, places, nics, known.between)
    bridges = bridged(known.names, known.gpus, domains)
    gpus = tuple(
        replace(one, nic_beside=by_side[one.name], p2p=status[one.name], bridged=bridges[one.name],
                node_fits=fits[one.name])
        for one in places
    )  # fmt: skip
    return {
        "gpus": gpus,
        "gpu_p2p": judged,
        "node_path": node_path(of, gpus, domains),
        "gpu_nodes": gpu_nodes(known.host, gpus, domains),
        "board_gpus": board_gpus(known.host, known.names, domains),
    }


def _may_be_cut(known: Devices) -> bool:
    """Whether PCI alone tells the links, by a list that may lack its end."""
    tree = known.host.pci_tree
    return isinstance(known.matrix, Missing) and isinstance(tree, PciTree) and tree.may_be_cut


def _domains(known: Devices, of: Pairs) -> Known[tuple[NvlinkDomain, ...]]:
    if isinstance(known.matrix, Missing):
        found = domain_by_status(known.names, known.gpus)
        if isinstance(found, Missing) and known.matrix is not NOT_IN_INPUT and len(known.names) > 1:
            return known.matrix
        return found
    designs = [gpu.design for gpu in known.gpus.values()]
    design = designs[0] if designs else NOT_IN_INPUT
    board = Board() if isinstance(design, Missing) else Board(design.nvlinks, design.nvswitch)
    return domains_of(of, known.names, board)


def _gpu(
    known: Devices, of: Pairs, name: str, domains: Known[tuple[NvlinkDomain, ...]], near: Near
) -> GpuPlace:
    gpu, way = known.gpus.get(name), known.ways.get(name)
    row = next((each for each in rows_of(known.matrix, "gpu") if each.name == name), None)
    node = row.numa_node if row else NOT_IN_INPUT
    if isinstance(node, Missing) and way and node.kind in ("not-in-input", "unreadable"):
        node = way.node
    cpus = row.cpus if row else NOT_IN_INPUT
    node = _node_of(known.host, cpus, node) if isinstance(node, Missing) else node
    here = gpu or row
    found = GpuPlace(
        name=name,
        bus_id=gpu.bus_id if gpu and gpu.bus_id else _bus_id(way),
        numa_node=node,
        cpus=_cpus(known.host, node) if isinstance(cpus, Missing) else cpus,
        nics=near.nics,
        nic_path=near.path,
        line=row.line if row else here.line if here else 0,
        probe=row.probe if row else here.probe if here else "",
    )
    return replace(found, **_nvlink(known, of, name, domains))


def _bus_id(way: Way | None) -> Known[str]:
    return f"0000{way.address}" if way else NOT_IN_INPUT


def _node_of(host: Host, cpus: Known[str], otherwise: Missing) -> Known[int]:
    """The node of just these processors: of a superchip the driver names those of memory alone too
    (0,2-17)."""
    nodes = () if isinstance(host.numa_nodes, Missing) else host.numa_nodes
    mine = [one.name for one in nodes if isinstance(cpus, str) and one.cpu_list == cpus]
    return int(mine[0].removeprefix("node")) if len(mine) == 1 else otherwise


def _cpus(host: Host, node: Known[int]) -> Known[str]:
    """The processors of a node."""
    if isinstance(node, Missing):
        return node
    if isinstance(host.numa_nodes, Missing):
        return host.numa_nodes
    return next((each.cpu_list for each in host.numa_nodes if each.name == f"node{node}"),
                NOT_IN_INPUT)  # fmt: skip


def _nvlink(
    known: Devices, of: Pairs, name: str, domains: Known[tuple[NvlinkDomain, ...]]
) -> dict[str, Any]:
    """What NVLink gives one GPU."""
    fields = ("domain", "nvlinks", "nvlink_peers")
    gpu = known.gpus.get(name)
    if isinstance(known.matrix, Matrix) and not of.of(name) and len(known.names) > 1:
        return dict.fromkeys((*fields, "nvlink_gbps", "peers"), _NO_ROW)
    peers = peers_of(of, name) if of.of(name) else NOT_IN_INPUT
    if isinstance(domains, Missing):
        return {**dict.fromkeys(fields, domains), "nvlink_gbps": domains, "peers": peers}
    mine = next((one for one in domains if name in one.gpus), None)
    links: Known[int] = mine.nvlinks if mine else 0
    alike: Known[str] = f"{len(mine.gpus) - 1} x NV{mine.nvlinks}" if mine else "none"
    if isinstance(known.matrix, Matrix):
        links, alike = links_of(of, name, mine), peers_of(of, name, nvlink_only=True)
    if gpu and gpu.mig.mode == "Enabled":
        links = alike = Missing("not-applicable", "MIG is on: it uses no NVLink")
    alike = comparable(mine, domains, len(known.names)) or alike
    told = _rate(gpu, links)
    domain = mine.name if mine else "none"
    return {"domain": domain, "nvlinks": links, "nvlink_gbps": told, "peers": peers,
            "nvlink_peers": alike}  # fmt: skip


def _rate(gpu: Gpu | None, links: Known[int]) -> Known[float]:
    """GB/s one way of so many links of this model."""
    design = gpu.design if gpu else NOT_IN_INPUT
    if isinstance(links, Missing) or isinstance(design, Missing):
        return links if isinstance(links, Missing) else NOT_IN_INPUT
    rate = design.nvlink_gbps
    return rate if isinstance(rate, Missing) else links * rate


def _matrix_gpus(matrix: Known[Matrix]) -> Known[int]:
    if isinstance(matrix, Missing):
        return matrix
    if matrix.whole:
        return sum(each.kind == "gpu" for each in matrix.devices)
    return next((link.path for link in matrix.links if isinstance(link.path, Missing)), _CUT)
