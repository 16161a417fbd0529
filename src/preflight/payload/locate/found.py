"""What goes in and comes out of a search: settings, tests, and what was found."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, Optional

Nodes = tuple[int, ...]
#: Two nodes, the smaller first.
Link = tuple[int, int]


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
        be seen, so that a fault of 16 % is as far below it as a healthy test is above.
    noise: spread of one measurement as a share of it; None: from the repeats.
    reference: GB/s that a healthy test reaches; None: from the tests themselves, of which a quarter
        must be healthy.
    """

    repeats: int = 7
    threshold: float = 0.92
    noise: float | None = None
    reference: float | None = None
    max_rounds: int = 200


DEFAULT = Settings()


class Found(NamedTuple):
    """The culprits, and the numbers of the tests that prove each.

    boundary: the sides that are fast within and slow between, most often two.
    runs: by node, link, or "boundary".
    undetermined: why something could not be told; "" where all was.
    covered: which nodes and links were looked at, for people.
    level: GB/s of healthy tests, by what they were ("pairs", "groups").
    matrix: of `pairwise` alone: GB/s of each pair.
    """

    nodes: Nodes
    links: tuple[Link, ...]
    boundary: tuple[Nodes, ...] | None
    runs: dict[object, list[int]]
    undetermined: str
    rounds: int
    covered: str
    level: dict[str, float]
    matrix: dict[Link, float]


#: GB/s of each repeat, by the number of the test; None: the test did not come to an end.
Measured = dict[int, Optional[list[float]]]  # noqa: UP045 - evaluated by Python 3.9 too
Search = Generator[list[Test], Measured, Found]
#: A part of a search that finds nothing by itself.
Part = Generator[list[Test], Measured, None]


def link(one: int, other: int) -> Link:
    """The link between two nodes, in either order."""
    return (one, other) if one < other else (other, one)


def ring(nodes: Nodes) -> set[Link]:
    """The links between neighbours of a ring, once each."""
    if len(nodes) < 2:
        return set()
    found, before = set(), nodes[-1]
    for node in nodes:
        found.add((before, node) if before < node else (node, before))
        before = node
    return found


def named(nodes: Nodes) -> str:
    """For people: "n4", "n4 to n9" where they follow each other, else how many."""
    if len(nodes) <= 3:
        return " and ".join(f"n{node}" for node in nodes)
    if nodes == tuple(range(nodes[0], nodes[0] + len(nodes))):
        return f"n{nodes[0]} to n{nodes[-1]}"
    return f"{len(nodes)} nodes, n{nodes[0]} to n{nodes[-1]}"
