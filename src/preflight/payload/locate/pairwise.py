"""All pairs of nodes, each once, in as few rounds as there can be."""

from __future__ import annotations

from collections.abc import Iterator

from .found import Wanted, link


def circle(nodes: int) -> Iterator[list[Wanted]]:
    """The circle method: one node stays, the others turn around it; opposite ones are pairs. Of an
    odd number one rests in each round."""
    places = nodes + nodes % 2
    for turn in range(places - 1):
        seats = [0, *(1 + (turn + at) % (places - 1) for at in range(places - 1))]
        pairs = (link(seats[at], seats[-1 - at]) for at in range(places // 2))
        yield [Wanted(pair, "all pairs") for pair in pairs if pair[1] < nodes]
