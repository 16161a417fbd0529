"""What within a slow host is slow: played through on hosts whose fabrics and rails are made up."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from preflight.payload.locate.found import Nodes
from preflight.payload.locate.inside import Blamed, Trial, Trials, fabrics, gpus, rails

RAILS = [f"mlx5_{at}" for at in range(8)]
WAYS = ["as it is", "shared memory", "adapters"]
Rate = Callable[[Nodes, str], float]


def played(
    trials: Trials, rate: Rate, noise: float = 0.03, seed: int = 1
) -> tuple[list[Blamed], int]:
    """What is found, and in how many rounds, with gaussian noise on each of seven repeats."""
    chance, rounds = random.Random(seed), 0
    try:
        asked: list[Trial] = next(trials)
        while True:
            rounds += 1
            hosts = [node for one in asked for node in one.nodes]
            assert len(hosts) == len(set(hosts)), "a host twice in a round"
            told = {one.number: [rate(one.nodes, one.way) * chance.gauss(1, noise)
                                 for _ in range(7)] for one in asked}  # fmt: skip
            asked = trials.send({number: gbps if gbps[0] > 0 else None
                                 for number, gbps in told.items()})  # fmt: skip
    except StopIteration as end:
        return end.value, rounds


def slow(bad: dict[tuple[int | None, str], float]) -> Rate:
    """A trial is as fast as the slowest that takes part; None: on all hosts."""
    return lambda nodes, way: min(bad.get((one, way), 1.0) for one in [*nodes, None])


def named(found: list[Blamed]) -> list[tuple[int | None, str]]:
    return [(one.node, one.way) for one in found]


@pytest.mark.parametrize("sound", [[0, 1, 2, 4, 5], [0, 1], [0]])
def test_the_rail_of_the_slow_host_is_named(sound: list[int]) -> None:
    found, rounds = played(rails([3], sound, RAILS), slow({(3, "mlx5_6"): 0.5}))
    assert named(found) == [(3, "mlx5_6")]
    assert found[0].share == pytest.approx(0.5, abs=0.05)
    assert len(found[0].tests) >= 2
    assert rounds <= 2 * len(RAILS) + 2


def test_rails_of_two_slow_hosts_are_told_apart() -> None:
    bad: dict[tuple[int | None, str], float] = {(3, "mlx5_0"): 0.6, (7, "mlx5_1"): 0.1}
    found, _ = played(rails([3, 7], [0, 1, 2, 4, 5], RAILS), slow(bad))
    assert sorted(map(str, named(found))) == ["(3, 'mlx5_0')", "(7, 'mlx5_1')"]


def test_a_rail_that_ends_nowhere_is_slow_without_end() -> None:
    found, _ = played(rails([3], [0, 1, 2], RAILS), slow({(3, "mlx5_2"): 0.0}))
    assert [(one.node, one.way, one.share) for one in found] == [(3, "mlx5_2", 0.0)]


def test_a_rail_that_is_slow_for_all_is_nobodys() -> None:
    found, _ = played(rails([], [0, 1, 2, 4], RAILS), slow({(None, "mlx5_4"): 0.5}))
    assert named(found) == [(None, "mlx5_4")]
    beside, _ = played(rails([3], [0, 1, 2], RAILS), slow({(None, "mlx5_4"): 0.5}))
    assert named(beside) == [(None, "mlx5_4")]


def test_a_host_that_is_slow_on_all_rails_alike_has_no_slow_rail_among_them() -> None:
    found, _ = played(rails([3], [0], RAILS), slow({(3, rail): 0.5 for rail in RAILS}))
    assert found == []
    (told,), _ = played(rails([3], [0, 1], RAILS), slow({(3, rail): 0.5 for rail in RAILS}))
    assert (told.node, told.way) == (3, "")
    mixed: dict[tuple[int | None, str], float] = {(3, rail): 0.5 for rail in RAILS}
    found, _ = played(rails([3], [0, 1], RAILS), slow(mixed | {(3, "mlx5_0"): 0.2}))
    assert len(found) == len(RAILS)


@pytest.mark.parametrize(
    ("ill", "sound"), [([3], [0, 1, 2]), ([], [0, 1]), ([3], [0]), ([3, 4, 5], [0, 1, 2, 6])]
)
def test_sound_rails_are_not_blamed(ill: list[int], sound: list[int]) -> None:
    for seed in range(50):
        assert played(rails(ill, sound, RAILS), slow({}), 0.06, seed)[0] == []


def test_one_rail_is_nothing_to_choose_from() -> None:
    assert played(rails([3], [0, 1], RAILS[:1]), slow({})) == ([], 0)


def test_the_fabric_that_is_slow_is_named_by_a_sound_host_beside_it() -> None:
    bad: dict[tuple[int | None, str], float] = {(3, "as it is"): 0.5}
    found, rounds = played(fabrics([3], [0, 1], WAYS), slow(bad))
    assert named(found) == [(3, "as it is")]
    assert rounds == 4  # three ways, and one of them again
    assert played(fabrics([3], [0], WAYS), slow({(None, "adapters"): 0.2}))[0] == []
    assert played(fabrics([3, 4], [0, 1], WAYS), slow({}), noise=0.06)[0] == []


def pairs(many: int, *, all_pairs: bool, bad: dict[Nodes, float], noise: float = 0.03,
          seed: int = 1) -> list[Nodes]:  # fmt: skip
    """The GPUs that are found; `bad`: how fast one of them is, or two with each other."""
    chance, trials = random.Random(seed), gpus(many, all_pairs=all_pairs)
    try:
        asked = next(trials)
        while True:
            told: dict[int, list[float] | None] = {}
            for one in asked:
                keys = [*((each,) for each in one.nodes), one.nodes]
                rate = min(bad.get(key, 1.0) for key in keys)
                told[one.number] = [rate * chance.gauss(1, noise) for _ in range(7)]
            asked = trials.send(told)
    except StopIteration as end:
        return [one.gpus for one in end.value]


@pytest.mark.parametrize(("many", "all_pairs"), [(3, False), (4, False), (8, False), (8, True)])
def test_the_gpu_that_is_slow_with_all_is_named(many: int, all_pairs: bool) -> None:
    for bad in range(many):
        assert pairs(many, all_pairs=all_pairs, bad={(bad,): 0.5}) == [(bad,)]


def test_two_gpus_that_are_slow_with_each_other_are_named() -> None:
    assert pairs(8, all_pairs=True, bad={(2, 5): 0.5}) == [(2, 5)]
    assert pairs(8, all_pairs=False, bad={(2, 3): 0.5}) == [(2, 3)]
    assert pairs(8, all_pairs=False, bad={(1,): 0.5, (2,): 0.4}) == [(1,), (2,)]


@pytest.mark.parametrize("many", [2, 3, 5, 8])
def test_sound_gpus_are_not_blamed(many: int) -> None:
    for seed in range(50):
        assert pairs(many, all_pairs=bool(seed % 2), bad={}, noise=0.06, seed=seed) == []
