"""What frameworks call a figure, and what it is called here. One table for all of them."""

from __future__ import annotations

import re

from msgspec import Struct


class Meant(Struct, frozen=True):
    """A column of facts.series.NAMES, and by what a value is multiplied. `inverse`: one over it."""

    name: str
    factor: float = 1.0
    inverse: bool = False


_MS = 1e-3
_SAME: dict[str, tuple[str, ...]] = {
    "step": ("step", "steps", "global step", "iteration", "iter", "num updates", "current steps",
             "update", "trainer/global step", "train/global step", " step"),
    "loss": ("loss", "lm loss", "train loss", "train/loss", "loss/train/total", "train/ce loss",
             "reduced train loss", "training loss", "total loss", "lm_loss",
             "loss metrics/global avg loss", "train loss step", "ce loss", "train/total loss"),
    "lr": ("lr", "learning rate", "optim/lr (group 0)", "train/lr", "train/learning rate",
           "actor/lr", "train/actor lr", "current lr"),
    "grad_norm": ("grad norm", "gnorm", "total norm", "l2 norm/grad/global", "gradient norm",
                  "optim/total grad norm", "train/grad norm", "actor/grad norm", "gradnorm"),
    "param_norm": ("params norm", "param norm"),
    "loss_scale": ("loss scale",),
    "step_s": ("elapsed time per iteration (s)", "iter time (s)", "train step timing in s",
               "time metrics/end to end(s)", "timing s/step", "step time", "iter time",
               "time per iteration s", "seconds per step", "batch time", "iteration time",
               "step time s", "step s", "sec/step", "s/step", "train step timing", "dt"),
    "data_s": ("time metrics/data loading(s)", "data time", "data loading time", "dataload time",
               "time data", "data s", "data wait s", "train dataloader next", "data wait",
               "data time s", "data loading s",
               "load time", "time/data", "perf/data time", "data loading", "dataloader time",
               "time/data time", "data load time", "batch wait", "input wait"),
    "data_percent": ("time metrics/data loading(%)", "throughput/device/data loading (%)",
                     "data loading (%)"),
    "forward_s": ("forward time", "forward s", "fwd time"),
    "backward_s": ("backward time", "backward s", "bwd time"),
    "optimizer_s": ("optimizer time", "optim time", "optimizer s"),
    "comm_s": ("comm time", "communication time", "comm s"),
    "save_s": ("save time", "checkpoint time", "save s"),
    "tokens_per_s": ("tokens per sec", "tokens/s", "tok/s", "tokens per second", "wps",
                     "throughput/tokens per sec", "tokens/sec", "throughput/total tps"),
    "tokens_per_s_gpu": ("tps", "throughput(tps)", "throughput/device/tps", "toks/gpu/s",
                         "tokens per sec per gpu", "throughput/device/tokens per sec", "tgs",
                         "tokens/train per sec per gpu", "tokens/sec/gpu",
                         "tokens per gpu per sec"),
    "samples_per_s": ("samples per second", "samples/sec", "currsamplespersec", "samples/s",
                      "throughput/samples per sec", "samples per sec", "images/sec"),
    "tflops_gpu": ("throughput per gpu (tflop/s/gpu)", "tflops", "model tflops per gpu",
                   "tflops per gpu", "tflops/gpu"),
    "mfu_percent": ("mfu", "mfu(%)", "throughput/device/mfu", "mfu %"),
    "skipped": ("number of skipped iterations", "skipped"),
    "nan_steps": ("number of nan iterations",),
    "samples": ("consumed samples", "samples seen"),
    "tokens": ("consumed tokens", "total tokens", "num tokens", "tokens seen", "ntokens"),
    "batch_samples": ("global batch size", "bsz"),
    "epoch": ("epoch",),
    "val_loss": ("lm loss value", "val loss", "eval loss", "validation loss", "loss/val/total",
                 "eval/loss", "val/loss", "loss/eval/total", "valid loss", "test loss"),
    "worst_loss": ("loss metrics/global max loss", "global max loss"),
    "alloc_retries": ("memory/num alloc retries", "num alloc retries"),
    "elapsed_s": ("elapsed time", "wall", "train time", " runtime"),
    "time_s": (" timestamp", "wall time"),
    "total": ("total steps", "max steps"),
    "": ("pid", "ip", "v num"),
}  # fmt: skip
_OTHERS = {
    "elapsed time per iteration (ms)": Meant("step_s", _MS),
    "time per iteration ms": Meant("step_s", _MS),
    "iteration time (ms)": Meant("step_s", _MS),
    "step time ms": Meant("step_s", _MS),
    "step time (ms)": Meant("step_s", _MS),
    "ms/step": Meant("step_s", _MS),
    "data time (ms)": Meant("data_s", _MS),
    "data time ms": Meant("data_s", _MS),
    "data ms": Meant("data_s", _MS),
    "data wait ms": Meant("data_s", _MS),
    "ups": Meant("step_s", inverse=True),
    "it/s": Meant("step_s", inverse=True),
    "memory": Meant("memory_bytes"),
    "maxmemallocated": Meant("memory_bytes"),
    "peak memory": Meant("memory_bytes"),
    "memory(gib)": Meant("memory_bytes", 2**30),
    "memory/max active (gib)": Meant("memory_bytes", 2**30),
    "memory/max reserved(gib)": Meant("memory_bytes", 2**30),
    "perf/mfu/actor": Meant("mfu_percent", 100.0),
    "perf/throughput": Meant("tokens_per_s_gpu"),
    "train speed(s/it)": Meant("step_s"),
    "train speed(iter/s)": Meant("step_s", inverse=True),
}
ALIASES: dict[str, Meant] = {
    **{called: Meant(name) for name, names in _SAME.items() for called in names},
    **_OTHERS,
}
#: A letter or two behind a number -> its factor. Of nanotron's short numbers K is 1,000.
UNITS: dict[str, float] = {
    "ms": 1e-3, "s": 1.0, "us": 1e-6, "sec": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12,
    "GiB": 2.0**30, "GB": 2.0**30, "MiB": 2.0**20, "MB": 2.0**20,
}  # fmt: skip
#: Of these: where a key names its unit, or is a rate, they are told already.
TIMES = {"ms", "s", "us", "sec"}
_GROUP_LR = re.compile(r"lr-[a-z]\w*(?:/(?:group0|pg1))?$")


def meant(key: str) -> Meant:
    """The column of a framework's key; its own name where it is none of ours."""
    plain = key.strip().strip("'\"").lower()
    found = ALIASES.get(plain) or ALIASES.get(plain.replace("_", " ").replace("-", " "))
    if found is None and _GROUP_LR.match(plain):
        return Meant("lr")
    return found or Meant(key.strip())
