"""The run that is estimated, as its user states it."""

from __future__ import annotations

from msgspec import Struct

SHARDINGS = ("ddp", "zero1", "zero2", "fsdp")


class Run(Struct, frozen=True):
    """None: not stated. Speeds in 1e9 bytes a second, prices in whatever money the user pays."""

    params: float
    tokens: float
    gpus: int
    active_params: float | None = None  # of a mixture of experts
    layers: int | None = None
    width: int | None = None
    attention_width: int | None = None  # heads x size of one, where that is not the width
    vocab: int | None = None  # of an embedding that the output has a table of its own beside
    length: int | None = None
    sharding: str = "fsdp"
    optimizer: str = "adamw"
    tokens_per_gpu: float | None = None  # of one GPU and pass
    accumulation: int = 1  # passes of a step
    gpu: str | None = None  # as nvidia-smi calls it
    mfu_percent: float | None = None
    peak_tflops: float | None = None  # of one GPU, dense, in the precision that MFU counts with
    busbw_gbps: float | None = None
    write_gbps: float | None = None
    read_gbps: float | None = None
    power_w: float | None = None
    mtbf_s: float | None = None
    restart_s: float | None = None
    interval_s: float | None = None
    stall_s: float | None = None
    wait_percent: float | None = None
    price: float | None = None  # of a GPU-hour
    price_kwh: float | None = None
    price_storage: float | None = None  # of 1e9 bytes and month
    price_transfer: float | None = None  # of 1e9 bytes
    price_requests: float | None = None  # of 1000
    keep: int = 2  # checkpoints that are kept
    transfers: int = 0  # checkpoints that are read out

    @property
    def computing_params(self) -> float:
        """Those that one token passes through."""
        return self.active_params or self.params

    @property
    def looked_up_params(self) -> float:
        """Of the input's embedding: a row of it is looked up, and nothing multiplied."""
        return float((self.vocab or 0) * (self.width or 0))
