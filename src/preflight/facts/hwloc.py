"""What lstopo of hwloc writes of a machine: its PCI tree and its NUMA nodes."""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.numa import NumaNode
from preflight.facts.pci_tree import PciTree
from preflight.model import Known


class Machine(Struct, frozen=True):
    """One answer of `lstopo --of xml`."""

    tree: Known[PciTree]
    nodes: Known[tuple[NumaNode, ...]]
    line: int = 1
    probe: str = ""
