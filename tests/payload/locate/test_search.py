"""Slow hosts, links and boundaries are found, and nobody else is blamed."""

from __future__ import annotations

import math
import random
from itertools import combinations
from itertools import pairwise as following
from typing import Any

import pytest

from bench.cluster import LEVEL, Cluster, outcome, played
from bench.clusters import slow_boundary, slow_links, slow_nodes, with_weather
from bench.localisation import Kind, kinds, row, tried
from preflight.payload.locate import found as forms
from preflight.payload.locate.found import DEFAULT, Found, Nodes, Search, Settings, link
from preflight.payload.locate.search import locate

CALM: dict[str, Any] = {"noise": 0.002, "hiccups": 0.0}


def find(cluster: Cluster, settings: Settings = DEFAULT, seed: int = 1) -> Found:
    search = locate(cluster.nodes, settings)
    return played(search, cluster, settings.repeats, random.Random(seed))


@pytest.mark.parametrize(("nodes", "trials"), [(8, 8), (64, 2)])
def test_what_the_table_asks_of_a_thousand_clusters_holds_for_a_few(
    nodes: int, trials: int
) -> None:
    missed = [
        (made.what, made.reached)
        for kind in kinds(nodes)
        if not (made := row(kind, tried(kind, nodes, trials, seed=4711))).met
    ]
    assert missed == []


@pytest.mark.parametrize(
    "kind", [one for one in kinds(10_000) if not one.or_open], ids=lambda kind: kind.what
)
def test_many_nodes_take_few_rounds(kind: Kind) -> None:
    made = row(kind, tried(kind, 10_000, 1, seed=4712))
    assert made.met, made.reached


@pytest.mark.parametrize("nodes", [4, 5, 6, 7, 8, 9, 10, 13, 16])
def test_each_node_and_each_link_of_a_small_ring_can_be_named(nodes: int) -> None:
    for at in range(nodes):
        for cluster in (
            Cluster(nodes, bad={at: 0.8}, **CALM),
            Cluster(nodes, links={link(at, (at + 1) % nodes): 0.8}, **CALM),
        ):
            one = find(cluster)
            assert outcome(one, cluster).exact, (cluster, one)


@pytest.mark.parametrize("nodes", [4, 5, 6, 8, 9, 16, 31, 64])
def test_a_boundary_is_named_and_not_all_its_links(nodes: int) -> None:
    one = find(Cluster(nodes, **halves(nodes), **CALM))
    half = nodes // 2
    assert one.boundary == (tuple(range(half)), tuple(range(half, nodes)))
    assert (one.nodes, one.links, one.undetermined) == ((), (), "")


