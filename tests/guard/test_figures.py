"""What is no noise among losses, gradient norms and loss scales; and that noise is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from preflight import guard
from preflight.guard.ring import Ring
from preflight.guard.scale import ScaleAudit
from preflight.guard.spikes import Spikes

SEEDS = range(40)


def falling(step: int) -> float:
    """A loss as it falls: fast, then slowly."""
    return 2.0 + 9.0 * math.exp(-step / 60) + 2.0 * math.pow(step + 20, -0.3)


def steady(seed: int, noise: float) -> Iterator[float]:
    """A healthy loss: each batch off by `noise`, half of it taken over from the one before."""
    draw, drift = random.Random(seed), 0.0
    for step in range(2000):
        drift = 0.5 * drift + draw.gauss(0, noise)
        yield falling(step) * math.exp(drift)


def small_batches(seed: int) -> Iterator[float]:
    """Losses of single samples: from a fifth of the usual to five times as much."""
    draw = random.Random(seed)
    return (1.2 * draw.lognormvariate(0, 0.5) for _ in range(2000))


def policy(seed: int) -> Iterator[float]:
    """A loss about zero, of either sign."""
    draw = random.Random(seed)
    return (draw.gauss(-0.01, 0.05) for _ in range(2000))


def warm_restarts(seed: int) -> Iterator[float]:
    """The loss rises by a few percent within 50 steps each time the learning rate does."""
    draw = random.Random(seed)
    for step in range(2000):
        yield (2.5 + 0.15 * min(step % 400, 50) / 50) * math.exp(draw.gauss(0, 0.02))


def norms(seed: int) -> Iterator[float]:
    """Gradient norms: high at first, rising while the learning rate does, with a heavy tail."""
    draw = random.Random(seed)
    for step in range(2000):
        level = 0.4 + 5 * math.exp(-step / 30) + 0.6 * min(step, 300) / 300
        yield level * draw.lognormvariate(0, 0.25) * (2.5 if draw.random() < 0.01 else 1)


HEALTHY: list[tuple[str, str, Callable[[int], Iterator[float]]]] = [
    ("large batches", "loss", lambda seed: steady(seed, 0.002)),
    ("usual batches", "loss", lambda seed: steady(seed, 0.03)),
    ("noisy batches", "loss", lambda seed: steady(seed, 0.2)),
    ("small batches", "loss", small_batches),
    ("policy", "loss", policy),
    ("warm restarts", "loss", warm_restarts),
    ("norms", "grad_norm", norms),
]


@pytest.mark.parametrize(
    ("name", "drawn"), [one[1:] for one in HEALTHY], ids=[one[0] for one in HEALTHY]
)
def test_noise_is_no_event(name: str, drawn: Callable[[int], Iterator[float]]) -> None:
    for seed in SEEDS:
        spikes = Spikes(name)
        events = [spikes.look(step, value) for step, value in enumerate(drawn(seed))]
        assert not any(events), (seed, next(filter(None, events)))
        assert not spikes.trouble


def looked(name: str, values: dict[int, float], seed: int = 0) -> list[guard.Event]:
    """Events of a healthy series in which these values stand."""
    drawn = steady(seed, 0.03) if name == "loss" else norms(seed)
    spikes = Spikes(name)
    found = (spikes.look(step, values.get(step, one)) for step, one in enumerate(drawn))
    return [one for one in found if one]


def test_a_spike_is_told_at_its_step_and_once() -> None:
    for seed in range(10):
        (event,) = looked("loss", {1000: 5.0, 1001: 4.5, 1002: 4.0}, seed)
        assert (event.kind, event.advice, event.step, event.value) == ("spike", "skip", 1000, 5.0)
        assert event.usual == pytest.approx(falling(1000), rel=0.05)
        assert "loss is 5, and the median of the last 256 is 2." in event.text
        (event,) = looked("grad_norm", {1000: 40.0}, seed)
        assert (event.kind, event.advice, event.name) == ("spike", "skip", "grad_norm")


def test_spikes_before_it_hide_none() -> None:
    large = {500 + 20 * one: 1e4 for one in range(10)} | {720: 5.0}
    assert [one.step for one in looked("loss", large)] == sorted(large)
    nans = dict.fromkeys(range(500, 520), math.nan) | {530: 5.0}
    assert [one.step for one in looked("loss", nans)] == [500, 502, 530]


def test_what_is_no_number_is_told_at_once_though_nothing_was_learned() -> None:
    for value in (math.nan, math.inf):
        spikes = Spikes("loss")
        events = [spikes.look(step, value) for step in range(10)]
        first, second, third, *rest = events
        assert (first and first.advice, second, third and third.advice) == ("skip", None, "stop")
        assert not any(rest)
        assert spikes.trouble == "loss was no number at step 9"
    for step in range(10, 26):
        assert spikes.trouble
        spikes.look(step, 2.0)
    assert not spikes.trouble


def test_a_level_that_stays_is_a_shift_and_then_the_usual_one() -> None:
    events = looked("loss", dict.fromkeys(range(1000, 1500), 6.0) | {1400: 30.0})
    assert [(one.kind, one.advice, one.step) for one in events] == [
        ("spike", "skip", 1000), ("shift", "stop", 1047), ("spike", "skip", 1400),
    ]  # fmt: skip


def test_ten_times_the_loss_is_beyond_a_batch() -> None:
    assert [one.advice for one in looked("loss", {1000: 30.0})] == ["stop"]


def test_a_loss_of_zero_is_no_value() -> None:
    assert looked("loss", dict.fromkeys(range(0, 2000, 3), 0.0)) == []


def scaler(seed: int, start: float, steps: int = 6000) -> Iterator[tuple[int, float]]:
    """The scale of a healthy fp16 run: gradients whose largest value scatters, a rise after 1,000
    steps without overflow."""
    draw, scale, clean = random.Random(seed), start, 0
    for step in range(steps):
        if scale * draw.lognormvariate(math.log(0.3), 0.35) > 65504:
            scale, clean = scale / 2, 0
        else:
            clean += 1
            if clean == 1000:
                scale, clean = scale * 2, 0
        yield step, scale


@pytest.mark.parametrize("start", [2.0**16, 2.0**32])
def test_the_search_for_a_scale_and_its_single_falls_are_usual(start: float) -> None:
    for seed in range(12):
        audit = ScaleAudit()
        assert not any(audit.look(*one) for one in scaler(seed, start))
        assert not audit.trouble


@pytest.mark.parametrize("scales", [[1.0] * 500, [128.0] * 500, [2.0**16] * 3000])
def test_a_scale_that_never_changes_is_none(scales: list[float]) -> None:
    audit = ScaleAudit()
    assert not any(audit.look(*one) for one in enumerate(scales))


def falls(every: int) -> list[guard.Event]:
    """From 2^16 on, after 200 steps: a fall each `every` steps, down to 2^-2."""
    audit = ScaleAudit()
    scales = [2.0**16] * 200 + [2.0 ** (16 - 1 - at // every) for at in range(18 * every)]
    return [one for step, scale in enumerate(scales) if (one := audit.look(step, scale))]


def test_a_collapse_is_told_before_nothing_is_left() -> None:
    early, late = falls(1)
    assert (early.kind, early.advice, early.step) == ("scale-collapse", "stop", 204)
    assert "from 65536 to 2048 within 5 steps; at this pace it is 1 after 11 more" in early.text
    assert (late.kind, late.step, late.value) == ("scale-collapse", 215, 1.0)


def test_a_slow_decline_is_told_with_the_time_that_is_left() -> None:
    early, late = falls(100)
    assert (early.kind, early.advice, early.step) == ("scale-decline", "watch", 600)
    assert "at this pace it is 1 after 1100 more" in early.text
    assert (late.kind, late.step) == ("scale-collapse", 1700)


@pytest.mark.parametrize("last", [0.0, math.nan])
def test_a_scale_that_is_gone_is_a_collapse_even_at_the_start(last: float) -> None:
    audit = ScaleAudit()
    events = [audit.look(*one) for one in enumerate([2.0**16, 2.0**15, last])]
    assert [one.kind for one in events if one] == ["scale-collapse"]


class Run:
    """A guard without signals, and what it said."""

    def __init__(self, folder: Path, answer: object = None) -> None:
        self.events: list[guard.Event] = []
        self.told: list[str] = []
        self.folder = folder / "left"

        def on_spike(event: guard.Event) -> object:
            self.events.append(event)
            if isinstance(answer, Exception):
                raise answer
            return answer

        self.watch = guard.install(
            on_spike=on_spike, signals=False, folder=self.folder, tell=self.told.append
        )


def test_overflows_of_fp16_are_the_scalers_business_until_it_does_not_give_way(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    with run.watch as watch:
        for step in range(16):  # the search: each overflow halves the scale
            watch.step(step, loss=2.0, grad_norm=math.inf, loss_scale=2.0 ** (32 - step))
        for step in range(16, 300):
            watch.step(step, loss=2.0, grad_norm=1.0, loss_scale=2.0**17)
        watch.step(300, loss=2.0, grad_norm=math.nan, loss_scale=2.0**17)  # hysteresis
        watch.step(301, loss=2.0, grad_norm=math.nan, loss_scale=2.0**16)
        watch.step(302, loss=2.0, grad_norm=1.0, loss_scale=2.0**16)
        assert run.events == []
        for step in range(303, 320):
            watch.step(step, loss=2.0, grad_norm=math.nan, loss_scale=2.0**16)
    assert [(one.kind, one.name, one.advice) for one in run.events] == [
        ("nonfinite", "grad_norm", "skip"), ("nonfinite", "grad_norm", "stop"),
    ]  # fmt: skip


def test_gradients_of_bf16_are_told_at_once(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with run.watch as watch:
        watch.step(1, loss=0.0, grad_norm=math.nan, loss_scale=1.0)
    assert [one.step for one in run.events] == [1]
    assert run.told == ["step 1: grad_norm is nan (advice: skip)"]


def test_the_answer_stop_ends_the_loop_without_a_save(tmp_path: Path) -> None:
    run = Run(tmp_path, answer="stop")
    with run.watch as watch:
        assert [watch.step(one, loss=2.0) for one in range(3)] == [False] * 3
        assert watch.step(3, loss=math.nan)
    left = [one.read_text() for one in run.folder.iterdir()]
    assert len(left) == 1
    assert '"ended": "asked to: on_spike: loss is nan' in left[0]


def test_a_callback_that_fails_is_told_and_training_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path, answer=KeyError("mine"))
    with run.watch as watch:
        assert not watch.step(3, loss=math.nan)
    assert "step 3: on_spike failed" in run.told[1]
    assert "KeyError: 'mine'" in run.told[1]


def test_figures_are_whatever_float_takes_and_others_are_told_once(tmp_path: Path) -> None:
    class Tensor:
        def __float__(self) -> float:
            return 2.5

    run = Run(tmp_path)
    with run.watch as watch:
        for step in range(3):
            watch.step(step, loss=Tensor(), grad_norm="1.25", lr=object())
        raised = pytest.raises(ValueError, match="x")
        with raised, watch:
            raise ValueError("x")
    (file,) = run.folder.iterdir()
    assert '"loss": 2.5, "grad_norm": 1.25}\n' in file.read_text()
    assert len(run.told) == 1
    assert "a figure of type object is left out" in run.told[0]


def test_a_disk_that_is_full_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    ring = Ring(Path("/dev/full"), 10, 0.0, told.append)
    for step in range(100):
        ring.add((step, 0.0, 2.0, None, None, None))
    assert len(told) == 1
    assert "cannot write the last steps to /dev/full" in told[0]
