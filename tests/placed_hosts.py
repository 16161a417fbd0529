"""Hosts whose devices are joined as a matrix of `nvidia-smi topo -m` shows: what advice is computed
from. Built without the product's reader of such matrices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.facts.host import Host
from preflight.facts.nics import Gid, Netdev, NicPort
from preflight.facts.numa import NumaNode
from preflight.facts.stack_pieces import Stack
from preflight.facts.topology import PATHS, GpuPlace, Link, NicPlace, NvlinkDomain, Topology
from preflight.model import NOT_IN_INPUT, Known

Cells = dict[tuple[str, str], str]


def placed(text: str, *, other: Sequence[str] = (), **fields: Any) -> Host:
    """A host of this matrix. Adapters in `other` carry no training; `fields` are the host's."""
    cells, cpus, nodes = read(text)
    names = list(dict.fromkeys(a for a, _ in cells))
    gpus = [name for name in names if name.startswith("gpu")]
    nics = [name for name in names if not name.startswith("gpu")]
    training = [name for name in nics if name not in other]
    places = []
    for gpu in gpus:
        path, near = nearest(cells, gpu, training)
        places.append(GpuPlace(gpu, numa_node=nodes[gpu], cpus=cpus[gpu], nics=near, nic_path=path))
    topology = Topology(
        source="nvidia-smi topo",
        gpus=tuple(places),
        nics=tuple(_nic(cells, name, gpus, name in training) for name in nics),
        links=tuple(_links(cells, names)),
        domains=tuple(_domains(cells, gpus)),
    )
    return Host(name="node-01", topology=topology, **fields)


def read(text: str) -> tuple[Cells, dict[str, str], dict[str, Known[int]]]:
    """Cells by row and column, processors and nodes of each GPU; names as in the facts."""
    legend = dict(re.findall(r"^\s*(NIC\d+): (\S+)$", text, re.MULTILINE))
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*(GPU|NIC|mlx)\w+\s", line)]
    rows = [row for row in rows if not row[0].endswith(":")]
    heads = [one for one in rows[0] if re.fullmatch(r"(GPU|NIC)\d+|mlx\d_\d+", one)]
    columns = [_name(head, legend) for head in heads]
    cells: Cells = {}
    cpus: dict[str, str] = {}
    nodes: dict[str, Known[int]] = {}
    for row in rows[1:]:
        name, values = _name(row[0], legend), row[1 : len(columns) + 1]
        cells |= {(name, column): value for column, value in zip(columns, values, strict=True)}
        rest = row[len(columns) + 1 :]
        cpus[name] = rest[0] if rest else ""
        nodes[name] = int(rest[1]) if len(rest) > 1 else NOT_IN_INPUT
    return cells, cpus, nodes


def _name(head: str, legend: dict[str, str]) -> str:
    return legend.get(head, head.lower() if head.startswith("GPU") else head)


def _path(cell: str) -> str:
    return "NV" if cell.startswith("NV") else cell


