"""The floating point operations of a run, and when communication takes as long as they do."""

from __future__ import annotations

import math

from preflight.estimate.run import Run
from preflight.model import Known, Missing

NO_SHAPE = Missing("not-asked", "attention is not counted: needs --layers, --width and --length")

#: Bytes that a GPU sends for each parameter, in half precision, over the bus bandwidth of
#: nccl-tests (doc/PERFORMANCE.md): an all-reduce of gradients counts twice in it, an all-gather or
#: a reduce-scatter once. ZeRO-3 gathers weights for forward and for backward (Rajbhandari et al.
#: 2020, section 7.2).
BUS_BYTES = {"ddp": 4.0, "zero1": 4.0, "zero2": 4.0, "fsdp": 6.0}


def dense_flops(run: Run) -> float:
    """6 for each parameter that a token is multiplied with: 2 forward, 4 backward."""
    return 6.0 * (run.computing_params - run.looked_up_params)


def attention_flops(run: Run) -> Known[float]:
    """12 x layers x width x length of one token, forward and backward (Narayanan et al. 2021,
    appendix), with the width of all heads together; a causal kernel skips half of it."""
    if run.layers is None or run.width is None or run.length is None:
        return NO_SHAPE
    return 12.0 * run.layers * (run.attention_width or run.width) * run.length


def flops_per_token(run: Run) -> float:
    """Both terms, as MFU counts them."""
    attention = attention_flops(run)
    return dense_flops(run) + (0.0 if isinstance(attention, Missing) else attention)


def balance_tokens(flops_per_s: float, busbw_gbps: float, sharding: str = "fsdp") -> float:
    """Tokens of one GPU at which communication takes as long as computing: t* = peak x MFU /
    bus bandwidth for ZeRO-3, of each pass; 4/6 of it for gradients alone, of each step.

    Parameters cancel: 6 N t FLOP stand against BUS_BYTES x N bytes.
    """
    return BUS_BYTES[sharding] / 6.0 * flops_per_s / (busbw_gbps * 1e9)


def exchanges(run: Run) -> Known[float]:
    """How often parameters or gradients go over the network: each pass of ZeRO-3, each step of the
    others."""
    if run.tokens_per_gpu is None:
        return Missing("not-asked", "--tokens-per-gpu, the tokens of one GPU in one pass")
    at_once = run.tokens_per_gpu * (1 if run.sharding == "fsdp" else run.accumulation)
    return run.tokens / (run.gpus * at_once)


def best_interval_s(stall_s: float, mtbf_s: float) -> float:
    """sqrt(2 x stall x MTBF) (Young 1974): what saves cost and what failures take is then alike."""
    return math.sqrt(2.0 * stall_s * mtbf_s)


def lost_share(interval_s: float, restart_s: float, mtbf_s: float) -> float:
    """Of the time: each failure takes half an interval of work, and the restart."""
    return (interval_s / 2.0 + restart_s) / mtbf_s
