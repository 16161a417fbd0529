"""Which host or link of several slows the others down: the tests and what they prove."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class LocateTest(Struct, frozen=True):
    """One collective among some of the hosts."""

    number: int
    hosts: tuple[str, ...]  # in the order of their ring
    why: str
    busbw_gbps: Known[float] = NOT_IN_INPUT  # the median
    repeats: int = 0
    trouble: str = ""  # why it did not come to its end
    line: int = 0


class Culprit(Struct, frozen=True):
    """What is slow: a host, the link between two, or what lies between groups of them."""

    name: str  # node-07; node-07 to node-08; node[01-04] | node[05-08]
    kind: str  # host | link | boundary
    #: Below healthy tests of that kind, in percent, of those that prove it; 100: none came to an
    #: end.
    behind_percent: Known[float] = NOT_IN_INPUT
    tests: tuple[int, ...] = ()
    proof: str = ""  # those tests in words
    line: int = 0
    probe: str = ""


class Localisation(Struct, frozen=True):
    """One search."""

    hosts: tuple[str, ...] = ()
    tests: tuple[LocateTest, ...] = ()  # on the host that led; elsewhere those that prove a culprit
    test_count: int = 0
    culprits: tuple[Culprit, ...] = ()  # this host, and what it is an end or a side of
    rounds: int = 0
    undetermined: str = ""  # what the tests could not tell, and why; "" where they told all
    covered: str = ""
    level_gbps: dict[str, float] = {}  # of healthy tests, by kind
    matrix: tuple[tuple[str, str, float], ...] = ()  # of each pair, where all were tried
    size_bytes: int = 0
    line: int = 0
    probe: str = ""
