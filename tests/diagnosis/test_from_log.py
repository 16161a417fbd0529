"""Logs of runs with one fault each, and of many that are sound: the right cause, or none."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.series.shape import period, shift, slow
from preflight.diagnosis.series.times import times_of, undone
from preflight.diagnosis.step_time.from_log import reading
from preflight.diagnosis.step_time.goodput import goodput_of
from preflight.diagnosis.step_time.log_run import run_of
from preflight.logs.training.log import read
from preflight.model import Finding

Seconds = Callable[[int, random.Random], float]


def usual(step: int, chance: random.Random) -> float:
    """1.2 s with 2 % of noise and a long tail."""
    return 1.2 * chance.lognormvariate(0, 0.02) + (0.1 if chance.random() < 0.01 else 0)


def megatron(
    seconds: Seconds = usual, *, steps: int = 300, seed: int = 0, clock: bool = True,
    more: Callable[[int, random.Random], list[str]] = lambda step, chance: [],
) -> str:  # fmt: skip
    """A log with a line for each step, and lines between them; its clock has the time of both."""
    chance = random.Random(seed)
    now, lines = 1_700_000_000.0, []
    for step in range(1, steps + 1):
        took = seconds(step, chance)
        now += took
        stamp = (
            f" [2026-01-02 {int(now) // 3600 % 24:02}:{int(now) // 60 % 60:02}:{now % 60:09.6f}]"
        )
        lines += more(step, chance)
        lines.append(
            f"{stamp if clock else ''} iteration {step:8}/  100000 | consumed samples: "
            f"{step * 256:12} | elapsed time per iteration (ms): {took * 1e3:.1f} | learning rate: "
            f"1.0E-04 | global batch size:   256 | lm loss: {9 / step**0.3:.6E} | "
            "loss scale: 1.0 | grad norm: 0.731 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
    return "\n".join(lines) + "\n"


def judged(folder: Path, text: str) -> list[Finding]:
    path = folder / "train.log"
    path.write_text(text)
    made = reading({"log": [read(path, lambda _: None)]}, Asked())
    assert made is not None
    return [one for one in findings([made]) if one.finding not in ("healthy", "step.unknown")]


def causes(folder: Path, text: str) -> list[str]:
    return [one.finding for one in judged(folder, text)]


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.05])
def test_nothing_is_found_in_sound_runs(tmp_path: Path, noise: float) -> None:
    for seed in range(40):
        text = megatron(lambda step, chance: 1.2 * chance.lognormvariate(0, noise), seed=seed)
        assert causes(tmp_path, text) == [], seed


def test_a_few_slow_steps_are_no_cause(tmp_path: Path) -> None:
    for seed in range(20):
        text = megatron(
            lambda step, chance: 1.2 * (3.0 if chance.random() < 0.005 else 1.0), seed=seed
        )
        assert causes(tmp_path, text) == [], seed


def test_slow_first_steps_are_the_start(tmp_path: Path) -> None:
    assert causes(tmp_path, megatron(lambda s, c: 40.0 if s < 3 else usual(s, c))) == []


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_every_few_steps_is_the_loader(tmp_path: Path, workers: int) -> None:
    text = megatron(lambda s, c: usual(s, c) + (1.5 if s % workers == 0 else 0), steps=500)
    (found, *_) = judged(tmp_path, text)
    assert found.finding == "data-wait-periodic"
    assert f"every {workers} steps" in found.text
    assert (found.status.value, found.confidence) == ("WARN", "low")  # a save may look the same
    (sure, *_) = judged(tmp_path, f"num_workers: {workers}\n{text}")
    assert sure.confidence == "high"
    assert sure.status.value == ("FAIL" if workers <= 4 else "WARN")  # by its share of the time


@pytest.mark.parametrize("every", [25, 50, 64])
def test_what_a_script_does_every_fifty_steps_is_no_loader(tmp_path: Path, every: int) -> None:
    text = megatron(lambda s, c: usual(s, c) + (20 if s % every == 0 else 0), steps=500)
    (found, *_) = judged(tmp_path, text)
    assert found.finding == "irregular" and f"every {every} steps" in found.text


def test_slow_steps_at_random_have_no_period() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        steps = sorted(chance.sample(range(1000), chance.randint(5, 60)))
        assert period([float(one) for one in steps]) is None, seed


def test_saving_within_steps_is_told_with_its_lines(tmp_path: Path) -> None:
    def saves(step: int, chance: random.Random) -> list[str]:
        return [f"saving checkpoint at iteration {step:7} to /ckpt"] if step % 50 == 0 else []

    text = megatron(lambda s, c: usual(s, c) + (20 if s % 50 == 0 else 0), more=saves)
    (found, *_) = judged(tmp_path, text)
    assert found.finding == "checkpoint-stall"
    assert found.share is not None and 0.2 < found.share < 0.3
    assert found.evidence and all(one.line for one in found.evidence)


@pytest.mark.parametrize("factor", [1.06, 1.3, 2.0])
def test_slower_from_a_step_on_is_told_with_when(tmp_path: Path, factor: float) -> None:
    for seed in range(5):
        text = megatron(lambda s, c: usual(s, c) * (factor if s > 180 else 1), seed=seed)
        (found,) = judged(tmp_path, text)
        assert found.finding == "drift"
        at = int(found.text.rpartition("since step ")[2].split(" ")[0])
        assert 170 < at < 190
        assert found.share == pytest.approx(1 - 1 / factor, abs=0.02)


def test_growing_all_the_time_is_told_as_that(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, megatron(lambda s, c: usual(s, c) * (1 + s / 100)))
    assert found.finding == "drift" and "grew steadily" in found.text


def test_a_day_that_is_a_little_slower_is_normal(tmp_path: Path) -> None:
    assert causes(tmp_path, megatron(lambda s, c: usual(s, c) * (1.02 if s > 150 else 1))) == []


def test_a_batch_that_grows_is_no_drift(tmp_path: Path) -> None:
    text = megatron(lambda s, c: usual(s, c) * (2 if s > 150 else 1))
    head, tail = text.split("iteration      151/", 1)
    tail = tail.replace("global batch size:   256", "global batch size:   512")
    assert causes(tmp_path, f"{head}iteration      151/{tail}") == []


def timers(lines: dict[str, tuple[float, float]]) -> Callable[[int, random.Random], list[str]]:
    def told(step: int, chance: random.Random) -> list[str]:
        rows = [f"    {name} ...: ({low:.2f}, {high:.2f})" for name, (low, high) in lines.items()]
        return ["(min, max) time across ranks (ms):", *rows] if step > 1 else []

    return told


def test_megatrons_timers_tell_data_and_communication(tmp_path: Path) -> None:
    data = judged(tmp_path, megatron(more=timers({"batch-generator": (380.0, 420.0)})))
    assert data[0].finding == "data-wait" and data[0].share == pytest.approx(0.35, abs=0.03)
    sent = judged(tmp_path, megatron(more=timers({"all-grads-sync": (400.0, 430.0)})))
    assert sent[0].finding == "exposed-communication"


def test_a_gap_between_ranks_names_nobody(tmp_path: Path) -> None:
    found = judged(tmp_path, megatron(more=timers({"forward-compute": (300.0, 520.0)})))
    assert [one.finding for one in found] == ["imbalance"]
    assert found[0].subject == "" and found[0].confidence == "low"


def by_rank(rank_s: Seconds, ranks: int = 8, seed: int = 0) -> str:
    """Ten steps of 1 s with the time of each rank in one timer."""

    def told(step: int, chance: random.Random) -> list[str]:
        rows = [f"     rank {one:2}: {rank_s(one, chance) * 1e3:.2f}" for one in range(ranks)]
        return ["times across ranks (ms):", "  forward-compute:", *rows]

    return megatron(lambda step, chance: 1.0, steps=13, seed=seed, more=told)


@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_a_rank_that_is_the_slowest_by_luck_is_not_named(tmp_path: Path, ranks: int) -> None:
    for seed in range(60):
        text = by_rank(lambda rank, chance: 0.8 * chance.lognormvariate(0, 0.15), ranks, seed)
        found = judged(tmp_path, text)
        assert {one.finding for one in found} <= {"imbalance"}, seed
        assert not any(one.subject for one in found), seed


def test_a_rank_that_is_always_the_slowest_is_named(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, by_rank(
        lambda rank, chance: 0.6 * chance.lognormvariate(0, 0.02) * (1.35 if rank == 3 else 1)
    ))  # fmt: skip
    assert (found.finding, found.subject) == ("straggler", "rank 3")
    assert found.share == pytest.approx(0.21, abs=0.03)


def reports(last: Callable[[int, random.Random], int], count: int) -> Callable[..., list[str]]:
    """Lines of Megatron's detector after each step: rank `last` is the slowest."""

    def told(step: int, chance: random.Random) -> list[str]:
        rank = last(step, chance)
        line = f" MnRtt/Rnk: 0.80s/{(rank + 1) % 4} | MxRtt/Rnk: 1.00s/{rank} |"
        return [line] if 1 < step <= count + 1 else []

    return told


