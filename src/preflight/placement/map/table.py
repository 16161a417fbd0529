"""What lies between each two devices, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.facts.topology import Link, Topology
from preflight.model import LinkTable, Missing


def link_table(topology: Topology) -> LinkTable | None:
    """GPUs first, then adapters, in the order of the host; none where no link is known."""
    links = () if isinstance(topology.links, Missing) else topology.links
    if not links:
        return None
    names = tuple(dict.fromkeys(_names(topology, links)))
    told = {(one.a, one.b): _cell(one) for one in links}
    told |= {(b, a): cell for (a, b), cell in told.items()}
    cells = tuple(tuple("X" if a == b else told.get((a, b), "?") for b in names) for a in names)
    return LinkTable(names, cells)


def _names(topology: Topology, links: tuple[Link, ...]) -> Iterator[str]:
    linked = dict.fromkeys(name for one in links for name in (one.a, one.b))
    for places in (topology.gpus, topology.nics):
        if not isinstance(places, Missing):
            yield from (place.name for place in places if place.name in linked)
    yield from linked


def _cell(link: Link) -> str:
    if isinstance(link.path, Missing):
        return "?"
    return f"NV{link.nvlinks}" if link.path == "NV" and link.nvlinks else link.path
