"""A cluster that exists in numbers only: what a test of some of its nodes would measure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from preflight.payload.locate.found import Found, Link, Nodes, Search, link, ring

#: GB/s of a sound test; the search is not told.
LEVEL = 380.0
#: What is slow reaches so much of it.
SLOW = (0.80, 0.85)
Make = Callable[[int, random.Random], "Cluster"]


@dataclass
class Cluster:
    """`nodes` in ring order with their faults: the share of the level that a test with this node,
    with this link, or across the middle reaches at most. `noise`: of single measurements;
    `hiccups`: share of them that are slowed by 10 to 30 %; `waves`: share of rounds that are slowed
    as much, all tests alike."""

    nodes: int
    bad: dict[int, float] = field(default_factory=dict)
    links: dict[Link, float] = field(default_factory=dict)
    across: float = 1.0
    noise: float = 0.03
    hiccups: float = 0.02
    waves: float = 0.0

    def share(self, nodes: Nodes) -> float:
        """What a test of these reaches, without noise."""
        inside = set(nodes)
        found = [share for node, share in self.bad.items() if node in inside]
        beside = {pair for pair in self.links if inside.issuperset(pair)}
        found += [self.links[pair] for pair in beside and beside & ring(nodes)]
        if self.across < 1 and min(nodes) < self.nodes // 2 <= max(nodes):
            found.append(self.across)
        return min(found, default=1.0)

    def measured(self, nodes: Nodes, repeats: int, wave: float, draw: random.Random) -> list[float]:
        """GB/s of each repeat."""
        level = LEVEL * wave * self.share(nodes)
        return [
            level * draw.gauss(1.0, self.noise) * _slowed(self.hiccups, draw)
            for _ in range(repeats)
        ]

    def sides(self) -> tuple[Nodes, ...] | None:
        """Of a boundary, without the nodes that are slow by themselves."""
        if self.across == 1:
            return None
        half = self.nodes // 2
        halves = (range(half), range(half, self.nodes))
        return tuple(tuple(node for node in side if node not in self.bad) for side in halves)


def _slowed(often: float, draw: random.Random) -> float:
    return 1 - draw.uniform(0.1, 0.3) if draw.random() < often else 1.0


class Outcome(NamedTuple):
    """How well a search did. `blamed`: somebody healthy was."""

    exact: bool
    blamed: bool
    undetermined: bool
    rounds: int


def outcome(found: Found, cluster: Cluster) -> Outcome:
    """All culprits and nobody else, by what the cluster has."""
    nodes, links = set(found.nodes), set(found.links)
    exact = nodes == set(cluster.bad) and links == set(cluster.links)
    exact = exact and found.boundary == cluster.sides() and not found.undetermined
    blamed = bool(nodes - cluster.bad.keys() or links - cluster.links.keys())
    blamed = blamed or (found.boundary is not None and cluster.across == 1)
    return Outcome(exact, blamed, bool(found.undetermined), found.rounds)


def played(search: Search, cluster: Cluster, repeats: int, draw: random.Random) -> Found:
    """What the search finds in this cluster. Tests of a round that share a node, or have fewer than
    two, are an error of the search."""
    tests = next(search)
    while True:
        used = [node for test in tests for node in test.nodes]
        if not tests or len(used) != len(set(used)) or min(len(test.nodes) for test in tests) < 2:
            raise AssertionError(f"these are no tests of one round: {tests}")
        wave = _slowed(cluster.waves, draw)
        try:
            tests = search.send({
                test.number: cluster.measured(test.nodes, repeats, wave, draw) for test in tests
            })  # fmt: skip
        except StopIteration as end:
            found: Found = end.value
            return found


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
        cluster = slow_nodes(slow)(nodes, draw)
        cluster.across = draw.uniform(*SLOW)
        return cluster

    return made


def with_waves(make: Make, often: float = 0.1) -> Make:
    """The same, with so many rounds that are slow as a whole."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        cluster = make(nodes, draw)
        cluster.waves = often
        return cluster

    return made
