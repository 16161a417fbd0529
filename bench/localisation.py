"""How well a search for slow hosts and links finds them, in clusters that exist in numbers only.

    python -m bench.localisation [--nodes 8,64,512,10000] [--trials 1000] [--seed 1]

All of it takes 35 minutes of a core, and all cores are used.

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
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Any, NamedTuple

from bench.cluster import LEVEL, Make, Outcome, outcome, played
from bench.clusters import (
    all_leaves,
    beside_each_other,
    dying,
    flapping,
    node_and_link,
    one_leaf,
    one_trunk,
    slow_boundary,
    slow_links,
    slow_nodes,
    slow_pairs,
    slow_ways,
    with_weather,
)
from bench.table import Row, show
from preflight.payload.locate.found import Search, Settings
from preflight.payload.locate.pairwise import pairwise
from preflight.payload.locate.search import locate

NODES = (2, 3, 4, 5, 6, 7, 8, 64, 512, 10_000)
TRIALS = 1000
_BOUNDED = 64
_ALL_PAIRS = 64
#: More take long.
_MANY = 1000
#: How often a link of a node that is slow in half of the rounds may be named in its place.
_BESIDE = 0.01
#: Fewer are tried for one thing only.
_FEW = 8


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
    if nodes < _FEW:
        yield from _few(nodes)
        return
    few = math.log2(nodes) + 6
    yield Kind("nothing slow", slow_nodes(0), 0.995)
    for count in range(1, min(5, nodes // 4) + 1):
        most = few if count == 1 or nodes >= _BOUNDED else math.inf
        yield Kind(f"{count} slow node{'s' * (count > 1)}", slow_nodes(count), 0.995, most)
    for count in range(1, 3 if nodes < _BOUNDED else 4):
        yield Kind(f"{count} slow link{'s' * (count > 1)} of the ring", slow_links(count), 0.97)
    yield Kind("a slow boundary", slow_boundary(), 0.995)
    yield Kind("a slow boundary, 1 slow node", slow_boundary(1), 0.97)
    yield Kind("2 slow nodes beside each other", beside_each_other, 0.995)
    yield Kind("1 slow node, a slow link of it", node_and_link, 0.97)
    yield from _switches(nodes)
    yield from _unsteady()
    if nodes < _BOUNDED:
        given = Settings(reference=LEVEL)
        yield Kind("1 sound node, its level given", slow_nodes(nodes - 1), 1.0, or_open=True,
                   settings=given)  # fmt: skip
        yield Kind("2 sound nodes, their level given", slow_nodes(nodes - 2), 0.97, settings=given)
    if nodes <= _ALL_PAIRS:
        make = slow_pairs(3 if nodes >= _BOUNDED else 1, 1)
        yield Kind("any slow links, 1 slow node: all pairs", make, 0.995, search=pairwise)


def _switches(nodes: int) -> Iterator[Kind]:
    """2 to 8 leaf switches of uneven sizes."""
    for name, which, least in (("one leaf", one_leaf, 2), ("all leaves", all_leaves, 2),
                               ("one trunk of several", one_trunk, 3)):  # fmt: skip
        if nodes < 3 * least:
            continue
        ring = slow_ways(which, least=least)
        mixed = slow_ways(which, least=least, shuffled=True)
        yield Kind(f"{name} slow across", ring, 0.97, or_open=True)
        yield Kind(f"{name} slow across, ring in any order", mixed, 0.97, or_open=True)
        if nodes <= _ALL_PAIRS and least < 3:
            # Where few pairs are fast it is asked what is healthy.
            yield Kind(f"{name} slow across, in any order: all pairs", mixed, 0.97,
                       or_open=which is all_leaves, search=pairwise)  # fmt: skip
    yield Kind("one leaf slow across, 1 slow node", slow_ways(one_leaf, slow=1), 0.97, or_open=True)


def _unsteady() -> Iterator[Kind]:
    """Where the answer may be that it cannot be told."""
    for name, make in (("nothing slow", slow_nodes(0)), ("1 slow node", slow_nodes(1))):
        for what, weather in _WEATHERS.items():
            yield Kind(f"{name}, {what}", with_weather(make, **weather), 0.995, or_open=True)
    yield Kind("1 node slow by 10 to 12 %", slow_nodes(1, 0.88, 0.90), 0.995, or_open=True)
    yield Kind("1 node slow half of the time", flapping(1), 0.0, or_open=True)
    yield Kind("1 node that dies", dying(0), 0.995, or_open=True)
    yield Kind("1 slow node, another that dies", dying(1), 0.995, or_open=True)


_WEATHERS: dict[str, dict[str, Any]] = {
    "a tenth of rounds slow": {"waves": 0.1},
    "some rounds in a row slow": {"waves": 0.1, "lasting": 0.6},
    "5 % of drift": {"drift": 0.05},
    "half of all repeats 10 % slower": {"torn": (0.5, 0.10)},
    "a quarter of all repeats 15 % slower": {"torn": (0.25, 0.15)},
}


def _few(nodes: int) -> Iterator[Kind]:
    """Too few for much: nobody healthy is blamed."""
    for name, search in (("", locate), (": all pairs", pairwise)):
        for what, make in (
            ("nothing slow", slow_nodes(0)), ("1 slow node", slow_nodes(1)),
            ("1 slow link of the ring", slow_links(1)),
            ("1 node slow half of the time", flapping(1)),
            ("nothing slow, half of all repeats 10 % slower",
             with_weather(slow_nodes(0), torn=(0.5, 0.10))),
            ("1 node that dies", dying(0)),
            *([("a slow boundary", slow_boundary())] if nodes > 3 else []),
        ):  # fmt: skip
            yield Kind(f"{what}{name}", make, 0.0, or_open=True, search=search)


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
    missed = sum(
        not (one.exact or one.undetermined or one.blamed or one.beside) for one in outcomes
    )
    told = f", {left:.1%} not determined" if left else ""
    beside = sum(one.beside for one in outcomes)
    told += f", {beside} links of it" if beside else ""
    told += f", {missed / len(outcomes):.1%} missed" if missed else ""
    limit = "" if math.isinf(kind.most) else f", at most {kind.most:.0f} rounds"
    return Row(
        kind.what,
        f"{exact:.1%} exact{told}, {blamed} healthy blamed, {median(rounds):.0f} rounds "
        f"({max(rounds)})",
        f"{kind.least:.1%} exact{' or not determined' * kind.or_open}, 0 blamed{limit}",
        share >= kind.least
        and not blamed
        and beside <= _BESIDE * len(outcomes)
        and max(rounds) <= kind.most,
    )


def _of(nodes: int, at: int, trials: int, seed: int) -> Row:
    """One row of a table, in a process of its own. Of very many nodes what may be left open is
    tried less often."""
    kind = list(kinds(nodes))[at]
    fewer = kind.or_open and nodes > _MANY
    return row(kind, tried(kind, nodes, max(1, trials // 10) if fewer else trials, seed))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.localisation")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)))
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    status = 0
    with ProcessPoolExecutor() as pool:
        for nodes in map(int, asked.nodes.split(",")):
            of = [(nodes, at, asked.trials, asked.seed) for at, _ in enumerate(kinds(nodes))]
            rows = list(pool.map(_of, *zip(*of, strict=True)))
            clusters = f"in {asked.trials:,} clusters of each kind"
            clusters += ", a tenth where it may be left open" if nodes > _MANY else ""
            status |= show(f"Culprits found among {nodes:,} nodes, {clusters}", rows)
    return status


if __name__ == "__main__":
    sys.exit(main())
