"""What is healthy is told by the tests themselves, unless most of them are slow."""

from __future__ import annotations

import random
from statistics import median

import pytest

from preflight.payload.locate.found import DEFAULT, Nodes, Settings
from preflight.payload.locate.scale import Scale, healthy

GROUPS: list[Nodes] = [tuple(range(8 * at, 8 * at + 8)) for at in range(8)]


def scale(rates: list[float], settings: Settings = DEFAULT) -> Scale:
    one = Scale(settings, 8)
    one.take(dict(zip(GROUPS, rates, strict=True)))
    return one


def test_five_slow_ones_of_eight_do_not_shift_the_level() -> None:
    assert scale([80, 100, 82, 80, 101, 85, 99, 83]).levels == {"groups": 100}


def test_one_that_is_far_faster_is_not_what_is_healthy() -> None:
    one = scale([100, 100, 101, 99, 100, 140, 100, 100])
    assert one.levels["groups"] == pytest.approx(100)
    assert one.above({GROUPS[5]: 140}) == [GROUPS[5]]


def test_tests_that_did_not_end_are_no_measure() -> None:
    assert healthy([0, 0, 0, 0, 0, 100], 0.92) == [100]
    assert healthy([0, 0, 0], 0.92) == []
    assert healthy([0, 0, 100, 99], 0.92) == [100, 99]
    assert healthy([], 0.92) == []


def test_pairs_have_a_level_of_their_own() -> None:
    one = scale([100] * 8)
    one.take({(1, 2): 130.0, (3, 4): 130.0, (5, 6): 130.0})
    assert one.share((7, 8), 130.0) == 1.0
    assert one.share(GROUPS[0], 130.0) == 1.3


def test_a_given_level_counts() -> None:
    one = scale([80.0] * 8, Settings(reference=100))
    assert one.levels == {}
    assert one.share(GROUPS[0], 80.0) == 0.8


def repeats(noise: float, count: int = 7, tests: int = 40) -> list[list[float]]:
    draw = random.Random(8)
    return [[draw.gauss(100, 100 * noise) for _ in range(count)] for _ in range(tests)]


@pytest.mark.parametrize("noise", [0.03, 0.06])
def test_the_error_comes_from_the_repeats(noise: float) -> None:
    one = scale([100.0] * 8)
    one.learn(repeats(noise), {})
    # Of a median of seven: 1.25 x noise / root of 7.
    assert one.error == pytest.approx(1.2533 * noise / 7**0.5, rel=0.15)


def test_more_noise_lowers_the_threshold_and_says_so() -> None:
    one = scale([100.0] * 8)
    one.learn(repeats(0.03), {})
    assert one.cut == pytest.approx(0.92, abs=0.005)
    assert one.blind() == ""
    one.learn(repeats(0.08), {})
    assert one.cut < 0.85
    assert " instead of 7 may tell" in one.blind()


def test_tests_that_differ_more_than_their_repeats_count_by_that() -> None:
    one = scale([100.0] * 8)
    draw = random.Random(9)
    told = [[draw.gauss(rate, 0.2) for _ in range(7)] for rate in repeats(0.03, 40, 1)[0]]
    rates = {(100 + at, *GROUPS[0]): median(each) for at, each in enumerate(told)}
    one.learn(told, rates)
    assert one.error == pytest.approx(0.03, rel=0.3)


def test_near_the_threshold_it_is_measured_again() -> None:
    one = scale([100.0] * 8)
    one.learn(repeats(0.03), {})
    assert [one.verdict([share]) for share in (1.0, 0.93, 0.91, 0.85)] == [
        "fast", "unclear", "unclear", "slow",
    ]  # fmt: skip
    assert one.verdict([0.90] * 9) == "slow"
    assert one.surely_slow([0.83, 0.84])
    assert not one.surely_slow([0.83, 0.93])


def test_a_noise_of_nothing_is_no_division_by_nothing() -> None:
    one = scale([100.0] * 8, Settings(noise=0.0))
    one.learn([[100.0] * 7], {})
    assert one.verdict([1.0]) == "fast"


def test_a_host_that_is_not_steady_does_not_blind_the_search() -> None:
    """Of ten pairs four hold a host that loses packets: slow, and each time otherwise."""
    one = Scale(Settings(), size=2)
    sound = [[100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 100.0]] * 6
    lossy = [[5.0, 60.0, 9.0, 2.0, 80.0, 11.0, 30.0]] * 4
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    rates: dict[Nodes, float] = {pair: 11.0 if 2 in pair else 100.0 for pair in pairs}
    one.learn([*sound, *lossy], rates)
    assert one.blind() == ""
    unsteady = [[100.0, 60.0, 100.0, 70.0, 140.0, 100.0, 150.0]] * 4
    one.learn([*sound, *unsteady], dict.fromkeys(rates, 100.0))
    assert "differ by" in one.blind()
