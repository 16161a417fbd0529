"""A cluster that exists in numbers only: what a test of some of its nodes would measure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from preflight.payload.locate.found import Found, Link, Nodes, Search, Test, link, ring

#: GB/s of a sound test; the search is not told.
LEVEL = 380.0
#: A drift is over after so many rounds.
_DRIFT_ROUNDS = 12
Make = Callable[[int, random.Random], "Cluster"]


@dataclass
class Cluster:
    """`nodes` in ring order with their faults: the share of the level that a test with this node,
    with this link, or over this way reaches at most. `leaf`: the switch of each node; `ways`: slow
    ones between two switches. `torn`: how often single measurements of all are slow, and by how
    much; `noise`: spread of single measurements; `hiccups`: share of them that are slowed by 10 to
    30 %; `waves`: share of rounds that are slowed as much, all tests alike, and `lasting` how often
    the next one is too; `drift`: by how much all get slower. `flaps`: bad nodes that are so in half
    of the rounds; `dies`: after so many rounds no test with this node comes to an end."""

    nodes: int
    bad: dict[int, float] = field(default_factory=dict)
    links: dict[Link, float] = field(default_factory=dict)
    leaf: Sequence[int] = ()
    ways: dict[Link, float] = field(default_factory=dict)
    noise: float = 0.03
    hiccups: float = 0.02
    torn: tuple[float, float] = (0.0, 0.0)
    waves: float = 0.0
    lasting: float = 0.0
    drift: float = 0.0
    flaps: frozenset[int] = frozenset()
    dies: dict[int, int] = field(default_factory=dict)

    def share(self, nodes: Nodes, calm: frozenset[int] = frozenset()) -> float:
        """What a test of these reaches, without noise. `calm`: bad nodes that are well just now."""
        found = [self.bad[node] for node in self.bad.keys() & set(nodes) - calm]
        if self.links:
            found += [self.links[pair] for pair in self.links.keys() & ring(nodes)]
        if self.ways:
            at = [self.leaf[node] for node in nodes]
            crossed = {link(at[i - 1], at[i]) for i in range(len(at)) if at[i - 1] != at[i]}
            found += [self.ways[way] for way in self.ways.keys() & crossed]
        return min(found, default=1.0)

    def rates(
        self, nodes: Nodes, repeats: int, level: float, draw: random.Random
    ) -> list[float]:  # fmt: skip
        """GB/s of each repeat."""
        gauss, often = draw.gauss, self.hiccups
        found = [
            level * gauss(1.0, self.noise) * (_slowed(draw) if draw.random() < often else 1.0)
            for _ in range(repeats)
        ]
        often, depth = self.torn
        return [one * (1 - depth * (draw.random() < often)) for one in found] if often else found

    def sides(self) -> tuple[Nodes, ...] | None:
        """Of a boundary: what fast ways join, without the nodes that are slow by themselves."""
        joined = {leaf: {leaf} for leaf in set(self.leaf)}
        for two in combinations(sorted(joined), 2):
            if two not in self.ways:
                together = joined[two[0]] | joined[two[1]]
                joined.update(dict.fromkeys(together, together))
        groups = {min(leaves): leaves for leaves in joined.values()}.values()
        sides = [
            tuple(n for n in range(self.nodes) if self.leaf[n] in leaves and n not in self.bad)
            for leaves in groups
        ]
        return tuple(sorted(filter(None, sides))) if len(groups) > 1 else None

    def crosses(self, pair: Link) -> bool:
        """Whether two nodes are joined by a slow way between switches."""
        return bool(self.ways) and link(*(self.leaf[node] for node in pair)) in self.ways


class Weather:
    """What goes on around the tests, round by round."""

    def __init__(self, cluster: Cluster, draw: random.Random) -> None:
        self.cluster, self.draw = cluster, draw
        self.round, self._wave = 0, False

    def measured(self, tests: list[Test], repeats: int) -> dict[int, list[float] | None]:
        """GB/s of all repeats of all tests of the next round."""
        cluster, draw = self.cluster, self.draw
        self.round += 1
        self._wave = draw.random() < (cluster.lasting if self._wave else cluster.waves)
        level = LEVEL * (_slowed(draw) if self._wave else 1.0)
        level *= 1 - cluster.drift * min(1.0, self.round / _DRIFT_ROUNDS)
        calm = frozenset(node for node in sorted(cluster.flaps) if draw.random() < 0.5)
        gone = {node for node, after in cluster.dies.items() if self.round > after}
        return {
            test.number: None if not gone.isdisjoint(test.nodes)
            else cluster.rates(test.nodes, repeats, level * cluster.share(test.nodes, calm), draw)
            for test in tests
        }  # fmt: skip


def _slowed(draw: random.Random) -> float:
    return 1 - draw.uniform(0.1, 0.3)


class Outcome(NamedTuple):
    """How well a search did. `blamed`: somebody healthy was; `beside`: of them no more than a link
    of a node that is slow in some rounds, for rounds by chance look like that."""

    exact: bool
    blamed: bool
    undetermined: bool
    rounds: int
    beside: bool = False


def outcome(found: Found, cluster: Cluster) -> Outcome:
    """All culprits and nobody else, by what the cluster has. Who is slow only sometimes, dies, or
    lies on a slow way between switches that others join may be named. A sound node that is the only
    one of its side is as slow with all others as a bad one."""
    nodes, links = set(found.nodes), set(found.links)
    certain = cluster.bad.keys() - cluster.flaps - cluster.dies.keys()
    hidden = {pair for pair in cluster.links if not cluster.bad.keys().isdisjoint(pair)}
    sides = cluster.sides()
    alone = {side[0] for side in sides or () if len(side) == 1}
    if sides and alone:
        rest = tuple(side for side in sides if len(side) > 1)
        sides = rest if len(rest) > 1 else None
        certain |= alone
    blamed = bool(nodes - cluster.bad.keys() - cluster.dies.keys() - alone)
    beside = {pair for pair in links if not cluster.flaps.isdisjoint(pair)}
    others = links - cluster.links.keys() - beside
    blamed = blamed or not all(map(cluster.crosses, others))
    blamed = blamed or found.boundary not in (None, sides)
    exact = (
        not blamed and not beside and certain <= nodes and cluster.links.keys() - hidden <= links
    )
    exact = exact and found.boundary == sides and not found.undetermined
    return Outcome(exact, blamed, bool(found.undetermined), found.rounds, bool(beside))


def played(search: Search, cluster: Cluster, repeats: int, draw: random.Random) -> Found:
    """What the search finds in this cluster. Tests of a round that share a node, or have fewer than
    two, are an error of the search."""
    tests, weather = next(search), Weather(cluster, draw)
    while True:
        used = [node for test in tests for node in test.nodes]
        if not tests or len(used) != len(set(used)) or min(len(test.nodes) for test in tests) < 2:
            raise AssertionError(f"these are no tests of one round: {tests}")
        try:
            tests = search.send(weather.measured(tests, repeats))
        except StopIteration as end:
            found: Found = end.value
            return found
