"""Clusters with faults of one kind, drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from bench.cluster import Cluster, Make
from preflight.payload.locate.found import Link, link

#: What is slow reaches so much of the level.
SLOW = (0.80, 0.85)


def slow_nodes(count: int, low: float = SLOW[0], high: float = SLOW[1]) -> Make:
    """So many nodes, 15 to 20 % slow unless told otherwise."""
    return lambda nodes, draw: Cluster(
        nodes, bad={node: draw.uniform(low, high) for node in draw.sample(range(nodes), count)}
    )


def slow_links(count: int) -> Make:
    """So many links between neighbours of the ring."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        ones = draw.sample(range(nodes), count)
        return Cluster(
            nodes, links={link(one, (one + 1) % nodes): draw.uniform(*SLOW) for one in ones}
        )

    return made


def slow_pairs(count: int, slow: int) -> Make:
    """So many links between any two nodes, and so many nodes that are slow with all."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        bad = draw.sample(range(nodes), slow)
        sound = [node for node in range(nodes) if node not in bad]
        pairs: set[Link] = set()
        while len(pairs) < count:
            pairs.add(link(*draw.sample(sound, 2)))
        links = {pair: draw.uniform(*SLOW) for pair in sorted(pairs)}
        return Cluster(nodes, {node: draw.uniform(*SLOW) for node in bad}, links)

    return made


def slow_boundary(slow: int = 0) -> Make:
    """All that crosses from the first half to the second; and so many slow nodes."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        leaf = [int(node >= nodes // 2) for node in range(nodes)]
        ways = {(0, 1): draw.uniform(*SLOW)}
        return replace(slow_nodes(slow)(nodes, draw), leaf=leaf, ways=ways)

    return made


#: The slow ways among so many leaf switches.
Ways = Callable[[int, random.Random], list[Link]]


def one_leaf(leaves: int, draw: random.Random) -> list[Link]:
    """All ways of one of them."""
    slow = draw.randrange(leaves)
    return [link(slow, other) for other in range(leaves) if other != slow]


def all_leaves(leaves: int, _draw: random.Random) -> list[Link]:
    """All ways between any two of them."""
    return list(combinations(range(leaves), 2))


def one_trunk(leaves: int, draw: random.Random) -> list[Link]:
    """The way between two of several."""
    return [link(*draw.sample(range(leaves), 2))]


def slow_ways(which: Ways, *, shuffled: bool = False, least: int = 2, slow: int = 0) -> Make:
    """2 to 8 leaf switches (`least` at least) of uneven sizes, each with two nodes or more;
    `shuffled`: the ring does not follow them. And so many slow nodes."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        leaves = draw.randint(least, max(least, min(8, nodes // 3)))
        spare = nodes - 2 * leaves
        edges = sorted(draw.choices(range(spare + 1), k=leaves - 1))
        sizes = [2 + to - at for at, to in pairwise([0, *edges, spare])]
        leaf = [number for number, size in enumerate(sizes) for _ in range(size)]
        if shuffled:
            draw.shuffle(leaf)
        share = draw.uniform(*SLOW)
        ways = dict.fromkeys(which(leaves, draw), share)
        return replace(slow_nodes(slow)(nodes, draw), leaf=leaf, ways=ways)

    return made


def with_weather(make: Make, **weather: Any) -> Make:
    """The same, in such weather: fields of a cluster."""
    return lambda nodes, draw: replace(make(nodes, draw), **weather)


def flapping(count: int = 1) -> Make:
    """So many nodes that are slow in half of the rounds."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        cluster = slow_nodes(count)(nodes, draw)
        return replace(cluster, flaps=frozenset(cluster.bad))

    return made


def dying(slow: int) -> Make:
    """A node that is gone after some rounds, and so many slow ones."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        cluster = slow_nodes(slow)(nodes, draw)
        sound = [node for node in range(nodes) if node not in cluster.bad]
        return replace(cluster, dies={draw.choice(sound): draw.randint(1, 6)})

    return made


def beside_each_other(nodes: int, draw: random.Random) -> Cluster:
    """Two slow nodes that follow each other in the ring."""
    at = draw.randrange(nodes)
    return Cluster(nodes, {one % nodes: draw.uniform(*SLOW) for one in (at, at + 1)})


def node_and_link(nodes: int, draw: random.Random) -> Cluster:
    """A slow node that is also an end of a slow link."""
    at = draw.randrange(nodes)
    pair = link(at, (at + 1) % nodes)
    return Cluster(nodes, {at: draw.uniform(*SLOW)}, {pair: draw.uniform(*SLOW)})
