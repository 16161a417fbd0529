"""What the state of a model takes on each GPU and in the memory of the host, with its sum.

Weights and gradients in half precision are 2 B a parameter each, or gradients in fp32 4; the master
copy and the moments are those of the checkpoint (Rajbhandari et al. 2020, section 3).
"""

from __future__ import annotations

from msgspec import Struct

from preflight.estimate.run import Run
from preflight.expect.checkpoint_bytes import bytes_per_param, layout
from preflight.model import Known, Missing

#: Of DeepSpeed's estimate for ZeRO-3 with optimizer and weights on one host: 18 B a parameter,
#: and half as much again for its buffers (deepspeed/runtime/zero/stage3.py).
_OFFLOAD_BYTES, _OFFLOAD_BUFFERS = 18.0, 1.5
#: Bytes of activations of one token, layer and unit of width, without attention's scores
#: (Korthikanti et al. 2022, section 4.1): all kept, or the layers' inputs alone.
_KEPT, _RECOMPUTED = 34.0, 2.0


class State(Struct, frozen=True):
    """Bytes on one GPU: gradients in half precision, and in fp32."""

    sharding: str
    low_bytes: float
    high_bytes: float
    formula: str


def states(run: Run) -> tuple[State, ...]:
    """Of each way to shard."""
    return tuple(_state(run, way) for way in ("ddp", "zero1", "zero2", "fsdp"))


def _state(run: Run, way: str) -> State:
    optimizer = bytes_per_param(layout(run.optimizer)) - 2.0
    over = {"ddp": (1, 1, 1), "zero1": (1, 1, run.gpus), "zero2": (1, run.gpus, run.gpus),
            "fsdp": (run.gpus,) * 3}[way]  # fmt: skip
    low, high = (
        sum(part / by for part, by in zip((2.0, gradient, optimizer), over, strict=True))
        for gradient in (2.0, 4.0)
    )
    told = " + ".join(
        f"{part}{f'/{by:,}' if by > 1 else ''}"
        for part, by in zip(("2 weights", "2 to 4 gradients", f"{optimizer:g} optimizer"), over,
                            strict=True)
    )  # fmt: skip
    return State(way, low * run.params, high * run.params, f"{told} B a parameter")


def offload_bytes(params: float) -> float:
    """Of the host's memory, where one host holds the whole state of ZeRO-3."""
    return params * _OFFLOAD_BYTES * _OFFLOAD_BUFFERS


def activations_bytes(run: Run) -> Known[tuple[float, float]]:
    """Of one pass on one GPU: with layers computed twice, and with all kept."""
    if run.layers is None or run.width is None or run.tokens_per_gpu is None:
        return Missing("not-asked", "not included: needs --layers, --width and --tokens-per-gpu")
    unit = run.layers * run.width * run.tokens_per_gpu
    return _RECOMPUTED * unit, _KEPT * unit
