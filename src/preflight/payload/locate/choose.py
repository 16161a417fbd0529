"""Which tests come next: those that tell most of what is not proven yet, and share no node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, islice

from . import audit
from .found import Nodes, Wanted, link, named
from .proof import ACROSS, PATIENCE, TWICE, Proof, as_key

#: Tests of proven nodes beside the others: they tell whether the round as a whole was slow, and how
#: fast a healthy test of that kind is. So many of each in this order, where nodes are left.
_CONTROLS = (("pairs", 2), ("groups", 3), ("pairs", 4))
#: Each round compares with others of them.
_STRIDE = 7919
#: Partners after which a node that is neither fast nor clearly slow is left as that.
_PARTNERS = 4
#: So many slow links at once are no single cables.
_MANY_LINKS = 5
_ALL_PAIRS = "measuring all pairs would tell (--pairwise)"


class Choice:
    """The tests of one round. `size`: of a group."""

    def __init__(self, proof: Proof, size: int, turn: int) -> None:
        self.proof, self.size = proof, size
        self.tests: list[Wanted] = []
        self.used: set[int] = set()
        self.turn = turn

    def made(self) -> list[Wanted]:
        """Tests with their reasons, the most telling first: each takes its nodes from those after
        it. None: there is nothing left to measure."""
        self._unclear()
        pieces = self._pieces()
        self._singles(pieces)
        audit.culprits(self)
        self._controls()
        self._halves(pieces)
        self._controls()
        if not self._bridges():
            self._links()
        self._controls()
        return self.tests

    def _unclear(self) -> None:
        for one in self.proof.open():
            if one.verdict == "unclear" and len(one.numbers) < PATIENCE:
                self.add(one.nodes, f"test {one.numbers[0]} again: near the threshold")

    def _pieces(self) -> list[tuple[list[int], str]]:
        """Nodes that are neither proven nor to blame, as they were measured together: the fewest
        first, each once. Those that no open test holds come last."""
        proof, found = self.proof, []
        tests = [(proof.suspects(one.nodes), one) for one in proof.open()]
        taken: set[int] = set()
        for suspects, one in sorted(tests, key=lambda each: len(each[0])):
            piece = [node for node in suspects if node not in taken]
            found += [(piece, f"test {one.numbers[0]}")] if piece else []
            taken.update(piece)
        rest = [node for node in proof.suspects(sorted(proof.unproven)) if node not in taken]
        edges = range(0, len(rest), self.size)
        found += [(rest[at : at + self.size], "what stood beside a culprit") for at in edges]
        return found

    def _singles(self, pieces: list[tuple[list[int], str]]) -> None:
        for suspects, _ in pieces:
            for node in suspects if len(suspects) <= 2 else ():
                self._single(node)

    def _halves(self, pieces: list[tuple[list[int], str]]) -> None:
        """Each half gets as many proven nodes as there are for all."""
        larger = [piece for piece in pieces if len(piece[0]) > 2]
        free = len(self.proof.sound - self.used) if larger else 0
        for suspects, of in larger:
            middle, pads = (len(suspects) + 1) // 2, free // (2 * len(larger))
            self._padded(suspects[:middle], -1, pads, f"first half of {of}")
            self._padded(suspects[middle:], 1, pads, f"second half of {of}")

    def _single(self, node: int) -> None:
        """With a proven node from before it, then with one from behind: a boundary between sides
        lies on one of these ways at most."""
        proof, tried = self.proof, self.proof.partners(node)
        if len(tried) >= _PARTNERS:
            return
        before = [one for one in tried if not proof.neighbours(node, one)
                  and (node - one) % proof.size <= proof.size // 2]  # fmt: skip
        step = 1 if before else -1
        for way in (step, -step):
            ahead = (one for one in self.walk(node, way) if one not in tried)
            partner = self.line(ahead, 1, node)
            if partner:
                self.add((node, *partner), f"n{node} with proven {named(partner)}")
                return

    def _padded(self, part: list[int], step: int, pads: int, why: str) -> None:
        """With proven nodes before it (-1) or behind it (1), up to the size of a group, or as many
        as may be used; one alone with one."""
        if not self.used.isdisjoint(part):
            return
        end = part[0] if step < 0 else part[-1]
        need = max(1, min(pads, self.size - len(part))) if len(part) > 1 else 1
        proven = self.line(self.walk(end, step), need, end)
        proven = self._closed(proven, part[-1] if step < 0 else part[0])
        if proven:
            nodes = (*reversed(proven), *part) if step < 0 else (*part, *proven)
            self.add(nodes, f"{why}, with proven {named(tuple(sorted(proven)))}")

    def _bridges(self) -> bool:
        """Mixed groups of proven nodes that nothing fast joins, from several places of both;
        whether there are such nodes."""
        proof = self.proof
        islands = [] if proof.sides else proof.islands()
        for pair in proof.edges() if islands else ():
            self.add(pair, f"the link {named(pair)}: does it join what nothing else does?")
        pairs = list(combinations(range(len(islands)), 2))
        tried = {(at, to): len(proof.slow_bridges(islands[at], islands[to])) for at, to in pairs}
        lacking = {
            (at, to): range(tried[at, to], proof.across(islands[at], islands[to]))
            for at, to in pairs
        }
        next_to = {two: places for two, places in lacking.items() if two[1] - two[0] == 1}
        chosen = next_to if any(map(len, next_to.values())) else lacking
        for (at, to), places in chosen.items():
            for place in places:
                self._bridge(islands[at], islands[to], place)
        return len(islands) > 1

    def _bridge(self, one: Nodes, other: Nodes, place: int) -> None:
        half = max(1, min(self.size // 2, len(one) // ACROSS, len(other) // ACROSS))
        first = self.line(self._turned(one, place), half)
        second = self.line(self._turned(other, place), half, first[-1]) if first else ()
        second = self._closed(second, first[0]) if second else ()
        if second:
            if not self.proof.joinable(second[-1], first[0]):
                first = first[-1:]
            nodes = as_key(first + second)
            self.proof.bridges.add(nodes)
            self.add(nodes, f"mixed: {named(first)} with {named(second)}")

    def _links(self) -> None:
        """Between proven nodes: what slow tests hold and no fast one, then others of the ring."""
        proof = self.proof
        for one in proof.open():
            unknown = proof.unknown_links(one.nodes)
            least = TWICE if not unknown else PATIENCE
            closing = not any(proof.neighbours(*pair) for pair in unknown)
            if closing and not proof.suspects(one.nodes) and len(one.numbers) < least:
                self.add(one.nodes, f"test {one.numbers[0]} again: all in it was fast elsewhere")
                continue
            for pair in unknown:
                audit.link_or_ends(self, pair, f"the link {named(pair)} of test {one.numbers[0]}")
        for pair in proof.unknown_links():
            audit.link_or_ends(self, pair, f"the link {named(pair)}: in no fast test so far")

    def groups(self, most: int) -> None:
        """So many of proven nodes, for comparison."""
        for nodes in islice(self._runs(self.size), most):
            self.add(nodes, "proven nodes, for comparison", control=True)

    def _controls(self) -> None:
        """Proven nodes beside the others: groups beside pairs too, as of groups more is known."""
        kind = self.proof.scale.kind
        names = {kind(one.nodes) for one in self.tests}
        names |= {kind(tuple(range(self.size)))} if names else set()
        for name, most in _CONTROLS:
            there = sum(one.control and kind(one.nodes) == name for one in self.tests)
            size = 2 if name == "pairs" else self.size
            missing = most - there if name in names else 0
            for nodes in islice(self._runs(size), max(0, missing)):
                self.add(nodes, "proven nodes, for comparison", control=True)

    def _runs(self, size: int) -> Iterator[Nodes]:
        """So many free nodes after each other, with proven links between them."""
        run: list[int] = []
        for node in self.walk(self.turn * _STRIDE % self.proof.size, 1):
            if run and link(run[-1], node) not in self.proof.links:
                run = []
            run = [*run, node] if self.free(node) else []
            if len(run) == size:
                yield tuple(run)
                run = []

    # How.

    def add(self, nodes: Nodes, why: str, *, control: bool = False) -> None:
        if self.used.isdisjoint(nodes):
            self.used.update(nodes)
            self.tests.append(Wanted(nodes, why, control))

    def free(self, node: int) -> bool:
        return node in self.proof.sound and node not in self.used

    def walk(self, start: int, step: int) -> Iterator[int]:
        for distance in range(1, self.proof.size):
            yield (start + step * distance) % self.proof.size

    def _turned(self, nodes: Nodes, place: int) -> Iterator[int]:
        """From one of some places that lie evenly, others in each round."""
        at = (place * len(nodes) // ACROSS + self.turn) % len(nodes)
        return iter(nodes[at:] + nodes[:at])

    def line(self, candidates: Iterable[int], count: int, end: int | None = None) -> Nodes:
        """Free proven nodes, each of which may be joined to the one before it; from `end` on."""
        found: list[int] = []
        for node in candidates:
            before = found[-1] if found else end
            if self.free(node) and (before is None or self.proof.joinable(before, node)):
                found.append(node)
                if len(found) == count:
                    break
        return tuple(found)

    def _closed(self, line: Nodes, start: int) -> Nodes:
        """As much of it as closes a ring with a link to its start that is not slow itself; of all
        one node is left."""
        while len(line) > 1 and not self.proof.joinable(line[-1], start):
            line = line[:-1]
        return line


def between(proof: Proof) -> str:
    """What tells of something between the nodes that is no link, side or culprit; "" where nothing
    does. Then it is not certain either that those to blame are."""
    links = sorted(proof.bad_links)
    if len(links) > _MANY_LINKS:
        return (f"{len(links)} links are slow, {named(links[0])} among them: no single cables, but "
                f"what lies between groups of nodes; {_ALL_PAIRS}")  # fmt: skip
    open_ones = [one for one in proof.open() if not proof.suspects(one.nodes)]
    shaky = sorted(proof.unsteady.intersection(node for one in open_ones for node in one.nodes))
    if shaky:
        return (f"slow in some tests and fast in others: {named(tuple(shaky))}: not steady, or "
                f"what lies between them and some of the others; {_ALL_PAIRS}")  # fmt: skip
    if open_ones:
        tests = ", ".join(str(one.numbers[0]) for one in open_ones[:5])
        return f"slow only together, or not each time: tests {tests}; {_ALL_PAIRS}"
    return ""


def left_open(proof: Proof) -> str:
    """What the tests did not settle; "" where they settled all."""
    suspects = proof.suspects(sorted(proof.unproven))
    return f"neither fast nor clearly slow: {named(tuple(suspects))}" if suspects else ""
