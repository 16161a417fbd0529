"""Adapters that other tools name without their place on PCI, found beside the GPUs they are nearest
to: one switch is one switch, whoever tells of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from preflight.facts.topology import Topology
from preflight.model import MapNode, Missing
from preflight.nodesets import fold
from preflight.placement.map.devices import Drawn
from preflight.placement.map.nodes import nodes_beside

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def beside_gpus(found: Sequence[Drawn], topology: Topology) -> list[Drawn]:
    """The branches with those adapters under their names, and no more beside them."""
    links = () if isinstance(topology.links, Missing) else topology.links
    near = {pair for one in links if one.path == "PIX" for pair in ((one.a, one.b), (one.b, one.a))}
    nameless = {each.node.name: each.node for each in found if not each.address}
    taken = set[str]()
    shown = [
        replace(each, node=_named(each.node, nameless, near, taken)) if each.address else each
        for each in found
    ]
    left = {name: node for name, node in nameless.items() if name not in taken}
    shown = _by_count(shown, left, nodes_beside(topology), taken)
    return [each for each in shown if each.address or each.node.name not in taken]


def _by_count(
    found: Sequence[Drawn], nameless: Mapping[str, MapNode], nodes: Mapping[str, int],
    taken: set[str],
) -> list[Drawn]:  # fmt: skip
    """The same of adapters whose switches the input does not show: those of one model on a NUMA
    node, where as many are named there and of no other model."""
    names: dict[str, MapNode] = {}
    bare = [each for each in found if each.address and _is_unnamed(each.node)]
    for number in sorted({each.numa_node for each in bare if each.numa_node is not None}):
        here = [each.node for each in bare if each.numa_node == number]
        fitting = [node for name, node in nameless.items() if nodes.get(name) == number]
        models = [[one for one in here if one.label == label] for label in _labels(here)]
        alike = [those for those in models if len(those) == len(fitting)]
        if fitting and len(alike) == 1 and not any(each.fault for each in fitting):
            names.update(_joined(alike[0], fitting))
            taken.update(each.name for each in fitting)
    return [
        replace(each, node=names.get(each.node.name, each.node)) if each.address else each
        for each in found
    ]


def _labels(nodes: Iterable[MapNode]) -> list[str]:
    return list(dict.fromkeys(each.label for each in nodes))


def _is_unnamed(node: MapNode) -> bool:
    return node.kind == "nic" and _ADDRESS.fullmatch(node.name) is not None


def _named(
    node: MapNode, off_pci: dict[str, MapNode], near: set[tuple[str, str]], taken: set[str]
) -> MapNode:
    below = tuple(_named(each, off_pci, near, taken) for each in node.below)
    gpus = [each.name for each in below if each.kind == "gpu"]
    unnamed = [each for each in below if _is_unnamed(each)]
    fitting = [
        each
        for each in off_pci.values()
        if gpus and each.kind == "nic" and all((gpu, each.name) in near for gpu in gpus)
    ]
    open_fault = len(fitting) > 1 and any(each.fault for each in fitting)
    if node.kind != "switch" or not fitting or len(fitting) != len(unnamed) or open_fault:
        return replace(node, below=below)
    taken.update(each.name for each in fitting)
    names = dict(_joined(unnamed, fitting))
    return replace(node, below=tuple(names.get(each.name, each) for each in below))


def _joined(
    unnamed: Sequence[MapNode], fitting: Sequence[MapNode]
) -> Iterator[tuple[str, MapNode]]:
    """By address. Which of several behind one switch is which nothing tells."""
    alone = len(fitting) == 1
    name = fitting[0].name if alone else f"one of {fold(each.name for each in fitting)}"
    labels = {each.label for each in fitting}
    same = labels.pop() if len(labels) == 1 else ""
    for each in unnamed:
        label = ", ".join(filter(None, (each.label, same)))
        faults = (each.fault, fitting[0].fault if alone else "")
        fault = ", ".join(filter(None, faults))
        yield each.name, replace(each, name=name, label=label, fault=fault)
