"""Rounds of tests as they were asked for and answered."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import count
from statistics import median

from .found import Measured, Nodes, Test, Wanted


class Rounds:
    """What was measured so far; `made`: rounds."""

    def __init__(self) -> None:
        self.made = 0
        self._numbers = count(1)
        self._told: dict[int, list[float]] = {}

    def measured(self, wanted: Iterable[Wanted]) -> Generator[list[Test], Measured, list[Test]]:
        """One round: its tests, with numbers."""
        tests = [Test(next(self._numbers), nodes, why) for nodes, why, _ in wanted]
        told = yield tests
        self.made += 1
        self._told.update({test.number: told.get(test.number) or [] for test in tests})
        return tests

    def repeats(self, test: Test) -> list[float]:
        """GB/s; empty: it did not come to an end."""
        return self._told[test.number]

    def median(self, test: Test) -> float:
        """0.0 where it did not come to an end: as slow as can be."""
        return median(self._told[test.number] or [0.0])

    def medians(self, tests: Iterable[Test]) -> dict[Nodes, float]:
        return {test.nodes: self.median(test) for test in tests}
