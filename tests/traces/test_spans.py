"""Unions of spans of time, against counting on a grid; and that what is gathered stays small."""

from __future__ import annotations

import random

import pytest

from preflight.traces import calls, spans
from preflight.traces.calls import Collectives, numbered
from preflight.traces.events import Event
from preflight.traces.spans import Span, Spans, clipped, merged, minus, total

GRID = 60


def some(draw: random.Random) -> list[Span]:
    starts = [draw.randrange(GRID) for _ in range(draw.randrange(12))]
    return [(float(at), float(min(GRID, at + draw.randrange(1, 15)))) for at in starts]


def cells(found: list[Span]) -> set[int]:
    return {at for low, high in found for at in range(int(low), int(high))}


@pytest.mark.parametrize("seed", range(200))
def test_unions_and_differences_are_those_of_a_grid(seed: int) -> None:
    draw = random.Random(seed)
    one, two = some(draw), some(draw)
    first, second = merged(one), merged(two)
    assert cells(first) == cells(one)
    assert total(first) == len(cells(one))
    assert cells(minus(first, second)) == cells(one) - cells(two)
    low, high = sorted(draw.sample(range(GRID), 2))
    assert cells(clipped(first, low, high)) == cells(one) & set(range(low, high))
    growing = Spans()
    for start, end in one:
        growing.add(start, end)
    assert growing.merged() == first


def test_spans_that_are_near_are_one() -> None:
    found = Spans(slack_us=5)
    for at in (30, 0, 14):
        found.add(at, at + 10)
    assert found.merged() == [(0, 24), (30, 40)]


def test_very_many_spans_are_folded_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_MOST", 100)
    found = Spans()
    for at in range(10_000):
        found.add(10.0 * at, 10.0 * at + 5)
    kept = found.merged()
    assert len(kept) <= 200
    assert (kept[0][0], kept[-1][1]) == (0, 99_995)


def test_of_very_many_collectives_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST", 10)
    seen = Collectives()
    for at in range(1000):
        seen.on_device(Event("X", "kernel", "ncclKernel_AllReduce_RING", ts=float(at), dur=1.0), at)
    assert len(seen.device) <= 40
    found = numbered(seen.device, [1] * len(seen.device))
    assert [one.start_us for one in found] == [float(at) for at in range(990, 1000)]
    assert seen.dropped == 1000 - len(seen.device)
