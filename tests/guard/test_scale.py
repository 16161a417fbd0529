"""A loss scale that finds its level slowly, by gradients with much noise, is not one that falls."""

from __future__ import annotations

import random

import pytest

from preflight.guard.records import Event
from preflight.guard.scale import ScaleAudit


def scaled(seed: int, start: float, window: int) -> list[float]:
    """What a scaler makes of gradients with noise: half of it where they overflow, twice after a
    window without."""
    rng = random.Random(seed)
    level = rng.choice([13, 17, 22])
    scale, calm, made = start, 0, []
    for _ in range(4000):
        if scale > 2 ** rng.gauss(level, 0.7):
            scale, calm = scale / 2, 0
        else:
            calm += 1
            if calm == window:
                scale, calm = scale * 2, 0
        made.append(scale)
    return made


def events(scales: list[float]) -> list[Event]:
    audit = ScaleAudit()
    looks = (audit.look(step, scale) for step, scale in enumerate(scales))
    return [one for one in looks if one is not None]


@pytest.mark.parametrize(("start", "window"), [(2.0**16, 100), (2.0**32, 1000), (2.0**16, 2000)])
def test_the_search_at_the_start_and_single_falls_are_usual(start: float, window: int) -> None:
    for seed in range(50):
        scales = scaled(seed, start, window)
        assert len(set(scales)) > 1
        assert events(scales) == [], seed
