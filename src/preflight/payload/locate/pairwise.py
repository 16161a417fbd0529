"""All pairs of nodes, each once, in as few rounds as there can be; slow ones once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from .found import DEFAULT, Found, Link, Nodes, Part, Search, Settings, Test, Wanted, link, named
from .proof import APART, PATIENCE, TWICE, Proof
from .rounds import Rounds
from .scale import Scale

#: A round that is slow as a whole is measured again so often.
_AGAIN = 3
#: So many slow links of one node are no cables.
_MANY_LINKS = 3
#: What is measured again: one or two nodes, of one those that may be its partner, and why.
Retest = tuple[Nodes, Sequence[int], str]


def circle(nodes: int) -> Iterator[list[Wanted]]:
    """The circle method: one node stays, the others turn around it; opposite ones are pairs. Of an
    odd number one rests in each round."""
    places = nodes + nodes % 2
    for turn in range(places - 1):
        seats = [0, *(1 + (turn + at) % (places - 1) for at in range(places - 1))]
        pairs = (tuple(sorted((seats[at], seats[-1 - at]))) for at in range(places // 2))
        yield [Wanted(pair, "all pairs") for pair in pairs if pair[1] < nodes]


def pairwise(nodes: int, settings: Settings = DEFAULT) -> Search:
    """Rounds of all pairs of nodes 0 to nodes - 1; for each, what it measured is sent. Returns what
    was found, with the matrix. A node is to blame that is fast with none, a link that is slow
    between two that are fast with others, a boundary where no pair across is fast. Raises
    ValueError where there is no node."""
    if nodes < 1:
        raise ValueError(f"nodes must be 1 or more, got {nodes}")
    pairs = _Pairs(nodes, settings)
    yield from pairs.all()
    while pairs.rounds.made < settings.max_rounds + nodes:
        wanted = pairs.again()
        if not wanted:
            break
        pairs.record((yield from pairs.rounds.measured(wanted)))
    return pairs.found()


class _Pairs:
    def __init__(self, nodes: int, settings: Settings) -> None:
        self.nodes, self.settings = nodes, settings
        self.scale = Scale(settings, size=2)
        self.proof = Proof(nodes, self.scale)
        self.rounds = Rounds()
        self._rates: dict[Link, list[float]] = {}
        self._above = ""

    def all(self) -> Part:
        """Each pair once, and again rounds that were slow as a whole."""
        asked = list(circle(self.nodes))
        rounds = []
        for wanted in asked:
            tests = yield from self.rounds.measured(wanted)
            rounds.append(tests)
        for _ in range(_AGAIN):
            for at in self._apart(rounds):
                rounds[at] = yield from self.rounds.measured(asked[at])
        together = [test for tests in rounds for test in tests]
        medians = self.rounds.medians(together)
        self.scale.take(medians)
        self.scale.learn((self.rounds.repeats(test) for test in together), medians)
        together.sort()
        above = self.scale.above(medians) if self.settings.reference is None else []
        self._above = named(above[0]) if above else ""
        self.record(together)

    def _apart(self, rounds: list[list[Test]]) -> list[int]:
        """Rounds that were slower than the middle one, all pairs alike."""
        best = [max(self.rounds.medians(tests).values(), default=0.0) for tests in rounds]
        least = median(best) * (1 + self.settings.threshold) / 2 if best else 0.0
        return [at for at, value in enumerate(best) if value < least]

    def record(self, tests: list[Test]) -> None:
        for test in tests:
            rate = self.rounds.median(test)
            self._rates.setdefault((test.nodes[0], test.nodes[1]), []).append(rate)
            self.proof.record(test.number, test.nodes, self.scale.share(test.nodes, rate))

    def again(self) -> list[Wanted]:
        """Of pairs that share no node: links that seem slow by themselves, in turn with their ends
        without them; and nodes that were proven and then in a test without an end."""
        chosen: list[Wanted] = []
        used: set[int] = set()
        for nodes, partners, why in (*self._lost(), *self._unclear(), *self._doubtful()):
            node, *rest = nodes
            partner = next((one for one in (*rest, *partners) if one not in used), None)
            if used.isdisjoint(nodes) and partner is not None:
                chosen.append(Wanted(link(node, partner), why))
                used.update((node, partner))
        return chosen

    def _lost(self) -> Iterator[Retest]:
        for node in sorted(self.proof.unproven):
            tried = self.proof.partners(node)
            if self.proof.was_fast(node) and len(tried) < PATIENCE:
                yield (node,), [one for one in self.proof.sound if one not in tried], (
                    f"n{node} again: a test of it did not end")  # fmt: skip

    def _unclear(self) -> Iterator[Retest]:
        """A node is to blame only where nothing is near fast."""
        for pair, one in self.proof.failing.items():
            few = one.verdict == "unclear" and len(one.numbers) < PATIENCE
            if few and not self.proof.unproven.isdisjoint(pair):
                yield pair, (), f"test {one.numbers[0]} again: near the threshold"

    def _doubtful(self) -> Iterator[Retest]:
        proof = self.proof
        for pair in self._within():
            if self._sure(pair) or proof.given_up(pair) or self._many(pair):
                continue
            one = proof.failing[pair]
            stale = proof.stale(one) if one.verdict == "slow" else []
            if not stale:
                yield pair, (), f"test {one.numbers[0]} again"
            for node in stale:
                known = [other for other in proof.sound if link(node, other) in proof.links]
                yield (node,), known, f"n{node} without the link {named(pair)}"

    def _many(self, pair: Link) -> list[int]:
        """Ends with many slow links: not these are to blame."""
        slow = Counter(node for each in self._within() for node in each)
        return [node for node in pair if slow[node] > _MANY_LINKS]

    def _within(self) -> list[Link]:
        """Slow pairs of sound nodes, on the same side of a boundary if there is one."""
        side = {node: at for at, nodes in enumerate(self.proof.islands()) for node in nodes}
        return [
            (pair[0], pair[1])
            for pair in self.proof.failing
            if self.proof.sound.issuperset(pair) and side.get(pair[0]) == side.get(pair[1])
        ]

    def _sure(self, pair: Link) -> bool:
        proof, one = self.proof, self.proof.failing[pair]
        slow = one.apart >= APART and proof.fresh(one) and self.scale.surely_slow(one.shares)
        return slow and proof.unsteady.isdisjoint(pair)

    def found(self) -> Found:
        bad, sides = self._bad(), tuple(self.proof.islands())
        links = {pair: self.proof.failing[pair].numbers
                 for pair in sorted(self._within()) if self._sure(pair)}  # fmt: skip
        runs = dict[object, list[int]](bad.items())
        runs.update(links.items())
        if sides:
            runs["boundary"] = self._across()
        matrix = {pair: median(rates) for pair, rates in sorted(self._rates.items())}
        return Found(
            tuple(bad), tuple(links), sides or None, runs, self._undetermined(), self.rounds.made,
            f"all {len(matrix)} pairs; faults of {self.scale.smallest:.0%} and more",
            self.scale.levels, matrix,
        )  # fmt: skip

    def _bad(self) -> dict[int, list[int]]:
        """Nodes that were fast with none, and slow with several."""
        found = {}
        for node in sorted(self.proof.unproven) if len(self.proof.sound) > 1 else ():
            slow = [one for pair, one in self.proof.failing.items()
                    if node in pair and one.verdict == "slow"]  # fmt: skip
            if len(slow) >= TWICE:
                found[node] = sorted(number for one in slow for number in one.numbers)
        return found

    def _across(self) -> list[int]:
        within = set(self._within())
        return sorted(
            number
            for pair, one in self.proof.failing.items()
            if self.proof.sound.issuperset(pair) and pair not in within
            for number in one.numbers
        )

    def _undetermined(self) -> str:
        if self.nodes == 2 and self.settings.reference is None:
            return "two nodes have no others to be compared with"
        if len(self.proof.sound) < 2:
            return "fewer than two nodes are proven to be sound: nothing to measure the others with"
        if self._above:
            return f"most are slow, or {self._above} faster than others should be"
        left = self.proof.unproven - self._bad().keys()
        if left:
            return f"neither fast nor clearly slow: {named(tuple(sorted(left)))}"
        many = [node for pair in self._within() for node in self._many(pair)]
        if many:
            return (f"n{many[0]} is slow with several and fast with others: not steady, or what "
                    "lies between groups of nodes; the matrix shows with whom")  # fmt: skip
        unsure = [pair for pair in self._within() if not self._sure(pair)]
        if unsure:
            return f"neither fast nor clearly slow: the link {named(unsure[0])}"
        return self.scale.blind()
