"""One collective for a long time: levels, trend, what is far off, and what is judged of it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine_one_of_many
from preflight.facts.bench import Lasting
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result, Status
from preflight.probes.collectives.bench import bench
from preflight.probes.collectives.levels import slope, starts
from tests.conftest import sample

SOUND, SLOWED = (sample(f"nccl_bench/lasting_{one}_h1.jsonl") for one in ("sound", "slowed"))
Line = dict[str, Any]


def written(values_us: Sequence[float], *last: Line, **plan: Any) -> str:
    """A run of two hosts with a window of each second."""
    lines = [json.loads(one) for one in SOUND.splitlines()]
    begin = next(one for one in lines if one["kind"] == "begin")
    begin["plan"] |= plan
    lasting = next(one for one in lines if one["kind"] == "lasting")
    size = next(one for one in lines if one["kind"] == "size")
    windows = [
        {"kind": "window", "window": at, "at_s": float(at), "lasts_s": 1.0, "n": 50,
         "median_us": one, "mad_us": 1.0, "most_us": 2 * one} for at, one in enumerate(values_us)
    ]  # fmt: skip
    ends = last or ({"kind": "lasted", "ended": True}, {"kind": "end", "elapsed_s": 9.0})
    return "".join(f"{json.dumps(one)}\n" for one in [begin, size, lasting, *windows, *ends])


def run_of(text: str) -> Lasting:
    found = bench(text).lasting
    assert not isinstance(found, Missing)
    return found[0]


def judged(text: str) -> Result:
    found = examine_one_of_many("h1", [Raw("h1", "nccl-bench", stdout=text)],
                                load(("collectives",)).checks)  # fmt: skip
    (one,) = [one for one in found.report.results if one.check == "collectives.steady"]
    return one


def noisy(rng: random.Random, count: int, noise: float, waves: float) -> list[float]:
    """Noise, waves of several windows, and one window of fifty that somebody else had."""
    level, found = 0.0, []
    for _ in range(count):
        level = 0.9 * level + rng.gauss(0, waves)
        one = 1000 * math.exp(level + rng.gauss(0, noise))
        found.append(one * (rng.uniform(1.5, 4) if rng.random() < 0.02 else 1))
    return found


def test_noise_waves_and_single_windows_are_no_loss() -> None:
    rng = random.Random(4)
    for noise, waves in ((0.03, 0.0), (0.1, 0.0), (0.03, 0.02), (0.1, 0.03)):
        for count in (12, 60, 120):
            for _ in range(4):
                assert judged(written(noisy(rng, count, noise, waves))).status is Status.PASS


@pytest.mark.parametrize("count", [20, 100])
@pytest.mark.parametrize("loss", [0.5, 0.75])
def test_a_level_that_falls_fails_with_the_time_at_which_it_did(count: int, loss: float) -> None:
    rng, at = random.Random(8), 7 * count // 10
    values = noisy(rng, count, 0.04, 0.0)
    slower = [one / (1 - loss * (n >= at)) for n, one in enumerate(values)]
    text = written(slower, device="cuda")
    run = run_of(text)
    (change,) = run.changes
    assert abs(change.at_s - at) <= 1
    assert run.drop_percent == pytest.approx(100 * loss, abs=5)
    found = judged(text)
    assert (found.status, found.subject) == (Status.FAIL, run.name)
    # Processors do other work besides.
    assert judged(written(slower)).status is (Status.FAIL if loss > 0.6 else Status.WARN)


def test_a_dip_that_ends_is_told_with_both_ends_and_faster_is_no_loss() -> None:
    values = noisy(random.Random(9), 100, 0.03, 0.0)
    dip = [one * (2 if 30 <= at < 60 else 1) for at, one in enumerate(values)]
    assert [round(one.at_s / 10) for one in run_of(written(dip)).changes] == [3, 6]
    assert judged(written(dip, device="cuda")).status is Status.FAIL
    short = [one * (2 if 30 <= at < 45 else 1) for at, one in enumerate(values)]
    assert len(run_of(written(short)).changes) == 2
    assert judged(written(short, device="cuda")).status is Status.PASS
    faster = [one / (2 if at >= 30 else 1) for at, one in enumerate(values)]
    assert judged(written(faster)).status is Status.PASS


def test_recorded_runs_are_as_they_were_made() -> None:
    assert judged(SOUND).status is Status.PASS
    slowed = run_of(SLOWED)
    assert judged(SLOWED).status is Status.FAIL
    assert isinstance(slowed.dropped_at_s, float) and 6 < slowed.dropped_at_s < 10
    assert slowed.ended and slowed.lasted_s >= 12


def test_windows_that_stand_alone_are_counted_with_their_times() -> None:
    values = [1000 + at % 7 for at in range(50)]
    values[10] = values[33] = 5000
    run = run_of(written(values))
    assert run.outliers == (10.0, 33.0) and not run.changes


def test_what_was_cut_short_is_judged_as_far_as_it_came() -> None:
    fell = [1000.0] * 20 + [4000.0] * 20
    stopped = {"kind": "interrupted"}
    assert judged(written(fell, stopped)).status is Status.FAIL
    few = judged(written([1000.0] * 3, stopped))
    assert few.status is Status.ERROR and "interrupted" in few.reason
    failed = {"kind": "failed", "rank": 1, "text": "no way"}
    assert "no way" in judged(written([1000.0] * 3, failed)).reason
    short = judged(written([1000.0] * 3))
    assert short.status is Status.SKIP


@pytest.mark.parametrize("rc", [None, 130])
def test_what_a_user_interrupts_is_read_as_far_as_it_came(rc: int | None) -> None:
    text = written([1000.0] * 20, {"kind": "interrupted" if rc else "step"})
    missing = None if rc else Missing("timeout", "it was interrupted 20 s after it was asked")
    raw = Raw("h1", "nccl-bench", ("python3",), rc, text, missing=missing)
    host = assemble("h1", [raw]).host
    assert not isinstance(host.lasting, Missing) and len(host.lasting[0].windows) == 20
    assert not host.lasting[0].ended


def test_processors_of_one_host_are_shown_and_not_judged() -> None:
    text = written([1000.0] * 20 + [4000.0] * 20, hosts=[])
    assert judged(text).status is Status.SKIP
    assert len(run_of(text).changes) == 1


def test_levels_and_slopes_are_those_of_the_numbers() -> None:
    assert starts([0.0] * 30 + [1.0] * 30, 0.1) == [0, 30]
    assert starts([0.0] * 60, 0.1) == [0]
    assert starts([0.01 * (at % 2) for at in range(40)], 0.1) == [0]
    assert slope([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 90.0]) == pytest.approx(2, abs=30)
    assert slope([0, 1, 2], [5, 5, 5]) == 0
