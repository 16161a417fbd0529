"""How well a search for slow hosts and links finds them, in clusters that exist in numbers only.

    python -m bench.localisation [--nodes 8,64,512,10000] [--trials 1000] [--seed 1]

Single measurements have 3 % of noise, and 2 % of them are slowed by 10 to 30 %. What is slow is so
by 15 to 20 %. How fast a healthy test is nobody tells the search, except where most are slow. A
test is the median of 7 repeats.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

from bench.cluster import (
    LEVEL,
    Make,
    Outcome,
    outcome,
    played,
    slow_boundary,
    slow_links,
    slow_nodes,
    slow_pairs,
    with_waves,
)  # fmt: skip
from bench.table import Row, show
from preflight.payload.locate.found import Search, Settings
from preflight.payload.locate.pairwise import pairwise
from preflight.payload.locate.search import locate

NODES = (8, 64, 512, 10_000)
TRIALS = 1000
_BOUNDED = 64
_ALL_PAIRS = 64


class Kind(NamedTuple):
    """One kind of fault. `least`: share of trials that must be exact, or with `or_open` exact or
    not determined; `most`: rounds."""

    what: str
    make: Make
    least: float
    most: float = math.inf
    or_open: bool = False
    search: Callable[[int, Settings], Search] = locate
    settings: Settings = Settings()


def kinds(nodes: int) -> Iterator[Kind]:
    """What is tried among so many nodes."""
    few = math.log2(nodes) + 6
    yield Kind("nothing slow", slow_nodes(0), 0.995)
    for count in range(1, min(5, nodes // 4) + 1):
        most = few if count == 1 or nodes >= _BOUNDED else math.inf
        yield Kind(f"{count} slow node{'s' * (count > 1)}", slow_nodes(count), 0.995, most)
    for count in range(1, 3 if nodes < _BOUNDED else 4):
        yield Kind(f"{count} slow link{'s' * (count > 1)} of the ring", slow_links(count), 0.97)
    yield Kind("a slow boundary", slow_boundary(), 0.995)
    yield Kind("a slow boundary, 1 slow node", slow_boundary(1), 0.97)
    yield from _harder(nodes)
    if nodes <= _ALL_PAIRS:
        make = slow_pairs(3 if nodes >= _BOUNDED else 1, 1)
        yield Kind("any slow links, 1 slow node: all pairs", make, 0.995, search=pairwise)


def _harder(nodes: int) -> Iterator[Kind]:
    """Where the answer may be that it cannot be told."""
    waves = with_waves(slow_nodes(1))
    yield Kind("1 slow node, a tenth of rounds slow", waves, 0.995, or_open=True)
    yield Kind("nothing slow, a tenth of rounds slow", with_waves(slow_nodes(0)), 0.995,
               or_open=True)  # fmt: skip
    yield Kind("1 node slow by 10 to 12 %", slow_nodes(1, 0.88, 0.90), 0.995, or_open=True)
    if nodes < _BOUNDED:
        given = Settings(reference=LEVEL)
        yield Kind("1 sound node, its level given", slow_nodes(nodes - 1), 1.0, or_open=True,
                   settings=given)  # fmt: skip
        yield Kind("2 sound nodes, their level given", slow_nodes(nodes - 2), 0.97, settings=given)


def tried(kind: Kind, nodes: int, trials: int, seed: int) -> list[Outcome]:
    """The outcomes of so many clusters."""
    found = []
    for trial in range(trials):
        draw = random.Random(f"{seed} {kind.what} {nodes} {trial}")
        cluster = kind.make(nodes, draw)
        search = kind.search(nodes, kind.settings)
        found.append(outcome(played(search, cluster, kind.settings.repeats, draw), cluster))
    return found


def row(kind: Kind, outcomes: list[Outcome]) -> Row:
    """What was reached beside what is asked."""
    exact = sum(one.exact for one in outcomes) / len(outcomes)
    left = sum(one.undetermined and not one.exact for one in outcomes) / len(outcomes)
    blamed = sum(one.blamed for one in outcomes)
    rounds = [one.rounds for one in outcomes]
    share = exact + left if kind.or_open else exact
    told = f", {left:.1%} not determined" if left else ""
    limit = "" if math.isinf(kind.most) else f", at most {kind.most:.0f} rounds"
    return Row(
        kind.what,
        f"{exact:.1%} exact{told}, {blamed} healthy blamed, {median(rounds):.0f} rounds "
        f"({max(rounds)})",
        f"{kind.least:.1%} exact{' or not determined' * kind.or_open}, 0 blamed{limit}",
        share >= kind.least and not blamed and max(rounds) <= kind.most,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.localisation")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)))
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    status = 0
    for nodes in map(int, asked.nodes.split(",")):
        rows = [row(kind, tried(kind, nodes, asked.trials, asked.seed)) for kind in kinds(nodes)]
        title = f"Culprits found among {nodes:,} nodes, in {asked.trials:,} clusters of each kind"
        status |= show(title, rows)
    return status


if __name__ == "__main__":
    sys.exit(main())
