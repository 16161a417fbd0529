"""What fast and slow tests prove together: sound nodes and links, culprits, sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from .found import Link, Nodes, link, ring
from .scale import Scale

#: Slow tests that blame a node, a link, a boundary: each with other partners, or again.
TWICE = 2
#: After so many measurements an unclear test is left as that.
PATIENCE = 3


@dataclass
class Seen:
    """One set of nodes and all that was measured of it: shares of the healthy level."""

    nodes: Nodes
    numbers: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    verdict: str = ""


class Proof:
    """All that the tests so far prove. `failing`: those that were not fast, by their nodes."""

    def __init__(self, nodes: int, scale: Scale) -> None:
        self.size = nodes
        self.scale = scale
        self.sound: set[int] = set()
        self.unproven = set(range(nodes))
        self.links: set[Link] = set()
        self._untested = ring(tuple(range(nodes)))
        self.seen: dict[Nodes, Seen] = {}
        self.failing: dict[Nodes, Seen] = {}
        self.bad: dict[int, list[int]] = {}
        self.bad_links: dict[Link, list[int]] = {}
        self.bridges: set[Nodes] = set()
        self.sides: tuple[Nodes, ...] = ()
        self._side: dict[int, int] = {}
        self._root = list(range(nodes))
        self._islands = 0

    # What came in.

    def record(self, number: int, nodes: Nodes, share: float) -> None:
        """One measurement of these nodes."""
        nodes = as_key(nodes)
        one = self.seen.setdefault(nodes, Seen(nodes))
        one.numbers.append(number)
        one.shares.append(share)
        one.verdict = self.scale.verdict(one.shares)
        if one.verdict != "fast":
            self.failing[nodes] = one
            return
        self.failing.pop(nodes, None)
        self._islands += len(self.unproven.intersection(nodes))
        self.sound.update(nodes)
        self.unproven.difference_update(nodes)
        held = ring(nodes)
        self.links |= held
        self._untested -= held
        first = self._find(nodes[0])
        for root in {self._find(node) for node in nodes[1:]} - {first}:
            self._root[root] = first
            self._islands -= 1

    def _find(self, node: int) -> int:
        while self._root[node] != node:
            self._root[node] = node = self._root[self._root[node]]
        return node

    # What is asked.

    def neighbours(self, one: int, other: int) -> bool:
        """Whether they follow each other in the ring of all."""
        return (one - other) % self.size in (1, self.size - 1)

    def joinable(self, one: int, other: int) -> bool:
        """Whether a test may join them without bringing in a link that may itself be slow."""
        pair = link(one, other)
        return pair in self.links or not (
            self.neighbours(one, other) or pair in self.failing or pair in self.bad_links
        )

    def open(self) -> list[Seen]:
        """Slow tests that no culprit explains yet."""
        return [one for one in self.failing.values() if not self._explained(one.nodes)]

    def _explained(self, nodes: Nodes) -> bool:
        return (
            any(node in self.bad for node in nodes)
            or not self.bad_links.keys().isdisjoint(ring(nodes))
            or len({self._side[node] for node in nodes if node in self._side}) > 1
        )

    def suspects(self, nodes: Iterable[int]) -> list[int]:
        """Of these, in their order: neither proven nor to blame."""
        return [node for node in nodes if node not in self.sound and node not in self.bad]

    def unknown_links(self, nodes: Nodes = ()) -> list[Link]:
        """Of these in a ring, or of all: those that no fast test held, between sound nodes of one
        side."""
        return [one for one in sorted(ring(nodes) or self._untested) if self._unknown(one)]

    def _unknown(self, one: Link) -> bool:
        known = one in self.links or one in self.bad_links or self._given_up(one)
        return not known and self._between_sound(one)

    def _between_sound(self, one: Link) -> bool:
        """Between sound nodes of one side."""
        return self.sound.issuperset(one) and self._side.get(one[0]) == self._side.get(one[1])

    def _given_up(self, nodes: Nodes) -> bool:
        one = self.seen.get(nodes)
        return one is not None and len(one.numbers) >= PATIENCE

    def ring_links(self) -> tuple[int, int]:
        """Of neighbours in the ring of all: those that a fast test held, and all."""
        total = len(ring(tuple(range(self.size))))
        return total - len(self._untested), total

    def partners(self, node: int) -> dict[int, Seen]:
        """Sound nodes with which it was measured alone, and what came of it."""
        found = {}
        for nodes, one in self.failing.items():
            if len(nodes) == 2 and node in nodes:
                other = nodes[0] if nodes[1] == node else nodes[1]
                if other in self.sound:
                    found[other] = one
        return found

    def islands(self) -> list[Nodes]:
        """Sound nodes by what chains of fast tests join, in ring order; () where all are joined."""
        if self._islands < 2:
            return []
        found: dict[int, list[int]] = {}
        for node in sorted(self.sound - self.bad.keys()):
            found.setdefault(self._find(node), []).append(node)
        return [tuple(nodes) for nodes in found.values()]

    def slow_bridges(self, one: Nodes, other: Nodes) -> list[Seen]:
        """Mixed groups of these two that were slow."""
        ours, theirs = set(one), set(other)
        return [
            self.failing[nodes]
            for nodes in self.bridges & self.failing.keys()
            if not ours.isdisjoint(nodes) and not theirs.isdisjoint(nodes)
        ]

    # What follows.

    def settle(self) -> None:
        """Blame whoever the tests prove to be slow."""
        for node in {n for nodes in self.failing if len(nodes) == 2 for n in self.suspects(nodes)}:
            slow = {other: one for other, one in self.partners(node).items()
                    if one.verdict == "slow"}  # fmt: skip
            strangers = [other for other in slow if not self.neighbours(node, other)]
            if len(strangers) >= TWICE or (len(slow) >= TWICE and not self.untried(node)):
                self.bad[node] = sorted(n for one in slow.values() for n in one.numbers)
        if not self.sides and not self.unproven - self.bad.keys():
            self._divide()
        if self.sides or len(self.islands()) < 2:
            self._blame_links()

    def untried(self, node: int) -> bool:
        """Whether a sound node is left that may be measured with it."""
        tried = self.partners(node)
        return any(
            other not in tried and other not in self.bad and self.joinable(node, other)
            for other in self.sound
        )

    def _blame_links(self) -> None:
        for nodes, one in self.failing.items():
            again = len(one.numbers) >= TWICE and self.scale.surely_slow(one.shares)
            if len(nodes) == 2 and again and self._between_sound(link(*nodes)):
                self.bad_links[link(*nodes)] = one.numbers

    def _divide(self) -> None:
        islands = self.islands() if len(self.bridges) >= TWICE else []
        slow = [self.slow_bridges(*two) for two in combinations(islands, 2)]
        if slow and all(len(each) >= TWICE for each in slow):
            self.sides = tuple(islands)
            self._side = {node: at for at, nodes in enumerate(islands) for node in nodes}


def as_key(nodes: Nodes) -> Nodes:
    """Two nodes are the same test in either order."""
    return link(*nodes) if len(nodes) == 2 else nodes
