"""One collective for a long time: windows that add up, however long and however many calls."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.payload.collectives.harness import harness
from preflight.payload.collectives.lasting import WINDOWS
from preflight.payload.collectives.plan import Plan
from preflight.payload.collectives.repeating import _KEPT, Kept
from tests.payload.youngest import youngest_child

Line = dict[str, Any]


def of(lines: list[Line], kind: str) -> list[Line]:
    return [one for one in lines if one["kind"] == kind]


def plan(seconds: float) -> Plan:
    return Plan(device="cpu", ranks=2, collectives=["all_reduce"], begin_bytes=64, end_bytes=64,
                size_s=0.01, lasting_s=seconds, silent_s=10.0)  # fmt: skip


def test_windows_follow_each_other_to_the_end() -> None:
    lines: list[Line] = []
    harness(plan(1.0), lines.append)
    windows = of(lines, "window")
    assert 3 <= len(windows) <= WINDOWS
    assert [one["window"] for one in windows] == list(range(len(windows)))
    ends = [one["at_s"] + one["lasts_s"] for one in windows]
    starts = [one["at_s"] for one in windows]
    assert all(abs(a - b) < 0.02 for a, b in zip(ends, starts[1:], strict=False))
    assert ends[-1] >= 1.0
    assert all(one["n"] >= 1 and one["most_us"] >= one["median_us"] for one in windows)
    assert of(lines, "lasted") == [{"kind": "lasted", "ended": True}]


def test_what_came_before_a_rank_died_is_there() -> None:
    lines: list[Line] = []

    def tell(line: Line) -> None:
        lines.append(line)
        if line["kind"] == "window" and line["window"] == 2:
            os.kill(youngest_child().pid, signal.SIGKILL)

    harness(plan(60.0), tell)
    assert len(of(lines, "window")) >= 3
    assert of(lines, "lasted") == [{"kind": "lasted", "ended": False}]
    assert of(lines, "died")


def test_of_very_many_calls_evenly_spread_ones_are_kept() -> None:
    kept = Kept()
    for at in range(0, 100_000, 500):
        kept.take([1e-6 * (one + 1) for one in range(at, at + 500)], float(at))
    assert len(kept.seconds) <= _KEPT
    told = kept.told()
    assert told["n"] == 100_000 and told["most_us"] == 100_000
    assert told["median_us"] == pytest.approx(50_000, rel=0.02)
    assert told["sum_s"] == pytest.approx(0.5e-6 * 100_000 * 100_001)
    assert told["longest"][0][1] == 0.1 and len(told["longest"]) == 8


def test_between_calls_that_overlap_on_several_ranks_nobody_waited() -> None:
    kept = Kept()
    kept.take([1e-3], 1.0)
    kept.waited(-1e-4, 1.001)
    assert kept.told()["longest"] == [[1.0, 0.001]]


def test_a_rank_that_is_stopped_is_told_with_when_and_for_how_long() -> None:
    lines: list[Line] = []

    def tell(line: Line) -> None:
        lines.append(line)
        if line["kind"] == "window" and line["window"] == 4:
            rank = youngest_child().pid
            os.kill(rank, signal.SIGSTOP)
            threading.Timer(1.2, os.kill, (rank, signal.SIGCONT)).start()

    harness(plan(3.0), tell)
    told = [call for one in of(lines, "window") for call in one["longest"]]
    at_s, lasts_s = max(told, key=lambda call: call[1])
    fifth = of(lines, "window")[4]
    assert lasts_s == pytest.approx(1.2, abs=0.15)
    assert at_s == pytest.approx(fifth["at_s"] + fifth["lasts_s"], abs=0.2)
