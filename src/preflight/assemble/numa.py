"""NUMA nodes of a host, by the best that tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight.assemble.tables import SUPPLIERS
from preflight.facts.host import Cpu
from preflight.facts.hwloc import Machine
from preflight.facts.numa import NumaNode
from preflight.model import NOT_IN_INPUT, Known, Missing


def numa_nodes(found: Mapping[str, Any], cpu: Known[Cpu]) -> Known[tuple[NumaNode, ...]]:
    """The nodes; of lscpu, which tells no memory, where nobody else was asked."""
    answers = [found[name] for name in SUPPLIERS["numa_nodes"] if name in found]
    told = [each.nodes if isinstance(each, Machine) else each for each in answers]
    if isinstance(cpu, Cpu) and cpu.nodes:
        told.append(cpu.nodes)
    known = [each for each in told if not isinstance(each, Missing)]
    return (known or told or [NOT_IN_INPUT])[0]