def test_a_detectors_few_reports_name_nobody_by_luck(tmp_path: Path) -> None:
    for count in (3, 5):
        for seed in range(20):
            more = reports(lambda step, chance: chance.randrange(4), count)
            found = judged(tmp_path, megatron(seed=seed, steps=40, more=more))
            assert [one.finding for one in found] == ["imbalance"], (count, seed)
            assert found[0].subject == ""


def test_a_detectors_many_reports_name_the_rank(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, megatron(more=reports(lambda step, chance: 3, 10)))
    assert (found.finding, found.subject) == ("straggler", "rank 3")


def test_a_loss_that_is_no_number_is_told(tmp_path: Path) -> None:
    text = megatron(steps=60)
    dead = text.splitlines()
    dead[40:] = [line.replace("grad norm: 0.731", "grad norm: nan") for line in dead[40:]]
    (found,) = judged(tmp_path, "\n".join(dead))
    assert found.finding == "not-training" and "line 41" in found.text


def test_means_since_the_start_are_undone() -> None:
    own = [1.0] * 20 + [3.0] * 20
    means = [sum(own[: at + 1]) / (at + 1) for at in range(40)]
    found = undone(means, [float("nan")] + [1.0] * 39, [0])
    assert found[1:] == pytest.approx(own[1:])


