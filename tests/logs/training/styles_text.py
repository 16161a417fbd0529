"""A line of each style, or the lines of one step, as its framework writes them: `{i}` is the step,
`{loss}` 3 - i/40, `{mm}` the minute. Shapes are those of the frameworks, numbers made up."""

from __future__ import annotations

STEPS = 40

_STAMP = "[2026-01-02 03:{mm}:05,678] [INFO]"
LINES: dict[str, str] = {
    "hf-trainer 4": (
        "\r  2%|#1        | {i}/40 [00:{mm}<01:00,  1.02s/it]\r" + " " * 40
        + "\r{{'loss': {loss}, 'grad_norm': 1.07, 'learning_rate': 1.8e-05, 'epoch': 0.31}}"
    ),
    "hf-trainer 5": (
        "{{'loss': '{loss}', 'grad_norm': '1.07', 'learning_rate': '1.8e-05', 'epoch': '0.{mm}'}}"
    ),
    "megatron": (
        " [2026-01-02 03:{mm}:05.678901] iteration {i:8}/    5000 | consumed samples: {i:12} | "
        "elapsed time per iteration (ms): 1201.4 | throughput per GPU (TFLOP/s/GPU): 388.1 | "
        "learning rate: 2.900000E-04 | global batch size:   256 | lm loss: {loss}E+00 | loss "
        "scale: 1.0 | grad norm: 0.731 | num zeros: 0 | params norm: 812.444 | number of skipped "
        "iterations:   0 | number of nan iterations:   0 |\n"
        "(min, max) time across ranks (ms):\n"
        "    forward-backward ...............................: (812.10, 951.33)\n"
        "    optimizer ......................................: (30.10, 31.33)"
    ),
    "megatron max": (
        " iteration {i:8}/    5000 | elapsed time per iteration (ms): 1201.4 | "
        "lm loss: {loss}E+00 |\n"
        "max time across ranks (ms):\n"
        "    all-grads-sync .................................: 77.70"
    ),
    "megatron ranks": (
        " iteration {i:8}/    5000 | elapsed time per iteration (ms): 1201.4 | "
        "lm loss: {loss}E+00 |\n"
        "times across ranks (ms):\n"
        "  forward-compute:\n     rank  0: 812.10\n     rank  1: 912.10\n"
        "  optimizer:\n     rank  0: 12.10\n     rank  1: 12.20"
    ),
    "deepspeed": (
        _STAMP + " [logging.py:96:log_dist] [Rank 0] step={i}, skipped=2, lr=[1e-05], "
        "mom=[(0.9, 0.95)]\n"
        + _STAMP + " [timer.py:199:stop] [Rank 0] epoch=0/micro_step=8/global_step={i}, "
        "RunningAvgSamplesPerSec=41.2, CurrSamplesPerSec=40.8, MemAllocated=12.1GB, "
        "MaxMemAllocated=33.3GB\n"
        + _STAMP + " [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 51.2 | "
        "bwd_microstep: 120.3 | bwd_inner_microstep: 75.1 | bwd_allreduce_microstep: 45.0 | "
        "step_microstep: 0.1\n"
        + _STAMP + " [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 50.0 | "
        "bwd_microstep: 120.0 | bwd_inner_microstep: 75.0 | bwd_allreduce_microstep: 45.0 | "
        "step_microstep: 33.0\n"
        + _STAMP + " [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 101.2 | bwd: 240.3 | "
        "bwd_inner: 150.1 | bwd_allreduce: 90.0 | step: 33.1"
    ),
    "deepspeed-pipe": "steps: {i} loss: {loss} iter time (s): 1.301 samples/sec: 49.2",
    "nemo": (
        "Training epoch 0, iteration 7/99 | lr: 6.8e-06 | global_batch_size: 128 | "
        "global_step: {i} | reduced_train_loss: {loss} | train_step_timing in s: 6.1 | "
        "TFLOPS_per_GPU: 4.1e+02 | consumed_samples: 5888"
    ),
    "lightning": (
        "\rEpoch 0:   6%|#  | {i}/500150 [6:28:{mm}<94:39:17,  1.37it/s, loss={loss}, v_num=3]"
    ),
    "torchtitan": (
        "\x1b[32m[rank0]:[titan] 2026-01-02 03:{mm}:05,678 - root - INFO - \x1b[31mstep: {i:2}  "
        "\x1b[32mloss:  {loss}  \x1b[38;2;180;60;0mgrad_norm:  0.8123  \x1b[33mmemory: "
        "38.28GiB(47.80%)  \x1b[34mtps: 6,480  \x1b[36mtflops: 310.00  \x1b[35mmfu: 31.34%\x1b[39m"
    ),
    "nanotron": (
        "01/02 03:{mm}:05 [INFO|DP=0|PP=0|TP=0|host1]: iteration: {i} / 1000 | "
        "consumed_tokens: 1.31M | time_per_iteration_ms: 1.2K | tokens_per_sec: 455K | "
        "tokens_per_sec_per_gpu: 57K | global_batch_size: 1.02K | lm_loss: {loss} | "
        "lr: 0.0003 | model_tflops_per_gpu: 180 | grad_norm: 0.81"
    ),
    "nanogpt": "iter {i}: loss {loss}, time 135.20ms, mfu 41.20%",
    "llama-factory": (
        '{{"current_steps": {i}, "total_steps": 500, "loss": {loss}, "lr": 1e-05, "epoch": 0.1, '
        '"percentage": 2.0, "elapsed_time": "1:{mm}:41", "remaining_time": "0:33:01", '
        '"throughput": 912.3, "total_tokens": 40960}}'
    ),
    "ms-swift": (
        '{{"loss": {loss}, "grad_norm": 0.8, "learning_rate": 1e-5, "epoch": 0.1, '
        '"global_step/max_steps": "{i}/500", "elapsed_time": "1h {i}m 2s", "memory(GiB)": 33.1, '
        '"train_speed(s/it)": 6.1}}'
    ),
    "verl": (
        "(TaskRunner pid=1234) step:{i} - actor/pg_loss:np.float64(-0.012) - "
        "actor/grad_norm:0.51 - actor/lr:1e-06 - perf/mfu/actor:0.31 - timing_s/step:41.2 - "
        "timing_s/gen:22.0 - critic/loss:{loss}"
    ),
    "composer": (
        "[batch={i}/4800]:\n\t Train loss/train/total: {loss}\n"
        "\t Train throughput/device/mfu: 0.41\n\t Train l2_norm/grad/global: 0.9\n"
        "\t Train lr-DecoupledAdamW/group0: 0.0001"
    ),
    "olmo-core": (
        "2026-01-02 03:{mm}:05.678\thost:0\tolmo_core:1\tINFO\t"
        "[step={i}/5000,epoch=1,eta=1:02:03]\n"
        "    optim/LR (group 0)=3e-4\n    optim/total grad norm=0.81\n"
        "    throughput/device/MFU=41.2\n"
        "    throughput/device/TPS=9,812\n    throughput/device/data loading (%)=0.4\n"
        "    train/CE loss={loss}"
    ),
    "fairseq": (
        "2020-01-02 03:{mm}:05 | INFO | train_inner | epoch 001:     24 / 78 loss={loss}, ppl=508, "
        "wps=16278, ups=16, wpb=1024, bsz=8, num_updates={i}, lr=2.6e-06, gnorm=0.73, clip=100, "
        "loss_scale=8, train_wall=1, wall=17"
    ),
    "fairseq json": (
        '2020-01-02 03:{mm}:05 | INFO | train_inner | {{"epoch": 1, "loss": "{loss}", '
        '"ppl": "508", "num_updates": "{i}", "gnorm": "0.73", "loss_scale": "8"}}'
    ),
    "aws-fsdp": "0: 2026-01-02 03:{mm}:09 I [train.py:103] Batch {i} Loss: {loss}, Speed: 4.88 "
                "samples/sec, lr: 0.000100",
    "openrlhf": (
        "\rTrain epoch [1/1]:  12%|#2 | {i}/100 [01:{mm}<10:00,  3.10s/it, policy_loss={loss}, "
        "kl=0.01, actor_lr=1e-6]"
    ),
    "learned": "2026-01-02 03:{mm}:05 worker 3 says update={i} err={loss} speed: 33.2",
    "learned words": "Epoch 1 Step {i}/100 | Loss: {loss} | time: 1.250s",
    "learned json": '{{"_step": {i}, "_timestamp": 1767323045.5, "train/loss": {loss}}}',
}  # fmt: skip


def written(name: str, steps: int = STEPS, line: str = "") -> str:
    """The log of a run of so many steps."""
    shape = line or LINES[name]
    told = [shape.format(i=i, loss=f"{3 - i / 40:.3f}", mm=f"{i % 60:02}") for i in range(1, steps)]
    return "\n".join(told) + "\n"