def halves(nodes: int) -> dict[str, Any]:
    """Two switches, and a slow way between them."""
    leaf = [int(node >= nodes // 2) for node in range(nodes)]
    return {"leaf": leaf, "ways": {(0, 1): 0.8}}


class Small(Cluster):
    """Fewer nodes are faster."""

    def share(self, nodes: Nodes, calm: frozenset[int] = frozenset()) -> float:
        return super().share(nodes, calm) * (1 + 0.3 / math.sqrt(len(nodes)))


@pytest.mark.parametrize("bad", [{}, {21: 0.8}])
def test_more_than_two_sides_are_told(bad: dict[int, float]) -> None:
    ways = dict.fromkeys(combinations(range(4), 2), 0.85)
    leaf = [node // 16 for node in range(64)]
    one = find(Cluster(64, bad=bad, leaf=leaf, ways=ways, **CALM))
    leaves = [tuple(range(at, at + 16)) for at in range(0, 64, 16)]
    assert one.boundary == tuple(tuple(n for n in leaf if n not in bad) for leaf in leaves)
    assert (one.nodes, one.links, one.undetermined) == (tuple(bad), (), "")


@pytest.mark.parametrize("nodes", [8, 16, 64])
def test_that_small_groups_are_faster_hides_and_blames_nobody(nodes: int) -> None:
    assert find(Small(nodes)).nodes == ()
    one = find(Small(nodes, bad={2: 0.82, 5: 0.84}))
    assert (one.nodes, one.links, one.undetermined) == ((2, 5), (), "")


def test_a_mixed_group_is_not_closed_by_a_slow_link() -> None:
    links = {(3, 4): 0.84, (12, 13): 0.80, (34, 35): 0.83}
    one = find(Cluster(64, links=links, **CALM))
    assert (one.links, one.boundary) == (tuple(links), None)


def test_the_tests_that_prove_a_culprit_are_named() -> None:
    asked: dict[int, forms.Test] = {}
    cluster = Cluster(64, bad={9: 0.8}, links={(40, 41): 0.8})
    one = played(noting(locate(64), asked), cluster, 7, random.Random(3))
    assert (one.nodes, one.links) == ((9,), ((40, 41),))
    assert len(one.runs[9]) >= 2
    assert all(9 in asked[number].nodes for number in one.runs[9])
    partners = {node for number in one.runs[9] for node in asked[number].nodes} - {9}
    assert len(partners) >= 2
    assert {asked[number].nodes for number in one.runs[40, 41]} == {(40, 41)}
    assert len(one.runs[40, 41]) >= 2


def noting(search: Search, asked: dict[int, forms.Test]) -> Search:
    tests = next(search)
    while True:
        asked.update({test.number: test for test in tests})
        told = yield tests
        try:
            tests = search.send(told)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def test_a_node_whose_tests_never_end_is_named() -> None:
    search = locate(8)
    tests = next(search)
    while True:
        told = {test.number: None if 5 in test.nodes else [LEVEL] * 7 for test in tests}
        try:
            tests = search.send(told)
        except StopIteration as end:
            assert end.value.nodes == (5,)
            assert end.value.undetermined == ""
            return


@pytest.mark.parametrize("slow", [(), (40,)])
def test_hosts_behind_a_slow_switch_are_not_blamed_one_by_one(slow: tuple[int, ...]) -> None:
    """Fewer than a group, and in no order: no group proves one of them."""
    few = [3, 17, 30, 44, 58]
    leaf = [int(node in few) for node in range(64)]
    bad = dict.fromkeys(slow, 0.8)
    one = find(Cluster(64, bad=bad, leaf=leaf, ways={(0, 1): 0.8}, **CALM))
    rest = tuple(node for node in range(64) if node not in (*few, *slow))
    assert (one.nodes, one.boundary, one.undetermined) == (slow, (rest, tuple(few)), "")


def test_switches_that_are_slow_from_each_to_each_do_not_pass_for_sound() -> None:
    """Each group is as slow as the others."""
    leaf = [node % 4 for node in range(64)]
    ways = dict.fromkeys(combinations(range(4), 2), 0.8)
    one = find(Cluster(64, leaf=leaf, ways=ways, **CALM))
    assert (one.nodes, one.links) == ((), ())
    assert one.boundary is not None or one.undetermined


def test_a_node_that_dies_in_the_search_is_named_and_who_was_with_it_is_not() -> None:
    one = find(Cluster(64, bad={9: 0.8}, dies={7: 3}, **CALM))
    assert (one.nodes, one.links, one.undetermined) == ((7, 9), (), "")


def test_of_a_node_that_is_slow_now_and_then_nobody_else_is_blamed() -> None:
    for seed in range(40):
        one = find(Cluster(8, bad={3: 0.8}, flaps=frozenset({3}), **CALM), seed=seed)
        assert set(one.nodes) <= {3} and not one.boundary
        assert one.nodes or one.undetermined or not one.links or 3 in one.links[0]


def test_chance_is_outvoted() -> None:
    """One group is slow once, in the first round."""
    search, tests, made = locate(64), None, 0
    while True:
        try:
            told = (
                {}
                if tests is None
                else {
                    test.number: [LEVEL * (0.82 if made == 1 and 9 in test.nodes else 1)] * 7
                    for test in tests
                }
            )
            tests, made = next(search) if tests is None else search.send(told), made + 1
        except StopIteration as end:
            assert (end.value.nodes, end.value.links, end.value.undetermined) == ((), (), "")
            return


def test_repeats_in_two_levels_are_not_taken_for_steady() -> None:
    one = find(Cluster(64, torn=(0.5, 0.12)))
    assert one.nodes == ()
    assert "by chance" in one.undetermined


def test_nothing_that_ends_is_no_finding() -> None:
    search, tests = locate(8), None
    while True:
        try:
            tests = next(search) if tests is None else search.send({t.number: None for t in tests})
        except StopIteration as end:
            assert end.value.nodes == ()
            assert "fewer than two" in end.value.undetermined
            return


def test_a_round_that_is_slow_as_a_whole_is_measured_again() -> None:
    search = locate(16)
    first = next(search)
    second = search.send({test.number: [LEVEL] * 7 for test in first})
    again = search.send({test.number: [LEVEL * 0.8] * 7 for test in second})
    assert [test.nodes for test in again] == [test.nodes for test in second]
    assert {test.number for test in again}.isdisjoint(test.number for test in second)
    pairs = search.send({test.number: [LEVEL] * 7 for test in again})
    with pytest.raises(StopIteration) as end:
        search.send({test.number: [LEVEL] * 7 for test in pairs})
    assert (end.value.value.nodes, end.value.value.undetermined) == ((), "")


def test_what_stays_slow_as_a_whole_is_not_determined() -> None:
    search, made = locate(64), 0
    tests = next(search)
    while True:
        level = LEVEL if made < 2 else LEVEL * 0.8
        rates = {test.number: level * (0.8 if 7 in test.nodes else 1) for test in tests}
        try:
            tests = search.send({number: [rate] * 7 for number, rate in rates.items()})
        except StopIteration as end:
            assert end.value.nodes == ()
            assert "20% slower as a whole" in end.value.undetermined
            return
        made += 1


def test_two_nodes_have_nobody_to_be_compared_with() -> None:
    assert "no others" in find(Cluster(2, bad={1: 0.8})).undetermined
    assert find(Cluster(2), Settings(reference=LEVEL)).undetermined == ""
    slow = find(Cluster(2, bad={1: 0.8}), Settings(reference=LEVEL))
    assert "fewer than two" in slow.undetermined


def test_no_node_is_an_error() -> None:
    with pytest.raises(ValueError, match="nodes must be 1 or more, got 0"):
        next(locate(0))


def test_noise_that_hides_faults_is_told_with_the_repeats_that_would_do() -> None:
    one = find(Cluster(64, noise=0.09), Settings(repeats=3))
    assert one.nodes == ()
    assert " instead of 3 may tell" in one.undetermined


def test_a_single_fast_group_among_slow_ones_is_not_taken_for_all() -> None:
    slow = [node for node in range(64) if node % 8 == 0 and node != 24]
    one = find(Cluster(64, bad=dict.fromkeys(slow, 0.8), **CALM))
    assert "most are slow" in one.undetermined
    given = find(Cluster(64, bad=dict.fromkeys(slow, 0.8), **CALM), Settings(reference=LEVEL))
    assert (given.nodes, given.undetermined) == (tuple(slow), "")


def test_rounds_have_an_end() -> None:
    one = find(Cluster(512, bad={77: 0.8}), Settings(max_rounds=4))
    assert one.undetermined == "4 rounds were not enough"
    assert one.nodes == ()


def test_reasons_are_for_people() -> None:
    asked: dict[int, forms.Test] = {}
    played(noting(locate(10_000), asked), Cluster(10_000, bad={5009: 0.8}), 7, random.Random(3))
    reasons = [test.why for test in asked.values()]
    assert reasons[0] == "groups of 100 in ring order"
    assert any(why.startswith("first half of test ") for why in reasons)
    assert any(why.startswith("n5009 with proven n") for why in reasons)


def test_what_was_covered_names_the_limit() -> None:
    covered = find(Cluster(64)).covered
    assert covered.startswith("each node, 64 of 64 links between neighbours in the ring, and 3")
    assert "faults of 16% and more" in covered
    assert "only when all pairs are measured" in covered


def test_tests_that_share_a_node_are_refused_by_the_player() -> None:
    def wrong() -> Search:
        yield [forms.Test(1, (0, 1), ""), forms.Test(2, (1, 2), "")]
        raise AssertionError

    with pytest.raises(AssertionError, match="no tests of one round"):
        played(wrong(), Cluster(3), 7, random.Random(1))


def test_the_same_seed_gives_the_same_search() -> None:
    for make in (
        slow_nodes(2),
        slow_links(2),
        slow_boundary(1),
        with_weather(slow_nodes(1), waves=0.1),
    ):
        found = [played(locate(64), make(64, draw), 7, draw)
                 for draw in (random.Random(5), random.Random(5))]  # fmt: skip
        assert all(one == other for one, other in following(found))
