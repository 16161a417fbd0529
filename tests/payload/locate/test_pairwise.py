"""All pairs: each once, and what is slow between any two is named."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bench.cluster import LEVEL, Cluster, outcome, played
from preflight.payload.locate.found import DEFAULT, Found, Settings
from preflight.payload.locate.pairwise import circle, pairwise


def find(cluster: Cluster, settings: Settings = DEFAULT) -> Found:
    return played(pairwise(cluster.nodes, settings), cluster, settings.repeats, random.Random(2))


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 8, 9, 64])
def test_each_pair_comes_once_in_as_few_rounds_as_there_can_be(nodes: int) -> None:
    rounds = list(circle(nodes))
    assert len(rounds) == nodes - 1 + nodes % 2
    pairs = Counter(one.nodes for tests in rounds for one in tests)
    assert set(pairs.values()) == {1}
    assert len(pairs) == nodes * (nodes - 1) // 2
    for tests in rounds:
        used = [node for one in tests for node in one.nodes]
        assert len(used) == len(set(used))


def test_the_matrix_has_each_pair() -> None:
    one = find(Cluster(8, noise=0.001, hiccups=0.0))
    assert len(one.matrix) == 28
    assert min(one.matrix.values()) > 0.99 * LEVEL
    assert (one.rounds, one.undetermined, one.covered[:12]) == (7, "", "all 28 pairs")


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(8, links={(1, 5): 0.8}),
        Cluster(8, links={(1, 5): 0.8, (2, 3): 0.85}, bad={0: 0.8}),
        Cluster(8, bad={0: 0.8, 4: 0.82, 7: 0.85}),
        Cluster(9, leaf=[0] * 4 + [1] * 5, ways={(0, 1): 0.8}),
        Cluster(12, leaf=[0, 1] * 6, ways={(0, 1): 0.8}, bad={3: 0.8}, links={(7, 11): 0.8}),
        Cluster(4, leaf=[0, 0, 1, 1], ways={(0, 1): 0.8}),
        Cluster(3, bad={2: 0.8}),
    ],
    ids=str,
)
def test_culprits_are_named(cluster: Cluster) -> None:
    one = find(cluster)
    assert outcome(one, cluster).exact, one
    for pair in one.links:
        assert len(one.runs[pair]) >= 2
        assert one.matrix[pair] < 0.9 * LEVEL
    for node in one.nodes:
        assert len(one.runs[node]) >= cluster.nodes - 1
    assert ("boundary" in one.runs) == bool(cluster.ways)


def test_rounds_that_are_slow_as_a_whole_blame_nobody() -> None:
    for seed in range(20):
        cluster = Cluster(16, links={(2, 9): 0.8}, waves=0.1)
        one = played(pairwise(16), cluster, 7, random.Random(seed))
        assert (one.nodes, one.boundary, one.links) == ((), None, ((2, 9),))


def test_too_few_sound_nodes_are_not_determined() -> None:
    assert "no others" in find(Cluster(2)).undetermined
    given = Settings(reference=LEVEL)
    one = find(Cluster(5, bad=dict.fromkeys(range(4), 0.8)), given)
    assert "fewer than two" in one.undetermined
    assert one.nodes == ()


def test_no_node_is_an_error() -> None:
    with pytest.raises(ValueError, match="got 0"):
        next(pairwise(0))
