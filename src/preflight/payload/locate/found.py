"""What goes in and comes out of a search: settings, tests, and what was found."""

from __future__ import annotations

from collections.abc import Generator
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035 - read by Python 3.9

Nodes = Tuple[int, ...]  # noqa: UP006
#: Two nodes, the smaller first.
Link = Tuple[int, int]  # noqa: UP006


class Test(NamedTuple):
    """One measurement: of `nodes` in the order of their ring; `why` is for people."""

    number: int
    nodes: Nodes
    why: str


class Wanted(NamedTuple):
    """A test that has no number yet. `control`: all in it is proven; it is there to be compared
    with."""

    nodes: Nodes
    why: str
    control: bool = False


class Settings(NamedTuple):
    """How a search judges what it is told.

    repeats: measurements of each test, of which the median counts.
    threshold: share of the healthy level below which a test is slow; half the shortfall that is to
        be seen, so that a fault of 16 % is as far below as a healthy test is above.
    noise: spread of one measurement as a share of it; None: from the repeats.
    reference: GB/s that a healthy test reaches; None: what most of the upper tests reached.
    """

    repeats: int = 7
    threshold: float = 0.92
    noise: Optional[float] = None  # noqa: UP045
    reference: Optional[float] = None  # noqa: UP045
    max_rounds: int = 200


class Found(NamedTuple):
    """The culprits, and the numbers of the tests that prove each.

    boundary: the sides that are fast within and slow between, most often two.
    undetermined: why something could not be told; "" where all was.
    level: GB/s of healthy tests, by what they were ("pairs", "groups").
    matrix: of `pairwise` alone: GB/s of each pair.
    """

    nodes: Nodes
    links: Tuple[Link, ...]  # noqa: UP006
    boundary: Optional[Tuple[Nodes, ...]]  # noqa: UP006, UP045
    runs: Dict[object, List[int]]  # noqa: UP006
    undetermined: str
    rounds: int
    covered: str
    level: Dict[str, float]  # noqa: UP006
    matrix: Dict[Link, float] = {}  # noqa: UP006, RUF012


#: GB/s of each repeat, by the number of the test; None: the test did not come to an end.
Measured = Dict[int, Optional[List[float]]]  # noqa: UP006, UP045
Search = Generator[List[Test], Measured, Found]  # noqa: UP006


def link(one: int, other: int) -> Link:
    return (one, other) if one < other else (other, one)


def ring(nodes: Nodes) -> set[Link]:
    """The links between neighbours of a ring, once each."""
    if len(nodes) < 2:
        return set()
    return {link(one, other) for one, other in zip(nodes, nodes[1:] + nodes[:1])}  # noqa: B905


def named(nodes: Nodes) -> str:
    """For people: "n4", "n4 to n9" where they follow each other, else their number."""
    if len(nodes) <= 3:
        return " and ".join(f"n{node}" for node in nodes)
    if all(after - before == 1 for before, after in zip(nodes, nodes[1:])):  # noqa: B905
        return f"n{nodes[0]} to n{nodes[-1]}"
    return f"{len(nodes)} nodes, n{nodes[0]} to n{nodes[-1]}"
