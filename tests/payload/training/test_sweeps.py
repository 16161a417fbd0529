"""Sweeps, tiny: which settings there are, what each tells, and where it ends."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.autograd import DeviceType
from torch.utils._python_dispatch import TorchDispatchMode

from preflight.payload.training import (
    clipping,
    comm_hooks,
    endings,
    fits,
    launches,
    recomputing,
    sweeping,
    sweeps,
)
from preflight.payload.training.model import Decoder
from preflight.payload.training.plan import Plan, PlanError
from preflight.payload.training.sweeps import AXES, settings
from tests.payload.training.runs import Line, of, told

CPU = Plan(preset="cpu-tiny", device="cpu", ranks=2)
GPU = Plan(preset="gpu-small", device="cuda", ranks=8)


def swept(axis: str, *values: str, **asked: Any) -> list[Line]:
    return told(**{"sweep": {axis: list(values)}, "ranks": 1, "workers": 0, **asked})


def names(plan: Plan, axis: str, *values: str, cores: int = 16) -> list[str]:
    asked = Plan(**{**plan.__dict__, "sweep": {axis: list(values)}})
    return [one.name for one in settings(asked, axis, cores)]


def test_a_loader_has_no_more_workers_than_its_rank_has_cores() -> None:
    assert names(CPU, "loader", cores=2) == [
        "workers 0", "workers 1, prefetch 2", "workers 1, prefetch 4",
    ]  # fmt: skip
    found = names(GPU, "loader", cores=16)
    assert "workers 2, prefetch 4, pinned" in found
    assert "workers 2, prefetch 4" in found
    assert not any(one.startswith("workers 4") for one in found)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("plan", [CPU, GPU])
def test_what_is_there_is_one_of_the_settings_and_none_comes_twice(axis: str, plan: Plan) -> None:
    asked = Plan(**{**plan.__dict__, "sweep": {axis: []}})
    found = settings(asked, axis, 16)
    assert sum(one.base for one in found) == 1
    assert len({one.name for one in found}) == len(found) > 1
    for one in found:
        assert not one.plan.sweep
        assert not one.plan.resume


@pytest.mark.parametrize(
    ("axis", "value", "said"),
    [
        ("loader", "many", "no number from 0 on"),
        ("batch", "0", "no number from 1 on"),
        ("recompute", "3/2", "no share"),
        ("kv-heads", "3", "does not divide the 4 heads"),
        ("clip", "hard", "no policy"),
        ("comm-hook", "zip", "no hook"),
    ],
)
def test_a_value_that_is_none_is_refused(axis: str, value: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        names(CPU, axis, value)


def test_each_setting_is_trained_in_three_rounds_of_three_orders() -> None:
    lines = of(swept("loader", "0", "1x2", "1x4"), "setting")
    orders = [[one["setting"] for one in lines if one["round"] == number] for number in range(3)]
    assert orders[0] == ["workers 0", "workers 1, prefetch 2", "workers 1, prefetch 4"]
    assert orders[1] == orders[0][::-1]
    assert sorted(orders[2]) == sorted(orders[0])
    assert orders[2][0] == orders[0][1]
    for one in lines:
        assert one["tokens_per_s"] > 0
        assert one["steps"] == 7  # of twelve five warm up
        assert sum(one["shares"].values()) == pytest.approx(100.0, abs=0.1)
        assert one["host_bytes"] > 1 << 20


def test_settings_that_do_not_change_the_numbers_have_one_loss() -> None:
    losses = {one["loss"] for one in of(swept("loader", "0", "1x2"), "setting")}
    assert len(losses) == 1


def test_a_batch_grows_until_it_is_too_much_and_that_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs = fits.needs(Plan(), _shape(batch=16)).peak
    monkeypatch.setattr(sweeping, "available_bytes", lambda: int(2 * needs) + 1)
    found = of(swept("batch"), "setting", round=0)
    assert [one["setting"] for one in found] == [f"batch {1 << at}" for at in range(6)]
    assert "half of what this host has free" in found[-1]["limit"]
    assert all("tokens_per_s" in one for one in found[:-1])


def _shape(**changes: Any) -> Any:
    from preflight.payload.training.presets import chosen
    from tests.payload.training.runs import TINY

    return chosen("cpu-tiny", **{**TINY, **changes})


def test_a_batch_whose_steps_take_too_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "_SETTING_S", 0.0)
    found = of(swept("batch", "1", "2"), "setting", round=0)
    assert "would take more than 0 s" in found[-1]["limit"]


def test_a_rank_that_is_killed_is_a_failure_of_that_setting() -> None:
    found = of(swept("scaling", "1", "2", ranks=2, inject={"kill": ""}), "setting")
    assert {one["setting"] for one in found if "failed" in one} == {"1 device", "2 devices"}
    assert "ended with -9" in found[0]["failed"]
    assert not any(one["round"] for one in found)  # it is not tried again


def test_memory_that_ends_is_a_limit_and_an_error_is_none() -> None:
    line: Line = {"kind": "failed", "rank": 0, "error": "OutOfMemoryError", "text": "tried 2 GiB"}
    assert "limit" in endings.ill(line)
    assert "failed" in endings.ill({**line, "error": "ValueError"})
    killed: Line = {"kind": "died", "rank": 0, "status": -9, "oom_kills": 1}
    assert "limit" in endings.ill(killed)
    assert "failed" in endings.ill({**killed, "oom_kills": 0})


def test_the_cause_is_told_and_not_what_followed_from_it() -> None:
    lost: Line = {"kind": "failed", "rank": 0, "error": "RuntimeError",
                  "text": "gloo: Connection closed by peer"}  # fmt: skip
    died: Line = {"kind": "died", "rank": 1, "status": -9, "oom_kills": 0}
    own: Line = {"kind": "failed", "rank": 1, "error": "ValueError", "text": "no"}
    full: Line = {**own, "error": "RuntimeError", "text": "CUDA error: out of memory"}
    for lines, said in (
        ([lost, died], "rank 1 ended with -9"), ([lost, own, died], "rank 1: ValueError: no"),
        ([lost, died, full], "out of memory: CUDA error: out of memory"),
    ):  # fmt: skip
        assert str(next(iter(endings.why(lines).values()))).startswith(said)


def test_hooks_send_what_they_say_and_learn() -> None:
    found = {one["setting"]: one for one in of(swept("comm-hook", ranks=2), "setting", round=0)}
    sent = {name: one["sent_bytes"] for name, one in found.items()}
    parameters = 13408
    assert sent["none"] == 4 * parameters  # a ring of two sends each once, and back
    assert sent["fp16"] == 2 * parameters
    assert sent["topk"] == 8 * (parameters // 100)
    assert sent["topk"] < sent["powersgd"] < sent["fp16"]
    assert found["fp16"]["loss"] == pytest.approx(found["none"]["loss"], abs=1e-3)
    assert found["powersgd"]["loss"] < 4.2  # it starts at ln(64) = 4.16


def test_top_k_of_everything_is_no_hook_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm_hooks, "_SHARE", 1.0)
    found = {one["setting"]: one["loss"]
             for one in of(swept("comm-hook", "topk", ranks=2), "setting")}  # fmt: skip
    assert found["topk"] == pytest.approx(found["none"], abs=1e-4)


def test_one_bit_sends_signs_and_scales_once_it_has_averaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comm_hooks, "_PLAIN_STEPS", 4)
    lines = swept("comm-hook", "onebit", ranks=2, changes={"width": 16, "layers": 2})
    found = {one["setting"]: one for one in of(lines, "setting", round=0)}
    plain, bits = found["none"], found["onebit"]
    parameters, tensors = plain["sent_bytes"] // 4, 2 * 8 + 3
    assert bits["sent_bytes"] - 4 * tensors == pytest.approx(parameters / 8, abs=1)
    assert bits["loss"] != plain["loss"]
    assert bits["loss"] == pytest.approx(plain["loss"], abs=0.1)


def test_of_a_gradient_one_bit_keeps_sign_and_mean_magnitude() -> None:
    whole = torch.tensor([1.0, -3.0, 0.5, 0.5, 0.5, -0.5, 0.0, -0.25, -0.25, 7.0])
    sent, kept = comm_hooks.compressed(whole, [2, 5, 3])
    assert len(sent) == 3 * 4 + 2
    expected = [2.0, -2.0, 0.4, 0.4, 0.4, -0.4, 0.4, -2.5, -2.5, 2.5]
    assert kept.tolist() == pytest.approx(expected)


def test_several_buckets_of_powersgd_do_not_mix_between_ranks() -> None:
    lines = swept("comm-hook", "powersgd", ranks=2, changes={"width": 128, "hidden": 2048})
    assert not [one for one in of(lines, "setting") if "failed" in one]


def test_recomputing_gives_the_loss_of_keeping() -> None:
    lines = swept("recompute", "0", "1/2", "1", "operators", changes={"layers": 2})
    found = of(lines, "setting", round=0)
    assert [one["values"]["blocks"] for one in found] == [0, 1, 2, 2]
    assert found[-1]["setting"] == "operators"
    assert len({one["loss"] for one in found}) == 1


class Computed(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Counts operators that are really computed: a mode above it that answers hides them."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def test_by_operator_what_is_dear_is_computed_once() -> None:
    def counted(share: float, *, dear: bool) -> dict[str, int]:
        model = Decoder(_shape(layers=2), recompute=share)
        if dear:
            model.keep_dear()
        ids = torch.zeros((2, 8), dtype=torch.long)
        with Computed() as seen:
            model(ids, ids).backward()
        return dict(seen.counts)

    keeps, all_again, cheap = counted(0, dear=False), counted(1, dear=False), counted(1, dear=True)
    attention = next(one for one in keeps if one.startswith("_scaled_dot_product"))
    for name in ("mm", attention):
        assert keeps[name] == cheap[name] < all_again[name]
    assert keeps["silu"] < cheap["silu"] == all_again["silu"]


def test_where_torch_cannot_select_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recomputing, "selects", lambda: False)
    assert "operators" not in names(CPU, "recompute")
    told = sweeps.left_out(Plan(**{**CPU.__dict__, "sweep": {"recompute": []}}), "recompute", 2)
    assert told.startswith("not tried: operators, torch has selective checkpointing from 2.4")
    with pytest.raises(PlanError, match=r"from 2\.4 on"):
        names(CPU, "recompute", "operators")


def test_recomputing_half_takes_memory_between() -> None:
    shape = _shape(layers=8)
    peaks = [fits.needs(Plan(recompute=share), shape).activations for share in (0.0, 0.5, 1.0)]
    assert peaks[0] > peaks[1] > peaks[2]
    by_operator = fits.needs(Plan(recompute=1.0, operators=True), shape).activations
    assert peaks[0] > by_operator > peaks[2]


def test_what_a_step_asks_of_its_device_is_counted_once() -> None:
    lines = of(swept("kv-heads", "1", "2", changes={"heads": 2, "kv_heads": 2}), "setting")
    assert [one["round"] for one in lines if "operators" in one] == [0, 0]
    one, two = (line for line in lines if not line["round"])
    assert one["operators"] > 100
    assert 2 * one["kv_cache_bytes"] == two["kv_cache_bytes"]
    assert two["kv_cache_bytes"] == 2 * 4 * _shape().batch * _shape().length * _shape().width
    assert len({one["loss"] for one in lines if one["setting"] == "2 KV heads"}) == 1


def test_where_another_profiler_is_at_work_nothing_is_counted_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def busy(_: Any) -> None:
        raise RuntimeError("profiler is already enabled")

    monkeypatch.setattr(torch.profiler.profile, "start", busy)
    lines = of(swept("kv-heads", "1"), "setting", round=0)
    assert all("tokens_per_s" in one and "operators" not in one for one in lines)


def event(name: str, *, gpu: bool = False, span: tuple[float, float] = (0, 0)) -> Any:
    device = DeviceType.CUDA if gpu else DeviceType.CPU
    range_ = SimpleNamespace(start=span[0], end=span[1])
    return SimpleNamespace(name=name, device_type=device, time_range=range_, cpu_parent=None)


def test_kernels_that_run_at_once_are_busy_once_and_ranges_are_no_kernels() -> None:
    events = [
        event("cudaLaunchKernel"), event("cuLaunchKernelEx"), event("cudaMemcpyAsync"),
        event("Optimizer.step"), event("Optimizer.step", gpu=True, span=(0, 9e6)),
        event("gemm", gpu=True, span=(0, 2e6)), event("nccl", gpu=True, span=(1e6, 3e6)),
        event("Memcpy HtoD", gpu=True, span=(5e6, 6e6)),
    ]  # fmt: skip
    assert launches.on_gpu(events) == {"launches": 2, "busy_s": 4.0}
    assert launches.on_gpu(events[:4]) == {}


def test_what_no_kernel_runs_in_is_bound_by_launches_but_not_the_wait_for_data() -> None:
    counts = [{"counted": {"launches": 7, "busy_s": busy}} for busy in (0.2, 0.3)]
    timed: Line = {"step_s": 0.8, "data_percent": 25.0}
    assert sweeping._launched(timed, counts) == {"launches": 7, "launch_bound_percent": 50.0}
    assert sweeping._launched(timed, [{"counted": {}}, {"peak_bytes": 1}]) == {}


@pytest.mark.parametrize(
    ("text", "percent"), [("none", 0.0), ("global:0.001", 100.0), ("layer:0.001", 100.0)]
)
def test_what_is_clipped_is_counted(text: str, percent: float) -> None:
    found = of(swept("clip", text), "setting", round=0)
    (mine,) = [one for one in found if one["setting"] == text]
    assert mine["clipped_percent"] == percent


def _model(*norms: float) -> nn.Module:
    layers = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in norms)
    model = nn.Module()
    model.layers = layers
    for layer, norm in zip(layers, norms, strict=True):
        layer.weight.grad = torch.full((1, 1), norm)
    return model


def test_a_layer_is_clipped_by_itself() -> None:
    model = _model(3.0, 0.1)
    clip = clipping.policy("layer:1")
    assert float(clip(model)) == pytest.approx((9.0 + 0.01) ** 0.5)
    large, small = (float(one.weight.grad) for one in model.layers)
    assert large == pytest.approx(2**-0.5, rel=1e-4)
    assert small == pytest.approx(0.1)
    assert clip.over([3.0]) == [True]


def test_a_quantile_follows_the_norms_and_no_infinity_poisons_it() -> None:
    clip = clipping.policy("quantile:0.5")
    for at in range(16):
        clip(_model(1.0 + at / 100))
    assert clip.over([1.0] * 16) == [False] * 16  # too few to tell
    clip(_model(float("inf")))
    model = _model(50.0)
    clip(model)
    assert float(model.layers[0].weight.grad) < 1.1
    assert clip.over([1.0] * 2) == [True, True]
