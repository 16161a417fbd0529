"""Which setting is taken, and when none is."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.expect.advised import clipping, warmup
from preflight.expect.sweeps import pareto, recommended, unfit
from preflight.expect.training import training_learned
from preflight.facts.host import Host
from preflight.facts.sweeps import Rounds, Setting, Sweep
from preflight.facts.training import Layer, Training
from preflight.model import Missing


def setting(name: str, *rates: float, base: bool = False, **told: Any) -> Setting:
    low, *_, high = sorted(rates) * 2 if len(rates) == 1 else sorted(rates)
    middle = sorted(rates)[len(rates) // 2]
    return Setting(name, base=base, tokens_per_s=Rounds(len(rates), middle, low, high), **told)


def test_the_faster_is_taken_with_its_gain_and_the_spread() -> None:
    sweep = Sweep("loader", (
        setting("a", 100, 101, 102, base=True, host_bytes=1), setting("b", 150, 151, 152,
                                                                      host_bytes=2),
    ))  # fmt: skip
    found = recommended(sweep)
    assert found.name == "b"
    assert found.gain_percent == pytest.approx(49.5, abs=0.1)
    assert "+49.5 % tokens/s against a, spread of the rounds 2.0 %" in found.why


def test_of_two_that_are_as_fast_the_cheaper() -> None:
    sweep = Sweep("loader", (
        setting("a", 100, 101, 102, base=True, host_bytes=1),
        setting("b", 150, 151, 152, host_bytes=3), setting("c", 149, 150, 152, host_bytes=2),
    ))  # fmt: skip
    assert recommended(sweep).name == "c"


@pytest.mark.parametrize("rates", [(101, 102, 103), (90, 105, 106)])
def test_none_where_the_gain_is_within_the_spread(rates: tuple[float, ...]) -> None:
    base = setting("a", 100, 101, 102, base=True)
    found = recommended(Sweep("loader", (base, setting("b", *rates))))
    assert (found.name, found.untold) == ("", False)
    assert found.why.startswith("no setting is faster than a beyond the spread of")


@pytest.mark.parametrize("axis", ["loader", "length", "scaling", "batch"])
@pytest.mark.parametrize("rates", [(90, 130, 131), (99, 150, 200), (40, 90, 145)])
def test_rounds_that_differ_too_much_tell_nothing(axis: str, rates: tuple[float, ...]) -> None:
    values = {"length": 2, "devices": 2, "batch": 2}
    base = setting("a", 100, 101, 102, base=True, values=dict.fromkeys(values, 1))
    found = recommended(Sweep(axis, (base, setting("b", *rates, values=values))))
    assert (found.name, found.untold) == ("", True)
    assert found.why.startswith("the rounds differ by ")
    assert "an idle machine, more --steps" in found.why


@pytest.mark.parametrize("axis", ["loader", "length", "batch"])
def test_what_is_slower_in_every_round_is_told_however_far_they_are_apart(axis: str) -> None:
    base = setting("a", 127, 131, 144, base=True, values={"length": 1})
    slow = setting("b", 30, 40, 50, values={"length": 2})
    found = recommended(Sweep(axis, (slow, base)))
    assert (found.name, found.untold) == ("", False)
    assert "no setting is faster than a" in found.why or "every longer one is slower" in found.why


def lengths(*rates: float, limit: str = "") -> Sweep:
    found = tuple(setting(f"length {64 << at}", rate, rate + 1, values={"length": 64 << at},
                          base=not at) for at, rate in enumerate(rates))  # fmt: skip
    last = (Setting("length 9999", {"length": 9999}, limit=limit),) if limit else ()
    return Sweep("length", found + last)


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        (lengths(100), "no longer one was trained"),
        (lengths(100, limit="no room"), "no longer one was trained; length 9999: no room"),
        (lengths(100, 70, 40), "every longer one is slower: length 128 by 29.7 %, spread 1.4 %"),
    ],
)
def test_why_no_longer_one_is_taken(sweep: Sweep, said: str) -> None:
    found = recommended(sweep)
    assert (found.name, found.why) == ("", said)


def test_what_cannot_be_trained_is_no_base() -> None:
    base = Setting("batch 64", {"batch": 64}, base=True, limit="out of memory")
    found = recommended(Sweep("batch", (setting("batch 32", 10, values={"batch": 32}), base)))
    assert found.name == "batch 32"
    assert "what is there cannot be trained (out of memory)" in found.why


def test_a_sweep_that_ended_early_recommends_nothing() -> None:
    assert recommended(Sweep("loader", (setting("b", 200, 201),))).name == ""
    once = (setting("a", 100, base=True), setting("b", 200))
    assert recommended(Sweep("loader", once)).name == ""


def test_nothing_is_said_where_nothing_was_trained() -> None:
    found = recommended(Sweep("loader", (Setting("a", base=True, limit="out of memory"),)))
    assert (found.name, found.why) == ("", "no setting could be trained")


def test_the_smaller_batch_of_those_that_are_as_fast() -> None:
    sweep = Sweep("batch", tuple(
        setting(f"batch {size}", rate, rate + 1, values={"batch": size}, base=size == 8)
        for size, rate in ((8, 100), (16, 180), (32, 200), (64, 201))
    ))  # fmt: skip
    assert recommended(sweep).name == "batch 32"


def test_the_longest_that_costs_nothing() -> None:
    sweep = Sweep("length", tuple(
        setting(f"length {size}", rate, rate + 2, values={"length": size}, base=size == 128)
        for size, rate in ((64, 110), (128, 100), (256, 99), (512, 60))
    ))  # fmt: skip
    assert recommended(sweep).name == "length 256"


def test_as_many_devices_as_are_worth_it() -> None:
    sweep = Sweep("scaling", tuple(
        setting(f"{count} devices", rate, values={"devices": count}, base=count == 8)
        for count, rate in ((1, 100), (2, 196), (4, 380), (8, 500))
    ))  # fmt: skip
    found = recommended(sweep)
    assert found.name == "4 devices"
    assert "8 devices 0.62" in found.why


def test_a_hook_that_learns_less_is_not_taken() -> None:
    sweep = Sweep("comm-hook", (
        setting("none", 100, 101, base=True, loss=3.0, loss_noise=0.01, sent_bytes=100),
        setting("fp16", 130, 131, loss=3.001, sent_bytes=50),
        setting("topk", 200, 201, loss=3.4, sent_bytes=2),
    ))  # fmt: skip
    assert recommended(sweep).name == "fp16"
    assert unfit(sweep) == {"topk": "the loss is worse"}


def test_a_policy_is_taken_for_its_noise_and_not_where_it_clips_often() -> None:
    about: dict[str, Any] = {"loss": 3.0}
    sweep = Sweep("clip", (
        setting("global:1", 100, base=True, loss_noise=0.1, clipped_percent=30.0, **about),
        setting("global:0.1", 100, loss_noise=0.01, clipped_percent=100.0, **about),
        setting("quantile:0.9", 100, loss_noise=0.05, clipped_percent=10.0, **about),
    ))  # fmt: skip
    found = recommended(sweep)
    assert found.name == "quantile:0.9"
    assert "30 % of the steps are clipped now: above 20 % the learning rate" in found.why
    assert unfit(sweep) == {"global:1": "clips often", "global:0.1": "clips often"}


def test_why_a_policy_is_not_taken() -> None:
    about: dict[str, Any] = {"loss_noise": 0.1}
    sweep = Sweep("clip", (
        setting("none", 100, 100, base=True, loss=3.0, clipped_percent=0.0, **about),
        setting("global:0.01", 100, 100, loss=3.5, clipped_percent=100.0, **about),
        setting("quantile:0.9", 100, 100, loss=3.0, clipped_percent=0.0, **about),
    ))  # fmt: skip
    assert unfit(sweep) == {
        "global:0.01": "clips often, the loss is worse",
        "quantile:0.9": "clipped nothing in so few steps",
    }


def test_a_threshold_that_is_too_low_is_not_the_learning_rates_fault() -> None:
    base = setting("global:0.01", 100, base=True, loss=3.0, loss_noise=0.1, clipped_percent=100.0,
                   norm=0.3)  # fmt: skip
    why = recommended(Sweep("clip", (base,))).why
    assert "the threshold is too low for norms of about 0.3: global:1" in why


def test_what_clips_in_a_run_and_why() -> None:
    layers = (Layer("a", 0.18, 0.2), Layer("b", 0.24, 0.3))
    run = Training(clip="global:0.01", clipped_percent=100.0, layers=layers)
    assert "too low for norms of about 0.3" in clipping(run)
    hooked = Training(clip="global:1", clipped_percent=60.0, layers=layers, comm_hook="topk")
    assert "with topk a gradient holds what was held back" in clipping(hooked)
    few = Training(
        clip="quantile:0.9", steps_asked=12, clipped_percent=Missing("not-applicable", "")
    )
    assert clipping(few) == "quantile:0.9 clipped nothing: it looks at 16 steps first, of 12"


def test_a_sweep_of_one_round_does_not_know_how_far_rounds_differ() -> None:
    once = (setting("a", 100, base=True), setting("b", 200))
    assert recommended(Sweep("loader", once)).why.startswith("the sweep ended before its second")


def test_hooks_that_hold_back_learn_later_and_are_held_to_it() -> None:
    def least(hook: str, steps: int) -> Any:
        run = Training(comm_hook=hook, steps_asked=steps, device="cpu")
        return training_learned(Host("n", training=run), None)

    assert least("topk", 40).value == pytest.approx(33.3)
    assert "40 of the 60 steps that topk takes" in least("topk", 40).formula
    assert least("powersgd", 100).value == least("none", 40).value == 50.0
    assert isinstance(least("topk", 12), Missing)


def test_ways_between_memory_and_speed() -> None:
    sweep = Sweep("recompute", (
        setting("0", 100, peak_bytes=100, base=True), setting("8", 90, peak_bytes=60),
        setting("16", 80, peak_bytes=70), setting("32", 70, peak_bytes=20),
    ))  # fmt: skip
    assert pareto(sweep) == {"0", "8", "32"}


@pytest.mark.parametrize(("beta2", "steps"), [(0.95, 40), (0.999, 2000)])
def test_warm_up_by_the_second_moment(beta2: float, steps: int) -> None:
    assert warmup(Training(beta2=beta2, noise_falls_until=0)).startswith(f"{steps} steps: 2 / (1")


def test_warm_up_is_longer_while_the_noise_falls() -> None:
    told = warmup(Training(beta2=0.95, noise_falls_until=60))
    assert told.startswith("60 steps")
    assert "falls until step 60" in told
    assert warmup(Training()) == ""


def test_clipping_says_its_norms_by_layer() -> None:
    layers = (Layer("embedding", 0.2, 0.4), Layer("head", 0.5, 0.6))
    told = clipping(Training(clip="global:1", clipped_percent=25.0, layers=layers))
    assert "25 % of the steps: above 20 % the learning rate is too high" in told
    assert "0.4 (embedding) to 1 (head)" in told
    assert clipping(Training()) == ""
