"""The log that a framework would have written of a run. Formats: each framework's own, as its
samples show; what differs between them is which signals are there at all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from bench.labelled.lines import Ran, Step

#: Logs tell local time.
_BEGAN = datetime(2026, 1, 2, 3, 4, 5)


class Style(Struct, frozen=True):
    """`data`: it tells the time for data; `by_rank`: times of each rank; `alone`: of one rank, what
    that waits for others included; `coarse`: times of whole seconds only; `words`: what else is
    printed is in it."""

    write: Callable[[Ran], str]
    data: bool = False
    by_rank: bool = False
    alone: bool = False
    coarse: bool = False
    words: bool = True


def _when(step: Step) -> str:
    return f"{_BEGAN + timedelta(seconds=step.at_s):%Y-%m-%d %H:%M:%S.%f}"


def _log(run: Ran, line: Callable[[Step], str], saving: str = "", loading: str = "") -> str:
    """A line for each step, those of saving and loading, and how it ended."""
    lines = []
    for step in run.steps:
        if loading and step.first and step.number > 1:
            lines.append(loading.format(step=step.number - 1))
        lines.append(line(step))
        if saving and step.saves:
            lines.append(saving.format(step=step.number, when=_when(step)))
    return "\n".join([*lines, *_killed(run)]) + "\n"


def _killed(run: Ran) -> list[str]:
    """As torchrun tells of it."""
    told = []
    for rank in run.killed[:1]:
        told += [
            "E0102 03:10:11.123000 4711 site-packages/torch/distributed/elastic/multiprocessing/"
            f"api.py:882] failed (exitcode: -9) local_rank: {rank} (pid: {4712 + rank}) of binary: "
            "/usr/bin/python3",
            "=" * 60, "train.py FAILED", "-" * 60, "Root Cause (first observed failure):", "[0]:",
            "  time      : 2026-01-02_03:10:10", "  host      : node1",
            f"  rank      : {rank} (local_rank: {rank})", f"  exitcode  : -9 (pid: {4712 + rank})",
            "  error_file: <N/A>",
            f"  traceback : Signal 9 (SIGKILL) received by PID {4712 + rank}", "=" * 60,
        ]  # fmt: skip
    return told


_TIMERS = {"batch-generator": ("data",), "forward-compute": ("forward", "copy", "rest"),
           "backward-compute": ("backward",), "all-grads-sync": ("communication",),
           "optimizer": ("optimizer",)}  # fmt: skip


def _megatron(run: Ran) -> str:
    """With --timing-log-level 2 --timing-log-option all."""

    def line(step: Step) -> str:
        loss = "" if math.isnan(step.loss) else f"lm loss: {step.loss:.6E} | "
        head = (
            f" [{_when(step)}] iteration {step.number:8}/{run.total:8} | consumed samples: "
            f"{step.number * run.batch:12} | elapsed time per iteration (ms): "
            f"{step.seconds * 1e3:.1f} | learning rate: {step.learning_rate:.6E} | global batch "
            f"size: {run.batch:5} | {loss}loss scale: {step.scale:.1f} | grad norm: "
            f"{step.norm:.3f} | number of skipped iterations: {int(step.skipped):3} | number of "
            f"nan iterations: {int(not loss):3} |"
        )
        timers = ["times across ranks (ms):"]
        for timer, parts in _TIMERS.items():
            timers.append(f"  {timer}:")
            timers += [f"     rank {rank:2}: {took * 1e3:.2f}"
                       for rank, took in enumerate(step.by_rank(*parts))]  # fmt: skip
        return "\n".join([head, *timers])

    return _log(
        run, line, "saving checkpoint at iteration {step:7} to /ckpt in torch_dist format",
        "successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration {step}",
    )  # fmt: skip


def _deepspeed(run: Ran) -> str:
    """With wall_clock_breakdown."""

    def line(step: Step) -> str:
        stamp = f"[{_when(step)[:-3].replace('.', ',')}] [INFO]"
        ms = {name: took * 1e3 for name, took in step.ranks[0].items()}
        backward = ms["backward"] + ms["communication"]
        return (
            f"{stamp} [logging.py:128:log_dist] [Rank 0] step={step.number}, skipped=0, "
            f"lr=[{step.learning_rate}], mom=[(0.9, 0.95)]\n"
            f"steps: {step.number} loss: {step.loss:.4f} iter time (s): {step.seconds:.3f} "
            f"samples/sec: {run.batch / step.seconds:.3f}\n"
            f"{stamp} [logging.py:128:log_dist] [Rank 0] time (ms) | fwd: {ms['forward']:.2f} | "
            f"bwd: {backward:.2f} | bwd_inner: {ms['backward']:.2f} | bwd_allreduce: "
            f"{ms['communication']:.2f} | step: {ms['optimizer']:.2f}"
        )

    return _log(run, line, "[{when}] [INFO] [logging.py:128:log_dist] [Rank 0] Saving model "
                "checkpoint: /ckpt/global_step{step}/mp_rank_00_model_states.pt")  # fmt: skip


def _torchtitan(run: Ran) -> str:
    def line(step: Step) -> str:
        tps = run.batch * run.length / run.ranks / step.seconds
        return (
            f"[rank0]:[titan] {_when(step)[:-3].replace('.', ',')} - root - INFO - step: "
            f"{step.number:2}  loss: {step.loss:8.5f}  grad_norm: {step.norm:7.4f}  memory: "
            f" 1.20GiB(1.50%)  tps: {tps:,.0f}  tflops: 0.01  mfu: 0.10%"
        )

    return _log(run, line, "[rank0]:[titan] {when} - root - INFO - Saving the checkpoint at step "
                "{step}.")  # fmt: skip


def _olmo_core(run: Ran) -> str:
    def line(step: Step) -> str:
        tps = run.batch * run.length / run.ranks / step.seconds
        return (
            f"{_when(step)[:-3]}\tnode1:0\tolmo_core.train.callbacks.console_logger:53\tINFO\t"
            f"[step={step.number}/{run.total},epoch=1]\n"
            f"    optim/LR (group 0)={step.learning_rate:.4g}\n"
            f"    optim/total grad norm={step.norm:.4f}\n"
            f"    throughput/device/TPS={tps:,.0f}\n"
            f"    throughput/device/data loading (%)={step.part('data') / step.seconds * 100:.3f}\n"
            f"    train/CE loss={step.loss:.4f}"
        )

    return _log(run, line)


def _nanogpt(run: Ran) -> str:
    def line(step: Step) -> str:
        return (f"iter {step.number}: loss {step.loss:.4f}, time {step.seconds * 1e3:.2f}ms, "
                "mfu 1.20%")  # fmt: skip

    return _log(run, line, "saving checkpoint to out")


def _fairseq(run: Ran) -> str:
    def line(step: Step) -> str:
        tokens, bits = run.batch * run.length, step.loss / 0.6931471805599453
        return (
            f"{_when(step)[:-7]} | INFO | train_inner | epoch 001: {step.number:6} / {run.total} "
            f"loss={bits:.3f}, ppl={2 ** min(bits, 40):.2f}, wps={tokens / step.seconds:.1f}, "
            f"ups={1 / step.seconds:.2f}, wpb={tokens}, bsz={run.batch}, num_updates={step.number},"
            f" lr={step.learning_rate:.4g}, gnorm={step.norm:.3f}, loss_scale={step.scale:.0f}, "
            f"train_wall={step.seconds:.0f}, wall={step.at_s:.0f}"
        )

    return _log(
        run, line, "{when} | INFO | fairseq.checkpoint_utils | Preparing to save checkpoint for "
        "epoch 1 @ {step} updates",
    )  # fmt: skip


def _transformers(run: Ran) -> str:
    """Its bar and, every ten steps, its line."""

    def line(step: Step) -> str:
        done = step.number / run.total
        passed = str(timedelta(seconds=round(step.at_s)))
        rate = f"{step.seconds:.2f}s/it" if step.seconds > 1 else f"{1 / step.seconds:.2f}it/s"
        bar = (f"\r{done:4.0%}|{'#' * int(done * 10):10}| {step.number}/{run.total} "
               f"[{passed}<0:10:00, {rate}]")  # fmt: skip
        if step.number % 5:
            return bar
        told = {"loss": round(step.loss, 4), "grad_norm": step.norm,
                "learning_rate": step.learning_rate, "epoch": round(done, 2)}  # fmt: skip
        return f"{bar}\n{told}"

    return _log(run, line)


def _jsonl(run: Ran) -> str:
    def line(step: Step) -> str:
        return json.dumps({
            "step": step.number, "timestamp": round(1767323045 + step.at_s, 6), "loss": step.loss,
            "grad_norm": step.norm, "lr": step.learning_rate, "step_time_s": step.seconds,
            "data_time": step.part("data"), "tokens_per_sec": run.batch * run.length / step.seconds,
        })  # fmt: skip

    return "\n".join(line(step) for step in run.steps) + "\n"


STYLES = {
    "megatron": Style(_megatron, data=True, by_rank=True),
    "deepspeed": Style(_deepspeed, alone=True),
    "torchtitan": Style(_torchtitan),
    "olmo-core": Style(_olmo_core, data=True),
    "nanogpt": Style(_nanogpt),
    "fairseq": Style(_fairseq),
    "transformers": Style(_transformers, coarse=True),
    "json-lines": Style(_jsonl, data=True, words=False),
}
