"""What a healthy test reaches, how far tests differ by chance, and so which are slow."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import median

from .found import Nodes, Settings

#: A normal spread is so many median deviations; the median of repeats is less steady than their
#: mean by the second factor.
_DEVIATION, _MEDIAN = 1.4826, 1.2533
#: Usual, and assumed where single repeats tell nothing of it; it weighs as so many measurements.
_NOISE, _USUAL = 0.03, 20
#: Single measurements that something else may have disturbed; of a normal spread without them the
#: root mean square is so much less, where a few of them were.
_FARTHEST, _WITHOUT = 0.10, 1.24
#: Nothing is measured more steadily.
_LEAST = 1e-4
#: The threshold is so many errors of a test away from healthy ones, else it is lowered: one test in
#: three million is then slow by chance.
_ERRORS = 5.0
#: Within so many errors of the threshold a test is measured again; a link that is blamed is
#: farther.
_DOUBT, _SURE = 2.0, 3.0
#: A ring of more nodes is a group.
_FEW = 3
#: Fewer tests say little of how they differ; it must be so many times what their repeats explain.
_TESTS, _TIMES = 12, 3
#: Nearly a threshold that was asked for.
_NEARLY = 1.5


def healthy(values: Iterable[float], threshold: float) -> list[float]:
    """Those near the upper quartile: of few, near the best. A quarter of them must be sound."""
    ordered = sorted((value for value in values if value > 0), reverse=True)
    if not ordered:
        return []
    upper = ordered[(len(ordered) - 1) // 4]
    return [value for value in ordered if upper * threshold <= value <= upper / threshold]


class Scale:
    """The levels of healthy tests so far, by kind. `error`: of one test, as a share; `cut`: a test
    below it is slow; `size`: of a group."""

    def __init__(self, settings: Settings, size: int) -> None:
        self.settings, self.size = settings, size
        self.levels: dict[str, float] = {}
        self.error = self._by_repeats(settings.noise or _NOISE)
        self.cut = settings.threshold
        self._weights: dict[str, int] = defaultdict(int)

    def kind(self, nodes: Nodes) -> str:
        """Two or three nodes are faster than many, even where all are well."""
        return "groups" if min(len(nodes), self.size) > _FEW else "pairs"

    def _by_repeats(self, noise: float) -> float:
        return _MEDIAN * max(noise, _LEAST) / math.sqrt(self.settings.repeats)

    def departs(self, medians: dict[Nodes, float]) -> float:
        """How far tests that should be healthy are off what was reached before; 0.0: they are
        not."""
        for name, values in self._by_kind(medians).items():
            if name in self.levels:
                near = healthy(values, self.settings.threshold)
                off = (median(near) if near else 0.0) / self.levels[name] - 1
                chance = self.error / math.sqrt(self._weights[name])
                chance += self.error / math.sqrt(max(1, len(near)))
                if abs(off) > (1 - self.settings.threshold) / 2 + chance:
                    return off
        return 0.0

    def take(self, medians: dict[Nodes, float]) -> None:
        """The levels with these tests too, most of which are healthy."""
        for name, values in self._by_kind(medians).items():
            near = self._healthy(values)
            before, weight = self.levels.get(name, 0.0), self._weights[name]
            if near:
                self.levels[name] = (before * weight + sum(near)) / (weight + len(near))
                self._weights[name] += len(near)

    def _healthy(self, values: list[float]) -> list[float]:
        if self.settings.reference is None:
            return healthy(values, self.settings.threshold)
        return [value for value in values if value >= self.cut * self.settings.reference]

    def learn(self, repeats: Iterable[list[float]], medians: dict[Nodes, float]) -> None:
        """Error and cut from the first rounds: from how repeats of healthy tests differ, or tests,
        where those differ far more than their repeats explain. A host that loses packets, or has no
        processor, is slow and not steady: that tells nothing of sound ones."""
        noise = self.settings.noise
        sound = {value for values in self._by_kind(medians).values()
                 for value in healthy(values, self.settings.threshold)}  # fmt: skip
        steady = (each for each in repeats if not sound or (each and median(each) in sound))
        self.error = self._by_repeats(_noise(steady) if noise is None else noise)
        for values in self._by_kind(medians).values():
            near = healthy(values, self.settings.threshold)
            if len(near) >= _TESTS:
                level = median(near)
                between = _DEVIATION * median(abs(value / level - 1) for value in near)
                self.error = between if between > _TIMES * self.error else self.error
        self.cut = 1 - max(1 - self.settings.threshold, _ERRORS * self.error)

    def above(self, medians: dict[Nodes, float]) -> list[Nodes]:
        """Tests as far above the level as slow ones are below: then it may be of slow ones."""
        return [
            nodes for nodes, value in medians.items() if self.share(nodes, value) > 1 / self.cut
        ]

    def share(self, nodes: Nodes, value: float) -> float:
        """Of what a healthy test of this kind reaches."""
        level = self.levels.get(self.kind(nodes)) or max(self.levels.values(), default=0.0)
        level = self.settings.reference or level
        return value / level if level else 0.0

    def verdict(self, shares: list[float]) -> str:
        """ "fast", "slow", or "unclear" after as many measurements as there are shares."""
        errors = self._errors(shares)
        return "fast" if errors >= _DOUBT else "slow" if errors <= -_DOUBT else "unclear"

    def surely_slow(self, shares: list[float]) -> bool:
        """Each time, and farther from the threshold than "slow" asks."""
        return max(shares) <= self.cut and self._errors(shares) <= -_SURE

    def _errors(self, shares: list[float]) -> float:
        """How many errors they lie above the threshold."""
        return (median(shares) - self.cut) * math.sqrt(len(shares)) / self.error

    @property
    def smallest(self) -> float:
        """The smallest fault that these repeats tell from chance, as a share."""
        return 2 * (1 - self.cut)

    def blind(self) -> str:
        """Why smaller faults than asked for remain unseen; "" where they do not."""
        asked = 1 - self.settings.threshold
        if 1 - self.cut <= _NEARLY * asked:
            return ""
        repeats = math.ceil(self.settings.repeats * ((1 - self.cut) / asked) ** 2)
        return (f"tests of the same hosts differ by {self.error:.1%} by chance, so faults below "
                f"{self.smallest:.0%} are not told from it; --repeats {repeats} instead of "
                f"{self.settings.repeats} may tell {2 * asked:.0%}")  # fmt: skip

    def _by_kind(self, medians: dict[Nodes, float]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = defaultdict(list)
        for nodes, value in medians.items():
            found[self.kind(nodes)].append(value)
        return found


def _noise(repeats: Iterable[list[float]]) -> float:
    """Of single measurements as a share of them, by their root mean square without the farthest: a
    median would not see that a third of them is slow. A few say little: they are weighed with what
    is usual."""
    off = sorted(
        (value / median(each) - 1) ** 2 * len(each) / (len(each) - 1)
        for each in repeats
        if len(each) > 2 and median(each) > 0
        for value in each
    )
    kept = off[: math.ceil(len(off) * (1 - _FARTHEST))]
    seen = _WITHOUT * math.sqrt(sum(kept) / len(kept)) if kept else 0.0
    weight = len(off) / (len(off) + _USUAL)
    return math.sqrt(weight * seen**2 + (1 - weight) * _NOISE**2)
