"""What fast and slow tests prove together: sound nodes and links, culprits, sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from .found import Link, Nodes, link, ring
from .scale import Scale

#: Slow tests that blame a node, each with another partner; and a boundary, each between others of
#: both sides: where only some of them are slow with each other it is none.
TWICE, ACROSS = 2, 4
#: A link is to blame that was slow so often, each time after its ends were fast with others, and
#: when they are so again: else a node that is slow now and then is taken for its link.
APART = 4
#: After so many measurements an unclear test is left as that, and any one after so many times more.
PATIENCE, _AT_MOST = 4, 3


@dataclass
class Seen:
    """One set of nodes and all that was measured of it: shares of the healthy level. `apart`: how
    often it was not fast after both of its ends had been fast with others."""

    nodes: Nodes
    numbers: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    verdict: str = ""
    apart: int = 0


class Proof:
    """All that the tests so far prove. `failing`: those that were not fast, by their nodes.
    `unsteady`: nodes that were slow with several and then fast, or fast and slow in one test.
    `checks`: tests of an end of a slow link with somebody else. `mates`: with how many others to
    blame a node to blame was measured."""

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
        self.unsteady: set[int] = set()
        self.checks: set[Nodes] = set()
        self.mates: Counter[int] = Counter()
        self.bridges: set[Nodes] = set()
        self.sides: tuple[Nodes, ...] = ()
        self._side: dict[int, int] = {}
        self._fast_at = [0] * nodes
        self._place = list(range(nodes))
        self._root = list(range(nodes))
        self._islands = 0
        self._told_islands: list[Nodes] = []

    # What came in.

    def record(self, number: int, nodes: Nodes, share: float) -> None:
        """One measurement of these nodes. 0: it did not come to an end."""
        nodes = as_key(nodes)
        one = self.seen.setdefault(nodes, Seen(nodes))
        after_fast = len(nodes) == 2 and self.fresh(one)
        one.numbers.append(number)
        one.shares.append(share)
        one.verdict = self.scale.verdict(one.shares)
        if len(one.shares) > 1 or nodes in self.checks:
            self._weigh(one)
        if one.verdict == "fast":
            self._fast(number, nodes)
            return
        self.failing[nodes] = one
        one.apart += after_fast
        if share == 0 and self.sound.issuperset(nodes):
            self._doubt(nodes)
        if len(nodes) == 2 and len(one.numbers) == 1 and self.bad.keys() >= set(nodes):
            self.mates.update(nodes)

    def _weigh(self, one: Seen) -> None:
        """What was clearly fast and clearly slow at another time is not steady; slow once by chance
        is outvoted."""
        told = [self.scale.verdict([share]) for share in one.shares if share > 0]
        slow = told.count("slow")
        if slow and one.nodes in self.checks:
            self.unsteady.update(one.nodes)
        if slow and "fast" in told:
            one.verdict = "fast" if slow == 1 and len(told) >= PATIENCE else "unclear"
            self.unsteady.update(one.nodes if slow > 1 else ())

    def _fast(self, number: int, nodes: Nodes) -> None:
        self.failing.pop(nodes, None)
        for node in nodes:
            self._fast_at[node] = number
        for node in self.bad.keys() & set(nodes):
            del self.bad[node]
            self.unsteady.add(node)
        new = self.unproven.intersection(nodes)
        self._told_islands = []
        self._islands += len(new)
        self.sound |= new
        self.unproven -= new
        held = ring(nodes)
        self.links |= held
        self._untested -= held
        first = self._find(nodes[0])
        for node in nodes[1:]:
            root = self._find(node)
            if root != first:
                self._root[root] = first
                self._islands -= 1

    def _doubt(self, nodes: Nodes) -> None:
        """Proven nodes whose test came to no end: one of them may be gone since."""
        for node in nodes:
            self.sound.discard(node)
            self.unproven.add(node)
            self._place[node] = len(self._root)
            self._root.append(len(self._root))
        self._islands = len({self._find(node) for node in self.sound})
        self._told_islands = []

    def _find(self, node: int) -> int:
        root, at = self._root, self._place[node]
        while root[at] != at:
            root[at] = at = root[root[at]]
        return at

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

    def was_fast(self, node: int) -> bool:
        """Whether it was so once, whatever came later."""
        return self._fast_at[node] > 0

    def fresh(self, one: Seen) -> bool:
        """Whether all in it were fast with others since it was measured last."""
        return not one.numbers or all(self._fast_at[n] > one.numbers[-1] for n in one.nodes)

    def stale(self, one: Seen) -> list[int]:
        """Who in it was not."""
        return [node for node in one.nodes if self._fast_at[node] <= one.numbers[-1]]

    def open(self) -> list[Seen]:
        """Slow tests that no culprit explains yet."""
        return [one for one in self.failing.values() if not self._explained(one.nodes)]

    def _explained(self, nodes: Nodes) -> bool:
        return (
            not self.bad.keys().isdisjoint(nodes)
            or bool(self.bad_links and not self.bad_links.keys().isdisjoint(ring(nodes)))
            or bool(self._side and len({self._side[n] for n in nodes if n in self._side}) > 1)
        )

    def suspects(self, nodes: Iterable[int]) -> list[int]:
        """Of these, in their order: neither proven nor to blame."""
        return [node for node in nodes if node not in self.sound and node not in self.bad]

    def unknown_links(self, nodes: Nodes = ()) -> list[Link]:
        """Of these in a ring, or of all: those that no fast test held, between sound nodes of one
        side."""
        return [one for one in sorted(ring(nodes) or self._untested) if self._unknown(one)]

    def _unknown(self, one: Link) -> bool:
        known = one in self.links or one in self.bad_links or self.given_up(one)
        return not known and self._between_sound(one)

    def _between_sound(self, one: Link) -> bool:
        """Between sound nodes of one side."""
        return self.sound.issuperset(one) and self._side.get(one[0]) == self._side.get(one[1])

    def given_up(self, nodes: Nodes) -> bool:
        """What is measured no more: unclear, or beside nodes that are not steady."""
        one = self.seen.get(nodes)
        if one is None:
            return False
        most = PATIENCE * (_AT_MOST if self.scale.surely_slow(one.shares) else 1)
        return len(one.numbers) >= most or not self.unsteady.isdisjoint(nodes)

    def edges(self) -> list[Link]:
        """Links of the ring between proven nodes that no fast tests join, not measured yet."""
        return sorted(
            one for one in self._untested
            if one not in self.seen and self.sound.issuperset(one)
            and self._find(one[0]) != self._find(one[1])
        )  # fmt: skip

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
        if not self._told_islands:
            found: dict[int, list[int]] = {}
            for node in sorted(self.sound):
                found.setdefault(self._find(node), []).append(node)
            self._told_islands = [tuple(nodes) for nodes in found.values()]
        return self._told_islands

    def slow_bridges(self, one: Nodes, other: Nodes) -> list[Seen]:
        """Mixed groups and pairs of these two that were slow, without neighbours in the ring of
        all: these may have a slow link."""
        ours, theirs = set(one), set(other)
        return [
            each
            for nodes, each in self.failing.items()
            if (nodes in self.bridges or (len(nodes) == 2 and not self.neighbours(*nodes)))
            and not ours.isdisjoint(nodes) and not theirs.isdisjoint(nodes)
        ]  # fmt: skip

    def across(self, one: Nodes, other: Nodes) -> int:
        """How many mixed tests of these two it takes: of few nodes as many as there can be."""
        if len(one) * len(other) > 2 * ACROSS:
            return ACROSS
        ways = sum(not self.neighbours(a, b) for a in one for b in other)
        return min(ACROSS, max(1, ways))

    # What follows.

    def settle(self) -> None:
        """Blame whoever the tests prove to be slow."""
        for node in {n for nodes in self.failing if len(nodes) == 2 for n in self.suspects(nodes)}:
            slow = {other: one for other, one in self.partners(node).items()
                    if one.verdict == "slow"}  # fmt: skip
            strangers = [other for other in slow if not self.neighbours(node, other)]
            if len(strangers) >= TWICE or (len(slow) >= TWICE and not self.untried(node)):
                self.bad[node] = sorted(n for one in slow.values() for n in one.numbers)
        if not self.unproven - self.bad.keys():
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
            again = one.apart >= APART and self.fresh(one) and self.scale.surely_slow(one.shares)
            steady = self.unsteady.isdisjoint(nodes)
            if len(nodes) == 2 and again and steady and self._between_sound(link(*nodes)):
                self.bad_links[link(*nodes)] = one.numbers

    def _divide(self) -> None:
        islands = self.islands()
        apart = islands and all(
            len(self.slow_bridges(*two)) >= self.across(*two) for two in combinations(islands, 2)
        )
        self.sides = tuple(islands) if apart and not self.edges() else ()
        self._side = {node: at for at, nodes in enumerate(self.sides) for node in nodes}


def as_key(nodes: Nodes) -> Nodes:
    """Two nodes are the same test in either order."""
    return link(*nodes) if len(nodes) == 2 else nodes