def nearest(cells: Cells, name: str, others: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The best path from a device to one of these, and to which of them."""
    paths = {other: PATHS.index(_path(cells[name, other])) for other in others}
    best = min(paths.values(), default=len(PATHS) - 1)
    return PATHS[best], tuple(other for other, path in paths.items() if path == best)


def _nic(cells: Cells, name: str, gpus: Sequence[str], training: bool) -> NicPlace:
    path, near = nearest(cells, name, gpus)
    return NicPlace(name, gpus=near, gpu_path=path, role="training" if training else "other")


def _links(cells: Cells, names: Sequence[str]) -> Iterator[Link]:
    for at, a in enumerate(names):
        for b in names[at + 1 :]:
            cell = cells[a, b]
            bonds = int(cell[2:]) if cell.startswith("NV") else 0
            yield Link(a, b, _path(cell), bonds)


def _domains(cells: Cells, gpus: Sequence[str]) -> Iterator[NvlinkDomain]:
    left = list(gpus)
    while left:
        part = [left.pop(0)]
        for one in part:  # grows while it is read
            joined = [other for other in left if cells[one, other].startswith("NV")]
            part += joined
            left = [other for other in left if other not in joined]
        bonds = [cells[a, b] for a in part for b in part if a != b]
        counts = [int(one[2:]) for one in bonds if one.startswith("NV")]
        if len(part) > 1:
            whole = len(counts) == len(bonds)
            even = whole and len(set(counts)) == 1
            yield NvlinkDomain(f"{part[0]}...", tuple(part), min(counts), even, whole)


def matrix(gpus: Sequence[str], nics: dict[str, Sequence[str]], cpus: Sequence[str]) -> str:
    """A matrix from the cells among GPUs, a line for each, and those of each adapter to them; half
    of the GPUs on each list of processors, by their number."""
    count = len(gpus)
    heads = [f"GPU{at}" for at in range(count)] + list(nics)
    lines = ["\t".join(["", *heads, "CPU Affinity", "NUMA Affinity"])]
    for at, row in enumerate(gpus):
        node = at * len(cpus) // count
        far = [paths[at] for paths in nics.values()]
        lines.append("\t".join([f"GPU{at}", *row.split(), *far, cpus[node], str(node)]))
    for name, paths in nics.items():
        across = ["X" if name == other else "SYS" for other in nics]
        lines.append("\t".join([name, *paths, *across]))
    return "\n".join(lines) + "\n"


def even(count: int, word: str) -> list[str]:
    """The same word between each two GPUs."""
    return [" ".join("X" if a == b else word for b in range(count)) for a in range(count)]


def blocks(count: int, size: int, inside: str, across: str) -> list[str]:
    """One word within each block of GPUs, another one between blocks."""
    return [
        " ".join("X" if a == b else inside if a // size == b // size else across
                 for b in range(count))
        for a in range(count)
    ]  # fmt: skip


TWO_NODES = ("0-47,96-143", "48-95,144-191")


def dgx(bonds: str, *, storage: Sequence[str] = ("mlx5_8", "mlx5_9")) -> str:
    """Eight GPUs on NVSwitches, each with an adapter behind its switch; two more for storage."""
    nics: dict[str, Sequence[str]] = {}
    for at in range(8):
        nics[f"mlx5_{at}"] = [
            "PXB" if gpu == at else "NODE" if gpu // 4 == at // 4 else "SYS" for gpu in range(8)
        ]
    nics |= {name: ["NODE"] * 4 + ["SYS"] * 4 for name in storage}
    return matrix(even(8, bonds), nics, TWO_NODES)


def port(nic: str, *, layer: str = "InfiniBand", rate: float = 400.0, state: str = "ACTIVE",
         gids: Sequence[tuple[int, str, str]] = ()) -> NicPort:  # fmt: skip
    """One port; `gids`: index, RoCE v1 | RoCE v2, address."""
    table = tuple(
        Gid(index, gid if ":" in gid else f"::ffff:{gid}", kind,
            **({} if ":" in gid else {"ipv4": gid}))
        for index, kind, gid in gids
    )  # fmt: skip
    return NicPort(f"{nic}/1", nic, state=state, rate_gbits=rate, link_layer=layer, gids=table)


def roce(nic: str, address: str, index: int = 3) -> NicPort:
    """A RoCE port with an address of IPv4 whose second version has this index."""
    return port(
        nic, layer="Ethernet",
        gids=[(0, "IB/RoCE v1", "fe80:0:0:0::1"), (1, "RoCE v2", "fe80:0:0:0::1"),
              (index - 1, "IB/RoCE v1", address), (index, "RoCE v2", address)],
    )  # fmt: skip


def netdev(name: str, address: str, **fields: Any) -> Netdev:
    """An interface that is up."""
    told = (address,) if address else ()
    one = Netdev(name, state="up", carrier=True, ipv4=told)
    return replace(one, **fields)


def with_nccl(version: str, torch: str = "2.5.1+cu124") -> Stack:
    return Stack(torch=torch, nccl_loaded=version, nccl_of_torch=version)


def nodes(*cpus: str) -> tuple[NumaNode, ...]:
    return tuple(
        NumaNode(f"node{at}", cpus=64 if text else 0, cpu_list=text) for at, text in enumerate(cpus)
    )
