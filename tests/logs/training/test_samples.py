"""Real logs: values that stand in particular lines, as a person reads them."""

from __future__ import annotations

import math

import pytest

from tests.logs.training.reading import at, is_row, of_sample, only

SERIES: dict[str, tuple[str, int, int, dict[str, float], dict[str, float]]] = {
    # name -> style, rows, line of the first, values of the first row and of the last
    "megatron_ds_bloom176b_lm_loss_spike": (
        "megatron", 11, 1, {"step": 31214, "loss": 2.198845, "step_s": 106.46, "grad_norm": 0.242},
        {"step": 31251, "tflops_gpu": 147.75},
    ),
    "megatron_ds_104b_divergence_grad_spike": (
        "megatron", 5, 1, {"step": 6900, "step_s": 18.4956, "lr": 6e-5, "loss_scale": 4096},
        {"step": 6940, "loss": 10.23865},
    ),
    "megatron_ds_104b_overflow_after_resume": (
        "megatron", 9, 1, {"step": 17060, "tokens": 16643457024, "samples_per_s": 0.004},
        {"step": 17068, "loss_scale": 32768},
    ),
    "megatron_ds_gpt2_loss_jump_lossscale_minus1": (
        "megatron", 49, 21, {"step": 1, "loss": 12.44238, "loss_scale": -1, "batch_samples": 1024},
        {"step": 49, "loss": 7.747268},
    ),
    "megatron_ds_2node_short_ok": (
        "megatron", 5, 48, {"step": 1, "loss": 11.00492, "step_s": 76.0153, "samples_per_s": 26.942,
                            "time_s": 1701247947.711},
        {"step": 5, "step_s": 74.4949, "RunningAvgSamplesPerSec": 311.4153},
    ),
    "deepspeed_fp16_17_startup_skips_ok": (
        "deepspeed", 4, 13, {"step": 10, "skipped": 10, "samples_per_s": 222.88787},
        {"step": 40, "skipped": 17},
    ),
    "hf_ds_zero3_t5_overflow_in_progress_bars": (
        "tqdm", 10, 13, {"step": 0, "elapsed_s": 0}, {"step": 176, "elapsed_s": 78},
    ),
    "fsdp_llama3_8b_p5_first_batches": (
        "aws-fsdp", 6, 17, {"step": 0, "loss": 11.61653, "samples_per_s": 4.88},
        {"step": 5, "loss": 14.34635, "samples_per_s": 8.98},
    ),
    "torchtitan_h100_1gpu_short_excerpt": (
        "torchtitan", 2, 5, {"step": 1, "loss": 7.61715, "tokens_per_s_gpu": 63, "mfu_percent": 0},
        {"step": 30, "tokens_per_s_gpu": 80422, "memory_bytes": 0.72 * 2**30, "mfu_percent": 2.38},
    ),
    "fairseq_roberta_ok": (
        "fairseq", 218, 14, {"step": 11, "loss": 18.137 * math.log(2), "elapsed_s": 28},
        {"step": 2176, "grad_norm": 1.546, "loss_scale": 1024},
    ),
    "nanogpt_speedrun_multi_run_concat": (
        "nanogpt-speedrun", 925, 1, {"step": 0, "val_loss": 10.82584, "elapsed_s": 0},
        {"step": 3200, "val_loss": 3.27782, "step_s": 0.2883},
    ),
    "nanogpt_speedrun_step_avg_nan_ok": (
        "nanogpt-speedrun", 700, 1, {"step": 0, "val_loss": 16.0104, "elapsed_s": 0.479},
        {"step": 694, "loss": 3.851, "elapsed_s": 97.236},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SERIES))
def test_steps_of_a_real_log(name: str) -> None:
    style, rows, line, first, last = SERIES[name]
    series = only(of_sample(name))
    assert (series.style, len(series.line), series.line[0]) == (style, rows, line)
    is_row(series, 0, **first)
    is_row(series, rows - 1, **last)


def test_what_is_no_number_is_counted_and_no_value() -> None:
    series = only(of_sample("hf_trainer_gradnorm_nan_but_completed"))
    assert series.style == "hf-trainer"
    assert series.columns["grad_norm"].bad == {0: 1} and series.columns["val_loss"].bad == {0: 1}
    assert at(series, 0)["loss"] == 26.2043
    events = of_sample("hf_trainer_gradnorm_nan_but_completed").events
    assert [(one.kind, one.line) for one in events] == [
        ("ended", 16), ("ended", 17), ("eval-ends", 21), ("ended", 27),
    ]  # fmt: skip


def test_a_mean_so_far_is_told_as_one() -> None:
    series = only(of_sample("nanogpt_speedrun_step_avg_nan_ok"))
    assert series.columns["step_s"].way == "mean-so-far"
    assert series.columns["elapsed_s"].way == "now" and series.total_steps == 5100


EVENTS = {
    "dataloader_shm_bus_error": {"error": 6},
    "torch_cuda_error_in_nccl_watchdog_a100": {"error": 1},
    "deepspeed_fp16_17_startup_skips_ok": {"overflow": 17},
    "hf_ds_zero3_t5_overflow_in_progress_bars": {"started": 1, "overflow": 9},
    "megatron_ds_104b_overflow_after_resume": {"overflow": 6},
    "megatron_ds_2node_short_ok": {"started": 1, "ended": 1, "save-begins": 1},
    "fairseq_roberta_ok": {"overflow": 5, "ended": 1},
}


@pytest.mark.parametrize("name", list(EVENTS))
def test_what_else_a_real_log_says(name: str) -> None:
    counts: dict[str, int] = {}
    for one in of_sample(name).events:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    assert {kind: counts.get(kind, 0) for kind in EVENTS[name]} == EVENTS[name]


def test_an_event_stands_at_its_step_with_its_values() -> None:
    second = of_sample("hf_ds_zero3_t5_overflow_in_progress_bars").events[2]
    assert (second.kind, second.line, second.step) == ("overflow", 14, 1)
    assert second.values == {"scale": 65536, "to": 32768}


def test_what_a_run_says_of_itself() -> None:
    assert of_sample("fsdp_llama3_8b_p5_first_batches").told == {
        "nodes": "4", "layers": "32", "sequence": "8192", "total_steps": "100",
        "params": "7392727040", "nccl": "2.26.2",
    }  # fmt: skip
    assert of_sample("torchtitan_h100_1gpu_short_excerpt").told == {
        "gpu": "NVIDIA H100 80GB HBM3", "params": "31,987,968",
    }  # fmt: skip
