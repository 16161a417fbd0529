"""A cluster that exists in numbers only: what a test of some of its nodes would measure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from preflight.payload.locate.found import Found, Link, Nodes, Search, Settings, Test, link, ring

#: GB/s of a sound test; nobody tells the search.
LEVEL = 380.0


@dataclass
class Cluster:
    """`nodes` in ring order with their faults: the share of the level that a test with this node,
    link or way across reaches at most. `noise`: of single measurements; `hiccups`: share of them
    that are slowed by 10 to 30 %; `waves`: share of rounds that are slow as a whole."""

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
        if beside:
            found += [self.links[pair] for pair in beside & ring(nodes)]
        half = self.nodes // 2
        if self.across < 1 and min(nodes) < half <= max(nodes):
            found.append(self.across)
        return min(found, default=1.0)

    def measured(self, nodes: Nodes, repeats: int, wave: float, draw: random.Random) -> list[float]:
        """GB/s of each repeat."""
        level = LEVEL * wave * self.share(nodes)
        return [
            level * draw.gauss(1.0, self.noise)
            * (1 - draw.uniform(0.1, 0.3) if draw.random() < self.hiccups else 1.0)
            for _ in range(repeats)
        ]  # fmt: skip


def played(search: Search, cluster: Cluster, repeats: int, draw: random.Random,
           watch: Callable[[list[Test]], None] = lambda tests: None) -> Found:  # fmt: skip
    """What the search finds in this cluster. A test with a node twice is an error of the search."""
    tests = next(search)
    while True:
        watch(tests)
        used = [node for test in tests for node in test.nodes]
        if len(used) != len(set(used)) or not tests or min(len(test.nodes) for test in tests) < 2:
            raise AssertionError(f"tests share a node, or have fewer than two: {tests}")
        wave = draw.uniform(0.7, 0.9) if draw.random() < cluster.waves else 1.0
        told = {test.number: cluster.measured(test.nodes, repeats, wave, draw) for test in tests}
        try:
            tests = search.send({**told})
        except StopIteration as end:
            found: Found = end.value
            return found


def slow_nodes(count: int) -> Callable[[int, random.Random], Cluster]:
    """So many nodes that are 15 to 20 % slow."""
    return lambda nodes, draw: Cluster(
        nodes, bad={node: draw.uniform(0.8, 0.85) for node in draw.sample(range(nodes), count)}
    )


def slow_links(count: int) -> Callable[[int, random.Random], Cluster]:
    """So many links between neighbours of the ring."""
    return lambda nodes, draw: Cluster(
        nodes,
        links={link(node, (node + 1) % nodes): draw.uniform(0.8, 0.85)
               for node in draw.sample(range(nodes), count)},
    )  # fmt: skip


def slow_boundary(count: int = 0) -> Callable[[int, random.Random], Cluster]:
    """All that crosses from the first half to the second; and so many slow nodes."""

    def made(nodes: int, draw: random.Random) -> Cluster:
        cluster = slow_nodes(count)(nodes, draw)
        cluster.across = draw.uniform(0.8, 0.85)
        return cluster

    return made


__all__ = ["LEVEL", "Cluster", "Settings", "played", "slow_boundary", "slow_links", "slow_nodes"]
