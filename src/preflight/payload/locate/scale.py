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
#: Assumed where one repeat of each test tells nothing of the spread.
_NOISE = 0.03
#: The threshold is so many errors of a test away from healthy ones, else it is lowered: one test in
#: three million is then slow by chance.
_ERRORS = 5.0
#: Within so many errors of the threshold a test is measured again.
_DOUBT = 2.0
#: Fewer tests say little of how they differ; it must be so many times what their repeats explain.
_TESTS, _TIMES = 12, 3
#: Nearly a threshold that was asked for.
_NEARLY = 1.5


def kind(nodes: Nodes) -> str:
    """Two or three nodes are faster than many, even where all are well."""
    return "pairs" if len(nodes) <= 3 else "groups"


def healthy(values: Iterable[float], threshold: float) -> list[float]:
    """Those near the upper quartile: of few, near the best. A quarter of them must be sound."""
    ordered = sorted((value for value in values if value > 0), reverse=True)
    if not ordered:
        return []
    upper = ordered[(len(ordered) - 1) // 4]
    return [value for value in ordered if upper * threshold <= value <= upper / threshold]


class Scale:
    """The levels of healthy tests so far, by kind. `error`: of one test; `cut`: below it is slow."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.levels: dict[str, float] = {}
        self.error = self._by_repeats(settings.noise or _NOISE)
        self.cut = settings.threshold
        self._weights: dict[str, int] = defaultdict(int)

    def _by_repeats(self, noise: float) -> float:
        return _MEDIAN * noise / math.sqrt(self.settings.repeats)

    def departs(self, medians: dict[Nodes, float]) -> float:
        """How far tests that should be healthy are off what was reached before; 0.0: they are
        not."""
        for name, values in _by_kind(medians).items():
            if name in self.levels:
                near = healthy(values, self.settings.threshold)
                off = (median(near) if near else 0.0) / self.levels[name] - 1
                if abs(off) > (1 - self.settings.threshold) / 2:
                    return off
        return 0.0

    def take(self, medians: dict[Nodes, float]) -> None:
        """The levels with these tests too, most of which are healthy."""
        for name, values in _by_kind(medians).items():
            near = healthy(values, self.settings.threshold)
            before, weight = self.levels.get(name, 0.0), self._weights[name]
            if near:
                self.levels[name] = (before * weight + sum(near)) / (weight + len(near))
                self._weights[name] += len(near)

    def learn(self, repeats: Iterable[list[float]], medians: dict[Nodes, float]) -> None:
        """Error and cut from the first rounds: from how repeats differ, or tests, where those differ
        far more than their repeats explain."""
        off = [abs(value / median(each) - 1) for each in repeats if len(each) > 2 for value in each
               if median(each) > 0]  # fmt: skip
        noise = self.settings.noise
        if noise is None and off:
            free = self.settings.repeats / max(1, self.settings.repeats - 1)
            noise = _DEVIATION * median(off) * math.sqrt(free)
        self.error = self._by_repeats(_NOISE if noise is None else noise)
        for values in _by_kind(medians).values():
            near = healthy(values, self.settings.threshold)
            if len(near) >= _TESTS:
                level = median(near)
                between = _DEVIATION * median(abs(value / level - 1) for value in near)
                self.error = between if between > _TIMES * self.error else self.error
        self.cut = 1 - max(1 - self.settings.threshold, _ERRORS * self.error)

    def share(self, nodes: Nodes, value: float) -> float:
        """Of what a healthy test of this kind reaches."""
        level = self.levels.get(kind(nodes)) or max(self.levels.values(), default=0.0)
        level = self.settings.reference or level
        return value / level if level else 0.0

    def verdict(self, shares: list[float]) -> str:
        """"fast", "slow", or "unclear" after as many measurements as there are shares."""
        share, doubt = median(shares), _DOUBT * self.error / math.sqrt(len(shares))
        if share >= self.cut + doubt:
            return "fast"
        return "slow" if share <= self.cut - doubt else "unclear"

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
                f"{self.smallest:.0%} are not told from it; {repeats} repeats instead of "
                f"{self.settings.repeats} may tell {2 * asked:.0%}")  # fmt: skip


def _by_kind(medians: dict[Nodes, float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for nodes, value in medians.items():
        found[kind(nodes)].append(value)
    return found
