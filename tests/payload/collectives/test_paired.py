"""Settings in turns: alike ones have no winner however noise goes, and different ones have one."""

from __future__ import annotations

import math
import random

import pytest

from preflight.payload.collectives import paired


def swept(
    rng: random.Random, settings: int, noise: float, *, drift: float = 0.0, wander: float = 0.0,
    faster: float = 0.0, alone: float = 0.0,
) -> list[paired.Gain]:  # fmt: skip
    """A whole sweep of one size: the level rises by `drift` over all turns and wanders by `wander`
    from one measurement to the next; the last setting is faster by a share; of a measurement
    somebody else takes the machine with the chance `alone`."""
    times: list[list[float]] = [[] for _ in range(settings)]
    level, gains = 0.0, list[paired.Gain]()
    for turn in range(paired.LOOKS[-1]):
        for at in paired.order(turn, settings):
            level += rng.gauss(0, wander) + drift / paired.LOOKS[-1] / settings
            one = math.exp(level + rng.gauss(0, noise))
            one *= rng.uniform(1.2, 4) if rng.random() < alone else 1.0
            times[at].append(one / (1 + faster * (at == settings - 1)))
        if turn + 1 in paired.LOOKS:
            gains = [paired.gain(times[0], one, settings - 1) for one in times[1:]]
            if all(one.verdict != "open" for one in gains):
                break
    return gains


def test_of_alike_settings_one_sweep_in_a_hundred_may_tell_a_difference() -> None:
    rng, told = random.Random(7), 0
    cases = [
        (noise, drift, wander, alone) for noise in (0.03, 0.08, 0.14) for drift in (0.0, 0.5)
        for wander in (0.0, 0.02) for alone in (0.0, 0.1)
    ]  # fmt: skip
    for noise, drift, wander, alone in cases:
        for settings in (2, 4):
            for _ in range(15):
                gains = swept(rng, settings, noise, drift=drift, wander=wander, alone=alone)
                told += any(one.verdict in ("faster", "slower") for one in gains)
    assert told <= 0.01 * len(cases) * 2 * 15  # of 720


@pytest.mark.parametrize(("noise", "faster"), [(0.03, 0.06), (0.08, 0.15), (0.14, 0.3)])
def test_what_is_faster_is_told_with_by_how_much(noise: float, faster: float) -> None:
    rng = random.Random(11)
    gains = [swept(rng, 2, noise, drift=0.3, faster=faster)[0] for _ in range(20)]
    found = [one for one in gains if one.verdict == "faster"]
    assert len(found) >= 19
    assert all(one.low > 0 for one in found)
    assert sorted(one.median for one in found)[10] == pytest.approx(faster, abs=faster / 4)


@pytest.mark.parametrize("settings", [2, 3, 5])
@pytest.mark.parametrize("power", [1, 2])
def test_what_drifts_takes_from_each_as_often_as_it_gives(settings: int, power: int) -> None:
    """The level rises evenly, or ever faster; without noise nothing but the order is left."""
    level, sums, turns = 0, [0] * settings, 16 * settings
    for turn in range(turns):
        for at in paired.order(turn, settings):
            sums[at] += level**power
            level += 1
    assert max(sums) - min(sums) <= (0 if power == 1 else 0.001 * max(sums))


def test_each_turn_has_each_setting_once_and_two_in_a_row_mirror_each_other() -> None:
    for many in (2, 3, 4):
        orders = [paired.order(turn, many) for turn in range(32)]
        assert all(sorted(one) == list(range(many)) for one in orders)
        assert all(orders[at] == orders[at + 1][::-1] for at in range(0, 32, 2))
        assert len({tuple(one) for one in orders}) == (2 if many == 2 else 2 * many)


def test_the_chance_is_that_of_the_tables() -> None:
    """Wilcoxon's tables: of 8 pairs a sum of 3 or less has a chance of 0.0391, both ways; of 12 all
    of one sign 2 in 4096."""
    values = [1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert paired.gain([math.exp(one) for one in values], [1.0] * 8, 1).chance == pytest.approx(
        2 * 5 / 256
    )
    assert paired.gain([1.1 + at / 100 for at in range(12)], [1.0] * 12, 1).chance == 2 / 4096
    assert paired.gain([1.0] * 12, [1.0] * 12, 1).verdict == "alike"


def test_a_gain_too_small_to_matter_is_none() -> None:
    gain = paired.gain([1.01 + at / 1e5 for at in range(12)], [1.0] * 12, 1)
    assert gain.chance < 0.001 and gain.verdict == "alike"