def test_what_is_slow_sticks_out_of_its_surroundings() -> None:
    values = [1.0 + at / 1000 for at in range(500)]
    values[77] = values[400] = 4.0
    assert slow(values) == [77, 400]


def test_a_stretch_in_the_middle_is_no_lasting_change() -> None:
    chance = random.Random(1)
    values = [chance.gauss(1.3 if 100 <= at < 160 else 1.0, 0.02) for at in range(400)]
    assert shift(values) is None


def test_goodput_of_a_run_with_a_restart(tmp_path: Path) -> None:
    first = megatron(steps=100).splitlines()
    path = tmp_path / "train.log"
    path.write_text("\n".join([*first, *first[60:], ""]))
    log = read(path, lambda _: None)
    run = run_of(log)
    assert run is not None and len(times_of(log.series[0]).begins) == 2
    parts = {one.name: one.share for one in goodput_of([run])}
    assert parts.get("repeated lost steps", 0) == pytest.approx(0.28, abs=0.03)


def goodput_shares(folder: Path, text: str) -> dict[str, float]:
    path = folder / "train.log"
    path.write_text(text)
    log = read(path, lambda _: None)
    run = run_of(log)
    assert run is not None
    return {one.name: one.share for one in goodput_of([run])}


def test_a_stop_within_a_step_is_no_training(tmp_path: Path) -> None:
    parts = goodput_shares(tmp_path, megatron(lambda s, c: 540.0 if s == 150 else usual(s, c)))
    assert parts["stood still"] == pytest.approx(0.6, abs=0.02)
    assert parts["trained"] == pytest.approx(0.4, abs=0.02)


def test_a_save_within_a_step_is_no_training(tmp_path: Path) -> None:
    def saves(step: int, chance: random.Random) -> list[str]:
        return [f"saving checkpoint at iteration {step:7} to /ckpt"] if step % 50 == 0 else []

    parts = goodput_shares(
        tmp_path, megatron(lambda s, c: usual(s, c) + (20 if s % 50 == 0 else 0), more=saves)
    )
    assert parts["saved"] == pytest.approx(120 / (120 + 360), abs=0.02)


def test_goodput_over_the_logs_of_a_run_that_was_restarted(tmp_path: Path) -> None:
    """Each start has a log of its own; the night between them trained nothing."""
    text = megatron(steps=100)
    later = "\n".join(text.splitlines()[60:]).replace("[2026-01-02", "[2026-01-03")
    runs = []
    for name, told in (("b.log", later), ("a.log", text)):
        (tmp_path / name).write_text(told + "\n")
        run = run_of(read(tmp_path / name, lambda _: None))
        assert run is not None
        runs.append(run)
    parts = {one.name: one.seconds for one in goodput_of(runs)}
    assert parts["restarted"] == pytest.approx(86_400 - 40 * 1.2, rel=0.01)
    assert parts["repeated lost steps"] == pytest.approx(39 * 1.2, rel=0.1)
    assert parts["trained"] == pytest.approx(99 * 1.2, rel=0.1)
    assert goodput_of([runs[1], runs[1]]) == ()  # at once: two ranks' logs are no two starts


def told_of_an_error(folder: Path, *between: str) -> set[str]:
    from tests.diagnosis.test_samples_diagnosed import found_in

    lines = megatron(steps=120).splitlines()
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    path = folder / "train.log"
    path.write_text("\n".join([*lines[:60], error, *between, *lines[60:]]) + "\n")
    return {one.finding for one in found_in(path)}


def test_an_error_that_steps_follow_ended_nothing(tmp_path: Path) -> None:
    assert "crash" not in told_of_an_error(tmp_path, "skipping this batch")


def test_an_error_after_which_the_run_is_started_anew_ended_it(tmp_path: Path) -> None:
    loaded = "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 60"
    assert "crash" in told_of_an_error(tmp_path, loaded)


def test_evaluation_is_neither_a_stop_nor_unexplained(tmp_path: Path) -> None:
    """nanoGPT counts it into the step, and tells it by its loss alone."""
    from tests.diagnosis.test_samples_diagnosed import found_in

    lines = []
    for step in range(1, 601):
        if step % 100 == 0:
            lines.append(f"step {step}: train loss 3.1000, val loss 3.2000")
        took = 90_000 if step % 100 == 0 else 500
        lines.append(f"iter {step}: loss 3.{step:04}, time {took + step % 7:.2f}ms, mfu 41.20%")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert {one.status.value for one in found_in(tmp_path / "train.log")} <= {"PASS", "ERROR"}
