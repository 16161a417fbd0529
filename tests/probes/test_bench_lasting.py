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
from preflight.reports.bench_lasting import lasting_tables
from tests.conftest import sample

SOUND, SLOWED = (sample(f"nccl_bench/lasting_{one}_h1.jsonl") for one in ("sound", "slowed"))
Line = dict[str, Any]


def stood_still(seconds: float, *at: int, calls: int = 50, **plan: Any) -> str:
    """A run of 40 windows of a second each, in some of which a call took so long."""
    text = written([1e6 / calls] * 40, **plan)
    lines = [json.loads(one) for one in text.splitlines()]
    for one in lines:
        if one["kind"] == "window":
            one |= {"n": calls, "sum_s": 1.0, "longest": [[one["at_s"] + 0.1, 1 / calls]]}
            if one["window"] in at:
                one |= {"longest": [[one["at_s"] + 0.2, seconds], *one["longest"]],
                        "sum_s": 1.0 + seconds, "most_us": 1e6 * seconds,
                        **({"median_us": 1e6 * seconds} if calls == 1 else {})}  # fmt: skip
    return "".join(f"{json.dumps(one)}\n" for one in lines)


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


def judged(text: str, check: str = "collectives.steady") -> Result:
    found = examine_one_of_many("h1", [Raw("h1", "nccl-bench", stdout=text)],
                                load(("collectives",)).checks)  # fmt: skip
    (one,) = [one for one in found.report.results if one.check == check]
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
    assert (found.status, found.subject) == (Status.FAIL, f"all hosts {run.name}")
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


@pytest.mark.parametrize(
    ("seconds", "at", "status"),
    [
        (6.0, (11,), Status.FAIL),
        (1.5, (30,), Status.WARN),
        (1.1, (3, 9, 21, 33), Status.FAIL),
        (0.9, tuple(range(0, 40, 2)), Status.PASS),  # hiccups
        (0.0, (), Status.PASS),
    ],
)
@pytest.mark.parametrize("calls", [50, 1])
def test_calls_that_stand_still_for_seconds_are_judged_and_short_ones_are_not(
    seconds: float, at: tuple[int, ...], status: Status, calls: int
) -> None:
    text = stood_still(seconds + (calls == 1), *at, calls=calls)
    far = status if calls > 1 or seconds >= 2 else Status.PASS  # a call takes a second anyhow
    assert judged(text, "collectives.stalls").status is far
    assert judged(text).status is Status.PASS  # medians do not see it


def test_a_stall_is_shown_with_when_and_what_it_cost() -> None:
    run = run_of(stood_still(6.0, 11))
    assert [(one.at_s, round(one.lasts_s, 1)) for one in run.stalls] == [(11.2, 6.0)]
    assert run.longest == (11.2, 6.0)
    assert run.lost_percent == pytest.approx(15, abs=0.1)
    text = stood_still(6.0, 11)
    (table,) = lasting_tables(assemble("h1", [Raw("h1", "nccl-bench", stdout=text)]).host)
    shown = {one["measure"]: one["value"] for one in table["rows"]}
    assert shown["stalls"] == "1: 5.98 s after 11.2 s"
    assert judged(text, "collectives.stalls").reason == "stood still 5.98 s after 11.2 s"
    assert shown["longest"] == "a call of 6 s after 11.2 s"


def test_on_gpus_five_seconds_are_too_many_however_long_the_run() -> None:
    long = [json.loads(one) for one in stood_still(6.0, 11, device="cuda").splitlines()]
    for one in long:
        for key in ("at_s", "lasts_s"):
            if key in one:
                one[key] *= 100
    text = "".join(f"{json.dumps(one)}\n" for one in long)
    assert judged(text, "collectives.stalls").status is Status.WARN
    assert judged(text.replace('"cuda"', '"cpu"'), "collectives.stalls").status is Status.PASS


def test_a_level_that_is_slow_from_then_on_is_no_stall() -> None:
    text = written([1e4] * 20 + [4e6] * 20)
    assert judged(text, "collectives.stalls").status is Status.PASS


def test_of_a_bench_that_tells_but_its_longest_call_stalls_are_seen_too() -> None:
    lines = [json.loads(one) for one in written([1000.0] * 20).splitlines()]
    next(one for one in lines if one.get("window") == 7)["most_us"] = 6e6
    found = judged("".join(f"{json.dumps(one)}\n" for one in lines), "collectives.stalls")
    assert found.status is Status.FAIL
    assert judged(SOUND, "collectives.stalls").status is Status.PASS
