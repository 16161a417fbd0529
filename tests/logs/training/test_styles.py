"""Every style of step lines: what one of them tells, in the units of the vocabulary."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.logs.training.reading import is_row, only, read
from tests.logs.training.styles_text import LINES, STEPS, written

#: name -> style and values of the row of step 7, beside its loss of 2.825.
TOLD: dict[str, tuple[str, dict[str, float]]] = {
    "hf-trainer 4": ("hf-trainer", {"grad_norm": 1.07, "lr": 1.8e-5, "epoch": 0.31, "elapsed_s": 7,
                                    "step_s": 1.02}),
    "hf-trainer 5": ("hf-trainer", {"grad_norm": 1.07, "lr": 1.8e-5, "epoch": 0.07}),
    "megatron": ("megatron", {
        "step_s": 1.2014, "tflops_gpu": 388.1, "lr": 2.9e-4, "batch_samples": 256, "samples": 7,
        "param_norm": 812.444, "skipped": 0, "nan_steps": 0, "time_s": 1767323225.678901,
        "timer/forward-backward.min": 0.8121, "timer/forward-backward.max": 0.95133,
        "timer/optimizer.max": 0.03133,
    }),
    "megatron max": ("megatron", {"timer/all-grads-sync.max": 0.0777}),
    "megatron ranks": ("megatron", {
        "timer/forward-compute.rank0": 0.8121, "timer/forward-compute.rank1": 0.9121,
        "timer/optimizer.rank0": 0.0121, "timer/optimizer.rank1": 0.0122,
    }),
    "deepspeed": ("deepspeed", {
        "skipped": 2, "samples_per_s": 40.8, "memory_bytes": 33.3 * 2**30, "forward_s": 0.1012,
        "backward_s": 0.2403, "timer/bwd_allreduce": 0.09, "optimizer_s": 0.0331,
        "timer/fwd_microstep": 0.1012,
    }),
    "deepspeed-pipe": ("deepspeed-pipe", {"step_s": 1.301, "samples_per_s": 49.2}),
    "nemo": ("nemo", {"step_s": 6.1, "tflops_gpu": 410, "samples": 5888, "batch_samples": 128}),
    "lightning": ("tqdm", {"elapsed_s": 6 * 3600 + 28 * 60 + 7, "step_s": 1 / 1.37}),
    "torchtitan": ("torchtitan", {
        "grad_norm": 0.8123, "memory_bytes": 38.28 * 2**30, "tokens_per_s_gpu": 6480,
        "tflops_gpu": 310, "mfu_percent": 31.34, "time_s": 1767323225.678,
    }),
    "nanotron": ("nanotron", {
        "tokens": 1.31e6, "step_s": 1.2, "tokens_per_s": 455e3, "tokens_per_s_gpu": 57e3,
        "batch_samples": 1020, "tflops_gpu": 180, "lr": 0.0003,
    }),
    "nanogpt": ("nanogpt", {"step_s": 0.1352, "mfu_percent": 41.2}),
    "llama-factory": ("llama-factory", {"elapsed_s": 3600 + 7 * 60 + 41, "tokens_per_s": 912.3}),
    "ms-swift": ("ms-swift", {"elapsed_s": 3600 + 7 * 60 + 2, "step_s": 6.1,
                              "memory_bytes": 33.1 * 2**30}),
    "verl": ("verl", {"step_s": 41.2, "timing_s/gen": 22.0, "mfu_percent": 31.0, "lr": 1e-6,
                      "actor/pg_loss": -0.012}),
    "composer": ("composer", {"mfu_percent": 41.0, "grad_norm": 0.9, "lr": 0.0001}),
    "olmo-core": ("olmo-core", {"lr": 3e-4, "mfu_percent": 41.2, "tokens_per_s_gpu": 9812,
                                "data_percent": 0.4, "time_s": 1767323225.678}),
    "fairseq": ("fairseq", {"tokens_per_s": 16278, "step_s": 1 / 16, "batch_samples": 8,
                            "elapsed_s": 17, "time_s": 1577934425}),
    "fairseq json": ("fairseq", {"grad_norm": 0.73, "loss_scale": 8}),
    "aws-fsdp": ("aws-fsdp", {"samples_per_s": 4.88, "lr": 0.0001, "time_s": 1767323229}),
    "openrlhf": ("tqdm", {"kl": 0.01, "elapsed_s": 67, "step_s": 3.1}),
    "learned": ("learned", {"speed": 33.2, "time_s": 1767323225}),
    "learned words": ("learned", {"step_s": 1.25}),
    "learned json": ("learned", {"time_s": 1767323045.5}),
}  # fmt: skip
#: What calls its loss otherwise; fairseq counts in bits.
LOSS = {"verl": "critic/loss", "openrlhf": "policy_loss", "learned": "err"}
TOTALS = {
    "hf-trainer 4": 40, "megatron": 5000, "megatron max": 5000, "megatron ranks": 5000,
    "lightning": 500150, "nanotron": 1000, "llama-factory": 500, "ms-swift": 500, "composer": 4800,
    "olmo-core": 5000, "openrlhf": 100, "learned words": 100,
}  # fmt: skip
WAYS = {
    "llama-factory": {"tokens_per_s": "mean-so-far"}, "ms-swift": {"step_s": "mean-so-far"},
    "deepspeed": {"skipped": "sum", "RunningAvgSamplesPerSec": "mean-so-far"},
    "hf-trainer 4": {"step_s": "smoothed"}, "lightning": {"step_s": "smoothed"},
}  # fmt: skip


def test_every_style_is_in_the_table() -> None:
    assert TOLD.keys() == LINES.keys()


@pytest.mark.parametrize("name", list(LINES))
def test_a_step_of_a_style(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, written(name))
    series = only(found)
    style, expected = TOLD[name]
    assert (series.style, len(series.line)) == (style, STEPS - 1), found.events
    if name != "hf-trainer 5":
        assert list(series.values("step")) == list(range(1, STEPS))
    loss = 2.825 * (math.log(2) if name.startswith("fairseq") else 1)
    if name != "deepspeed":
        expected = {**expected, LOSS.get(name, "loss"): loss}
    is_row(series, 6, **expected)
    assert series.total_steps == TOTALS.get(name)
    for column, way in WAYS.get(name, {}).items():
        assert series.columns[column].way == way


@pytest.mark.parametrize("name", list(LINES))
def test_a_line_is_found_again_where_it_is_said_to_stand(tmp_path: Path, name: str) -> None:
    text = written(name).encode()
    series = only(read(tmp_path, text))
    per_step = LINES[name].count("\n") + 1
    assert list(series.line[:3]) == [1, 1 + per_step, 1 + 2 * per_step]
    begins = [text[at - 1 : at] for at in series.offset[1:]]
    assert set(begins) == {b"\n"}


def test_an_evaluation_stands_at_its_step(tmp_path: Path) -> None:
    text = written("megatron") + (
        "validation loss at iteration 39 | lm loss value: 2.4E+00 | lm loss PPL: 1.1E+01 |\n"
    )
    is_row(only(read(tmp_path, text)), 38, step=39, val_loss=2.4, loss=2.025)
    text = "step 1: train loss 3.1000, val loss 3.2000\n" + written("nanogpt")
    is_row(only(read(tmp_path, text)), 0, step=1, val_loss=3.2, loss=2.975)


def test_a_loss_that_vanishes_is_missing_and_one_written_as_nan_is_bad(tmp_path: Path) -> None:
    text = written("torchtitan").replace("loss:  2.500", "loss:      nan")
    series = only(read(tmp_path, text))
    assert series.columns["loss"].bad == {19: 1} and len(series.line) == STEPS - 1
    text = written("megatron").replace("lm loss: 2.500E+00 | ", "")
    series = only(read(tmp_path, text))
    assert math.isnan(series.values("loss")[19]) and not series.columns["loss"].bad


PREFIXES = {
    "[rank3]:": "torch", "[default3]:": "elastic", "3: ": "srun", "[1,3]<stdout>:": "mpirun",
    "node-03: ": "pdsh", "(RayTrainWorker pid=77, ip=10.0.0.3) ": "ray",
    "2026-01-02T03:04:05.123456789Z ": "kubectl", "Jan 02 03:04:05 node-03 train[99]: ": "journald",
}  # fmt: skip


@pytest.mark.parametrize("prefix", list(PREFIXES))
@pytest.mark.parametrize("name", ["megatron", "nanogpt", "composer", "learned", "deepspeed-pipe"])
def test_what_a_launcher_writes_before_lines_changes_nothing(
    tmp_path: Path, prefix: str, name: str
) -> None:
    text = "".join(prefix + line for line in written(name).splitlines(keepends=True))
    series = only(read(tmp_path, text))
    plain = only(read(tmp_path, written(name)))
    assert series.columns.keys() - {"time_s"} == plain.columns.keys() - {"time_s"}
    for column in plain.columns.keys() - {"time_s"}:
        assert list(series.values(column)) == list(plain.values(column)), column


def test_ranks_that_say_the_same_are_one_and_others_are_apart(tmp_path: Path) -> None:
    line = LINES["nanogpt"]
    both = f"[rank0]:{line}\n[rank1]:{line}"
    series = only(read(tmp_path, written("", line=both)))
    assert len(series.line) == STEPS - 1 and series.rank is None
    slow = f"[rank0]:{line}\n[rank1]:{line.replace('135.20ms', '235.20ms')}"
    one, two = read(tmp_path, written("", line=slow)).series
    assert (one.rank, two.rank) == (0, 1)
    assert (one.values("step_s")[5], two.values("step_s")[5]) == (0.1352, 0.2352)
    plain = f"{line}\n{line}"
    assert len(only(read(tmp_path, written("", line=plain))).line) == STEPS - 1


def test_a_restart_keeps_the_order_of_the_log(tmp_path: Path) -> None:
    text = written("torchtitan", 30) + written("torchtitan", 20)
    steps = list(only(read(tmp_path, text)).values("step"))
    assert steps == [*range(1, 30), *range(1, 20)]


def test_clocks_that_jump_are_kept_as_they_are(tmp_path: Path) -> None:
    text = written("torchtitan").replace("03:20:05", "02:20:05")
    times = only(read(tmp_path, text)).values("time_s")
    assert times[19] - times[18] == pytest.approx(60 - 3600)
