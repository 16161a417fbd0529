"""The search: rounds of tests, until each node and each link of the ring is proven or to blame."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from itertools import combinations

from .choose import Choice, between, left_open
from .found import (
    DEFAULT,
    Found,
    Link,
    Measured,
    Nodes,
    Part,
    Search,
    Settings,
    Test,
    Wanted,
    named,
)
from .pairwise import circle
from .proof import Proof
from .rounds import Rounds
from .scale import Scale

#: A round whose tests are all slow, or all fast, tells of itself: it is measured again so often.
_AGAIN = 3
#: Of fewer tests each may hold a culprit; so many that are all slow were measured at a bad time.
_MANY = 3
#: A group of so many differs from a pair. Pairs of each kind that are compared with each other.
_MANY_IN_GROUP, _PROBES = 4, 64
#: Tests of two sides that are told.
_PROOFS = 4
#: Groups beside them, which tell whether that round was slow as a whole.
_GROUPS = 3


def locate(nodes: int, settings: Settings = DEFAULT) -> Search:
    """Rounds of tests of nodes 0 to nodes - 1, in ring order; for each, what it measured is sent.
    Returns what was found. Raises ValueError where there is no node."""
    if nodes < 1:
        raise ValueError(f"nodes must be 1 or more, got {nodes}")
    search = _Search(nodes, settings)
    yield from search.partition()
    yield from search.smaller()
    yield from search.near_and_far()
    while not search.stopped and len(search.proof.sound) > 1:
        wanted = search.wanted()
        if not wanted:
            break
        yield from search.round(wanted)
    return search.found()


class _Search:
    def __init__(self, nodes: int, settings: Settings) -> None:
        self.nodes, self.settings = nodes, settings
        self.size = max(2, math.isqrt(nodes))
        self.scale = Scale(settings, self.size)
        self.proof = Proof(nodes, self.scale)
        self.rounds = Rounds()
        self.stopped = ""
        self._above: list[Nodes] = []

    def partition(self) -> Part:
        """All nodes in groups, and in groups shifted by half. Whichever of the two is slow as a
        whole is measured again."""
        wanted = list(self._first())
        rounds: list[list[Test]] = []
        for each in wanted:
            rounds += [(yield from self.rounds.measured(each))]
        for turn in range(_AGAIN):
            off = self._slower(rounds)
            if off is None:
                break
            # Now the one, now the other: what is slow each time is so for a reason of its own.
            at = off if turn % 2 == 0 else 1 - off
            rounds[at] = yield from self.rounds.measured(wanted[at])
        lasting = self._slower(rounds) is not None and len(rounds[0]) >= _MANY
        if lasting and self.settings.reference is None:
            self.stopped = "one of the first two rounds was slower as a whole each time"
        together = {test.nodes: self.rounds.median(test) for tests in rounds for test in tests}
        self.scale.take(together)
        self.scale.learn(
            (self.rounds.repeats(test) for tests in rounds for test in tests), together
        )
        self._tell_above(together)
        for tests in rounds:
            self._record(tests)

    def _first(self) -> Iterator[list[Wanted]]:
        if self.nodes < 4:
            yield from circle(self.nodes)
            return
        for shift, why in ((0, "in ring order"), (self.size // 2, "shifted by half a group")):
            yield groups(self.nodes, self.size, shift, f"groups of {self.size} {why}")

    def _slower(self, rounds: list[list[Test]]) -> int | None:
        """The one of the first two rounds that is slower as a whole, if one is."""
        if self.nodes < 4:
            return None
        for at, other in ((0, 1), (1, 0)):
            scale = Scale(self.settings, self.size)
            scale.take(self.rounds.medians(rounds[other]))
            if scale.departs(self.rounds.medians(rounds[at])) < 0:
                return at
        return None

    def smaller(self) -> Part:
        """Where no group was fast: smaller ones, at last pairs, until two nodes are proven."""
        size = self.size
        while not self.proof.sound and size > 2 and not self.stopped:
            size //= 2
            why = f"groups of {size}: no larger one was fast"
            yield from self.round(groups(self.nodes, size, 0, why))
        for pairs in circle(self.nodes) if self.nodes > 3 else ():
            if self.proof.sound or self.stopped:
                return
            yield from self.round(pairs)

    def near_and_far(self) -> Part:
        """Pairs of nodes that follow each other, and of some far from each other: where groups are
        all slow alike because of what lies between their nodes, these differ."""
        if self.size < _MANY_IN_GROUP or self.stopped or len(self.proof.sound) < 2:
            return
        choice = Choice(self.proof, self.size, self.rounds.made)
        choice.groups(min(_GROUPS, self.nodes // (3 * self.size)))
        for pair in _pairs([node for node in range(self.nodes) if node not in choice.used]):
            choice.add(pair, "nodes nearby, beside others far apart",
                       control=self.proof.sound.issuperset(pair))  # fmt: skip
        tests = yield from self.round(choice.tests)
        self._tell_above(self.rounds.medians(tests))

    def _tell_above(self, medians: dict[Nodes, float]) -> None:
        if self.settings.reference is None:
            self._above += self.scale.above(medians)

    def wanted(self) -> list[Wanted]:
        return Choice(self.proof, self.size, self.rounds.made).made()

    def round(self, wanted: list[Wanted]) -> Generator[list[Test], Measured, list[Test]]:
        """One round, measured again while what is proven in it is slower or faster than before."""
        proven = {one.nodes for one in wanted if one.control}
        for _ in range(1 + _AGAIN):
            if self.rounds.made >= self.settings.max_rounds:
                self.stopped = f"{self.rounds.made} rounds were not enough"
                return []
            tests = yield from self.rounds.measured(wanted)
            controls = self.rounds.medians(test for test in tests if test.nodes in proven)
            off = self.scale.departs(controls)
            if not off:
                self.scale.take(controls)
                self._record(tests)
                return tests
        how = f"{abs(off):.0%} {'slower' if off < 0 else 'faster'}"
        self.stopped = f"round {self.rounds.made} was {how} as a whole, proven nodes too"
        return []

    def _record(self, tests: list[Test]) -> None:
        for test in tests:
            share = self.scale.share(test.nodes, self.rounds.median(test))
            self.proof.record(test.number, test.nodes, share)
        self.proof.settle()

    def found(self) -> Found:
        """Where what lies between nodes is not understood nobody is blamed: it may be to blame."""
        proof, undetermined = self.proof, self._too_fast() or self.stopped or between(self.proof)
        if undetermined:
            seem = tuple(sorted(proof.bad))
            undetermined += f"; {named(seem)} seemed slow" if seem else ""
            return self._found((), (), (), {}, undetermined)
        runs = dict[object, list[int]](proof.bad.items())
        runs.update(proof.bad_links.items())
        if proof.sides:
            runs["boundary"] = sorted(
                number for two in combinations(proof.sides, 2)
                for one in proof.slow_bridges(*two)[:_PROOFS] for number in one.numbers
            )  # fmt: skip
        return self._found(tuple(sorted(proof.bad)), tuple(sorted(proof.bad_links)), proof.sides,
                           runs, self._undetermined())  # fmt: skip

    def _found(
        self, nodes: Nodes, links: tuple[Link, ...], sides: tuple[Nodes, ...],
        runs: dict[object, list[int]], undetermined: str,
    ) -> Found:  # fmt: skip
        return Found(nodes, links, sides or None, runs, undetermined, self.rounds.made,
                     self._covered(), self.scale.levels, {})  # fmt: skip

    def _undetermined(self) -> str:
        if self.nodes == 2 and self.settings.reference is None:
            return "two nodes have no others to be compared with"
        if len(self.proof.sound) < 2:
            return "fewer than two nodes are proven to be sound: nothing to measure the others with"
        return left_open(self.proof) or self.scale.blind()

    def _too_fast(self) -> str:
        if not self._above:
            return ""
        return (f"most are slow, or {named(self._above[0])} faster than others should be: what "
                "is healthy has to be told")  # fmt: skip

    def _covered(self) -> str:
        held, total = self.proof.ring_links()
        return (
            f"each node, {held} of {total} links between neighbours in the ring, and "
            f"{len(self.proof.links) - held} others; faults of {self.scale.smallest:.0%} and more. "
            "A link that is slow between one pair of nodes which are no neighbours in the ring is "
            "seen only when all pairs are measured"
        )


def _pairs(nodes: list[int]) -> Iterator[Link]:
    """Of half of them those that follow each other, of the rest those that are far apart."""
    half = len(nodes) // 2
    quarter = (len(nodes) - half) // 2
    step = max(1, quarter // _PROBES)
    for at in range(0, half // 2, step):
        yield nodes[2 * at], nodes[2 * at + 1]
    for at in range(half, half + quarter, step):
        yield nodes[at], nodes[at + quarter]


def groups(nodes: int, size: int, shift: int, why: str) -> list[Wanted]:
    """All nodes in ring order in groups of about a size, from `shift` on."""
    number = max(1, nodes // size)
    order = [(node + shift) % nodes for node in range(nodes)]
    edges = [at * nodes // number for at in range(number + 1)]
    return [Wanted(tuple(order[one : edges[at]]), why) for at, one in enumerate(edges[:-1], 1)]
