"""Memory and processors of a host by their NUMA nodes."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class NumaNode(Struct, frozen=True):
    """A node with its own memory; `distances` to each node in their order, 10 to itself."""

    name: str  # node0
    cpus: Known[int] = NOT_IN_INPUT  # 0: memory alone, such as a GPU's
    cpu_list: Known[str] = NOT_IN_INPUT  # 0-47,96-143; "" where it has none
    total_bytes: Known[int] = NOT_IN_INPUT
    free_bytes: Known[int] = NOT_IN_INPUT
    free_percent: Known[float] = NOT_IN_INPUT
    distances: tuple[int, ...] = ()
    line: int = 0
    probe: str = ""
