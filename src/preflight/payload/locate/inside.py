"""What within a slow host is slow: which of its GPUs, of its fabrics, of its rails; and rails that
are slow between all hosts alike.

Generators as the searches are: each gives rounds of trials that share no host, is sent what they
measured, and returns what is to blame. A host is compared with sound ones that were tried in the
same way, at the same time where there are enough of them, and is to blame only where it is slow
twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import count, cycle
from statistics import median
from typing import NamedTuple

from .found import Measured, Nodes, Wanted
from .pairwise import circle

#: Of what sound hosts reach in the same way: a link or an adapter that trained at half of its width
#: or rate, or repeats what was lost, is far below. Rails differ by which GPUs are near.
SHARE, SHARE_OF_RAILS = 0.85, 0.75
#: Of so few GPUs all pairs are tried.
_FEW = 4


class Trial(NamedTuple):
    """One collective among some hosts in one way: a rail or a fabric, by its name."""

    number: int
    nodes: Nodes
    way: str


class BlamedGpus(NamedTuple):
    """A GPU that is slow with all others, or two of them that are slow with each other."""

    gpus: Nodes
    share: float
    tests: list[int]


class Blamed(NamedTuple):
    """`node` is slow in one way; None: all are. `way` "": in every way alike, so that it is none of
    them. `share` of what was to be reached, and the numbers of the trials that prove it: its own,
    then those beside it."""

    node: int | None
    way: str
    share: float
    tests: list[int]


Trials = Generator[list[Trial], Measured, list[Blamed]]
Pairs = Generator[list[Trial], Measured, list[BlamedGpus]]
_Wanted = tuple[Nodes, str]


def gpus(many: int, *, all_pairs: bool) -> Pairs:
    """Pairs of the GPUs of one host: each with its neighbours, or all. What is sent may be shares
    of what the same pair of a sound host reaches: pairs are not alike on every board."""
    trials, best = _Trials(), dict[int, float]()
    rounds = circle(many) if all_pairs or many <= _FEW else _neighbours(many)
    yield from trials.tried((one.nodes, "") for each in rounds for one in each)

    def learn() -> float:
        for nodes, _ in trials.told:
            for one in nodes:
                best[one] = max(best.get(one, 0.0), trials.best(nodes, ""))
        return median(best.values()) if best else 0.0

    level = learn()
    bad = [one for one in range(many) if best.get(one, 0.0) < SHARE * level]
    sound = [one for one in range(many) if one not in bad]
    slow = [
        nodes
        for nodes, _ in trials.told
        if not set(bad).intersection(nodes) and trials.best(nodes, "") < SHARE * level
    ]
    others = [(min(one, other), max(one, other)) for at, one in enumerate(bad)
              for other in (sound * 2)[2 * at % max(1, len(sound)) :][:2]]  # fmt: skip
    yield from trials.tried((nodes, "") for nodes in [*others, *slow])
    learn()
    alone = [(one,) for one in bad if best.get(one, 0.0) < SHARE * level]
    both = [nodes for nodes in slow if trials.best(nodes, "") < SHARE * level]
    return [*(BlamedGpus(one, best.get(one[0], 0.0) / level, trials.of(one[0])) for one in alone),
            *(BlamedGpus(two, trials.best(two, "") / level, trials.numbers(two, ""))
              for two in both)]  # fmt: skip


def _neighbours(many: int) -> list[list[Wanted]]:
    """Each with the one before it and the one behind it."""
    pairs = [(one, one + 1) for one in range(many - 1)] + [(0, many - 1)]
    return [[Wanted(pair, "") for pair in pairs[turn::2]] for turn in (0, 1)]


def fabrics(slow: Sequence[int], sound: Sequence[int], ways: Sequence[str]) -> Trials:
    """Each slow host by itself in each way, beside a sound one."""
    trials = _Trials()
    partner = list(zip(slow, cycle(sound)))
    yield from trials.tried(((one,), way) for way in ways for pair in partner for one in pair)
    found = [(one, other, way) for one, other in partner for way in ways
             if trials.share((one,), (other,), way) < SHARE]  # fmt: skip
    yield from trials.tried(((one,), way) for *pair, way in found for one in pair)
    blamed = (trials.blamed(one, (one,), [(other,)], way, SHARE) for one, other, way in found)
    return _alike([one for one in blamed if one], ways)


def rails(slow: Sequence[int], sound: Sequence[int], ways: Sequence[str]) -> Trials:
    """Each slow host with a sound one on each rail, beside two sound ones; and the rails between
    sound ones side by side."""
    trials = _Trials()
    if len(ways) < 2 or len(sound) < 1 or len(sound) + len(slow) < 2:
        return []
    beside = (sound[-2], sound[-1]) if len(sound) > 1 else None
    pairs = [(one, sound[at % max(1, len(sound) - 2)]) for at, one in enumerate(slow)]
    mixed = [*pairs, *([beside] if beside else [])]
    yield from trials.tried((pair, way) for way in ways for pair in mixed)
    if beside is None:  # its rails can be compared with each other alone
        return (yield from _of_each_other(trials, pairs, ways, common=False))
    suspects = [(pair, way) for pair in pairs for way in ways
                if trials.share(pair, beside, way) < SHARE]  # fmt: skip
    again = [(_other(pair, sound, at), way) for at, (pair, way) in enumerate(suspects)]
    yield from trials.tried((pair, way) for two, way in again for pair in (two, beside))
    found = []
    for (pair, way), (other, _) in zip(suspects, again):  # noqa: B905
        blamed = trials.blamed(pair[0], pair, [beside], way, SHARE, other)
        found += [blamed] if blamed else []
    return _alike(found, ways) + (yield from _of_each_other(trials, [beside], ways, common=True))


def _alike(found: list[Blamed], ways: Sequence[str]) -> list[Blamed]:
    """Of a host that is slow in every way to the same share one for all of them."""
    told = []
    for node in dict.fromkeys(one.node for one in found):
        mine = [one for one in found if one.node == node]
        shares = [one.share for one in mine]
        if len(mine) == len(ways) and min(shares) > SHARE * max(shares):
            mine = [Blamed(node, "", max(shares), [each for one in mine for each in one.tests])]
        told += mine
    return told


def _other(pair: Nodes, sound: Sequence[int], at: int) -> Nodes:
    """The same host with another sound one, where there is one that is not in the pair beside."""
    others = [one for one in sound[:-2] if one != pair[1]]
    return (pair[0], others[at % len(others)]) if others else pair


def _of_each_other(
    trials: _Trials, pairs: Sequence[Nodes], ways: Sequence[str], *, common: bool
) -> Trials:
    """Rails that are slower than the others between the same two hosts. `common`: both are sound,
    so that the rail is slow for all."""
    slow = [(pair, way) for pair in pairs for way in ways
            if trials.share_of_rails(pair, way, ways) < SHARE_OF_RAILS]  # fmt: skip
    yield from trials.tried(slow)
    found = []
    for pair, way in slow:
        share = trials.share_of_rails(pair, way, ways)
        if share < SHARE_OF_RAILS:
            tests = [number for one in (way, *(each for each in ways if each != way))
                     for number in trials.numbers(pair, one)]  # fmt: skip
            found.append(Blamed(None if common else pair[0], way, share, tests))
    return found


class _Trials:
    """What was tried so far."""

    def __init__(self) -> None:
        self._next = count(1)
        self.told: dict[_Wanted, list[tuple[int, float]]] = {}

    def tried(self, wanted: Iterable[_Wanted]) -> Generator[list[Trial], Measured, None]:
        """All of them, each once, in rounds of which none has a host twice."""
        left = list(dict.fromkeys(wanted))
        while left:
            used: set[int] = set()
            now: list[Trial] = []
            for nodes, way in list(left):
                if used.isdisjoint(nodes):
                    used.update(nodes)
                    left.remove((nodes, way))
                    now.append(Trial(next(self._next), nodes, way))
            told = yield now
            for one in now:
                gbps = median(told.get(one.number) or [0.0])
                self.told.setdefault((one.nodes, one.way), []).append((one.number, gbps))

    def of(self, node: int) -> list[int]:
        """The numbers of all trials in which it took part."""
        return sorted(number for (nodes, _), told in self.told.items() if node in nodes
                      for number, _ in told)  # fmt: skip

    def numbers(self, nodes: Nodes, way: str) -> list[int]:
        return [number for number, _ in self.told.get((nodes, way), [])]

    def best(self, nodes: Nodes, way: str) -> float:
        """Of all trials of it: slow means slow each time. 0.0: it never came to an end."""
        return max((gbps for _, gbps in self.told.get((nodes, way), [])), default=0.0)

    def share(self, nodes: Nodes, sound: Nodes, way: str) -> float:
        """Of what sound ones reach in the same way; 1.0 where these do not come to an end
        either."""
        reached = self.best(sound, way)
        return self.best(nodes, way) / reached if reached else 1.0

    def share_of_rails(self, nodes: Nodes, way: str, ways: Sequence[str]) -> float:
        """Of what the other rails reach between the same hosts, the middle of them."""
        others = [self.best(nodes, one) for one in ways if one != way]
        level = max(others) if len(others) < 3 else median(others)
        return self.best(nodes, way) / level if level else 1.0

    def blamed(
        self, node: int, nodes: Nodes, beside: Sequence[Nodes], way: str, least: float,
        again: Nodes = (),
    ) -> Blamed | None:  # fmt: skip
        """Whether it was slow each time, with others too."""
        own = [nodes, *([again] if again and again != nodes else [])]
        share = max(self.share(one, two, way) for one in own for two in beside)
        if share >= least:
            return None
        tests = [number for one in [*own, *beside] for number in self.numbers(one, way)]
        return Blamed(node, way, share, tests)
