"""What cannot be told of a host here, and why, in short sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.facts.host import Host
from preflight.model import Missing
from preflight.placement.map.devices import Drawn
from preflight.placement.map.links import Links

_LSPCI = "sudo lspci -Dvvvnn tells it"


def unknown(host: Host, found: Sequence[Drawn]) -> tuple[str, ...]:
    """One sentence for each lack, in the order of the map."""
    parts = (_gpus(host, found), _links(host, found), _tree(host, found), _nodes(host), _nics(host))
    return tuple(dict.fromkeys(text for part in parts for text in part))


def _gpus(host: Host, found: Sequence[Drawn]) -> Iterator[str]:
    there = [each for each in found if each.node.kind == "gpu"]
    if not there:
        why = host.gpus.text if isinstance(host.gpus, Missing) else "nvidia-smi lists none"
        yield f"GPUs and NVLink: {why}"
    elif isinstance(host.gpus, Missing) and host.gpus.kind not in ("not-in-input", "not-asked"):
        yield f"models and states of the GPUs: {host.gpus.text}"


def _links(host: Host, found: Sequence[Drawn]) -> Iterator[str]:
    """Of the links between GPUs."""
    gpus = [each for each in found if each.node.kind == "gpu"]
    topology = host.topology
    if not isinstance(topology.matrix, Missing):
        if not topology.matrix.whole:
            yield "some of the links: the output of nvidia-smi topo -m was cut"
    elif len(gpus) > 1 and (isinstance(topology.domains, Missing) or topology.source == "pci"):
        why = "" if topology.matrix.kind == "not-in-input" else f": {topology.matrix.text}"
        yield f"NVLink between the GPUs{why}; nvidia-smi topo -m tells it"


def _tree(host: Host, found: Sequence[Drawn]) -> Iterator[str]:
    tree = host.pci_tree
    if isinstance(tree, Missing):
        yield f"bridges and links on PCI: {tree.text}; {_LSPCI}"
        return
    on_pci = [each for each in found if each.address]
    bridges = [each for each in tree.devices if str(each.class_id)[:6] == "0x0604"]
    if bridges and all(isinstance(each.secondary, Missing) for each in bridges):
        yield f"which bridge is above which device: not in this list; {_LSPCI}"
    if Links(host).virtual:
        yield "real links and NUMA nodes: in a virtual machine they are the hypervisor's choice"
        return
    denied = [each.speed_gtps for each in tree.devices if isinstance(each.speed_gtps, Missing)]
    if on_pci and any(each.kind == "denied" for each in denied):
        yield f"speeds and widths of links: only root may read them; {_LSPCI}"
    elif on_pci and not any(each.node.link for each in on_pci):
        yield f"speeds and widths of links: not in this list; {_LSPCI}"


def _nodes(host: Host) -> Iterator[str]:
    nodes = host.numa_nodes
    placed = not isinstance(host.topology.gpus, Missing) and any(
        isinstance(each.numa_node, int) for each in host.topology.gpus
    )
    if isinstance(nodes, Missing) and not placed:
        yield f"NUMA nodes and their processors: {nodes.text}"


def _nics(host: Host) -> Iterator[str]:
    if isinstance(host.nics, Missing) and host.nics.kind != "not-applicable":
        listed = not isinstance(host.topology.nics, Missing) and host.topology.nics
        what = "rates and states of network adapters" if listed else "network adapters that do RDMA"
        yield f"{what}: {host.nics.text}"
    if isinstance(host.container, str) and host.container != "none":
        yield "what the container does not show: ask on the host too"
