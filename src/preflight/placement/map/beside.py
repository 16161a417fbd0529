"""Adapters that other tools name without their place on PCI, found beside the GPUs they are nearest
to: one switch is one switch, whoever tells of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from preflight.facts.topology import Topology
from preflight.model import MapNode, Missing
from preflight.nodesets import fold
from preflight.placement.map.devices import Drawn

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
    return [each for each in shown if each.address or each.node.name not in taken]


def _named(
    node: MapNode, off_pci: dict[str, MapNode], near: set[tuple[str, str]], taken: set[str]
) -> MapNode:
    below = tuple(_named(each, off_pci, near, taken) for each in node.below)
    gpus = [each.name for each in below if each.kind == "gpu"]
    unnamed = [each for each in below if each.kind == "nic" and _ADDRESS.fullmatch(each.name)]
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
