"""The devices of a host that its topology is made of, by name, and what lies between each two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from msgspec import Struct

from preflight.assemble.pci.distance import Way, path_between, way_of
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.pci_tree import PciPath
from preflight.facts.topology import Link, Matrix, MatrixDevice, P2p
from preflight.model import NOT_IN_INPUT, Known, Missing

_NO_NIC = Missing("not-applicable", "the matrix of nvidia-smi shows no network adapter")


class Devices(Struct):
    """What the devices and links are taken from, by name."""

    host: Host
    matrix: Known[Matrix]
    gpus: dict[str, Gpu]
    ways: dict[str, Way]  # GPUs and adapters that PCI shows
    names: list[str]  # of the GPUs
    nic_names: Known[list[str]] = NOT_IN_INPUT
    links: dict[tuple[str, str], Link] = {}

    def between(self, a: str, b: str) -> Link | None:
        """The link between two devices."""
        return self.links.get((a, b)) or self.links.get((b, a))


def devices_of(host: Host, matrix: Known[Matrix], p2p: Known[tuple[P2p, ...]]) -> Devices:
    """What is there, by name, and what lies between each two."""
    gpus = {} if isinstance(host.gpus, Missing) else {gpu.name: gpu for gpu in host.gpus}
    known = Devices(host, matrix, gpus, _ways(host), [])
    known.names = _gpu_names(known, p2p)
    known.nic_names = _nic_names(known)
    links = _by_pci(known) if isinstance(matrix, Missing) else matrix.links
    known.links = {(link.a, link.b): link for link in links}
    return known


def _ways(host: Host) -> dict[str, Way]:
    """GPUs and adapters on PCI: by address, adapters also by the name that RDMA gives them."""
    found: dict[str, Way] = {}
    nodes = {} if isinstance(host.pci_tree, Missing) else {
        each.name: each.numa_node for each in host.pci_tree.devices
    }  # fmt: skip
    for path in _on_pci(host):
        address = path.bus_id[4:]
        found[path.name] = found[address] = way_of(path, nodes.get(address, NOT_IN_INPUT))
    for nic in () if isinstance(host.nics, Missing) else host.nics:
        if isinstance(nic.address, str) and nic.address in found:
            found[nic.name] = found[nic.address]
    return found


def _on_pci(host: Host) -> Iterator[PciPath]:
    if isinstance(host.pci_paths, Missing):
        return
    for each in (host.pci_paths.gpus, host.pci_paths.nics):
        yield from () if isinstance(each, Missing) else each


def _gpu_names(known: Devices, p2p: Known[tuple[P2p, ...]]) -> list[str]:
    """Those of the matrix, then what nvidia-smi lists besides; else of PCI, else of -p2p."""
    names = [each.name for each in rows_of(known.matrix, "gpu")]
    by_index = [name for name, gpu in known.gpus.items() if isinstance(gpu.index, int)]
    names += by_index if names else list(known.gpus)
    if not names:
        names = [path.name for path in _on_pci(known.host) if path.kind == "gpu"]
    if not names and not isinstance(p2p, Missing):
        names = [name for one in p2p for pair in one.pairs for name in (pair.a, pair.b)]
    return list(dict.fromkeys(names))


def rows_of(matrix: Known[Matrix], kind: str) -> list[MatrixDevice]:
    """The GPUs, or the adapters, of the matrix."""
    if isinstance(matrix, Missing):
        return []
    return [each for each in matrix.devices if each.kind == kind]


def _nic_names(known: Devices) -> Known[list[str]]:
    """RDMA adapters by who tells them; where nobody does, the network adapters on PCI."""
    nics = known.host.nics
    told = [] if isinstance(nics, Missing) else [nic.name for nic in nics]
    names = [each.name for each in rows_of(known.matrix, "nic")]
    names = list(dict.fromkeys([*names, *told]))
    if names or not isinstance(nics, Missing) or nics.kind == "not-applicable":
        return names or (nics if isinstance(nics, Missing) else _NO_NIC)
    on_pci = [path.name for path in _on_pci(known.host) if path.kind == "nic"]
    if on_pci:
        return on_pci
    if nics is not NOT_IN_INPUT:
        return nics
    return known.matrix if isinstance(known.matrix, Missing) else _NO_NIC


def _by_pci(known: Devices) -> list[Link]:
    """Every pair of devices by their ways, where any is told; NVLink does not show there."""
    cpu = known.host.cpu
    nodes = NOT_IN_INPUT if isinstance(cpu, Missing) else cpu.numa_nodes
    tree = known.host.pci_tree
    probe = "" if isinstance(tree, Missing) else tree.probe
    nics = [] if isinstance(known.nic_names, Missing) else known.nic_names
    placed = [name for name in (*known.names, *nics) if name in known.ways]
    found = [
        Link(a, b, path_between(known.ways[a], known.ways[b], nodes=nodes), probe=probe)
        for a, b in combinations(placed, 2)
    ]
    return found if any(isinstance(link.path, str) for link in found) else []
