"""What is trained, by the size of the device. A preset is data; options change single fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Shape of the model and of a step. Lengths in tokens, batches in sequences of one rank."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int  # of the feed-forward block
    vocabulary: int
    length: int
    batch: int
    accumulation: int
    steps: int
    learning_rate: float
    warmup: int
    precision: str  # bf16 | fp16 | fp32

    def tokens_per_step(self, ranks: int) -> int:
        """Tokens that one optimizer step sees."""
        return self.batch * self.length * self.accumulation * ranks


PRESETS = {
    one.name: one
    for one in (
        # Steps of 20 to 50 ms on one core: long enough to time, short enough for a hundred.
        Preset("cpu-tiny", 2, 128, 4, 2, 352, 256, 128, 8, 1, 100, 3e-3, 10, "fp32"),
        # Fits 8 GB: any GPU that trains at all.
        Preset("gpu-small", 8, 768, 12, 4, 2048, 32000, 1024, 8, 1, 100, 6e-4, 10, "bf16"),
        # 1.1 B parameters, the shape of TinyLlama: 18 GB of states with fp32 Adam.
        Preset("gpu-1b", 22, 2048, 32, 4, 5632, 32000, 2048, 8, 1, 60, 4e-4, 10, "bf16"),
        # Four layers as wide as those of a 7B: the matrix shapes without the memory.
        Preset("gpu-7b-slice", 4, 4096, 32, 8, 14336, 32000, 4096, 2, 1, 60, 3e-4, 10, "bf16"),
    )
}


def chosen(name: str, **changes: Any) -> Preset:
    """The preset with the fields that options state; those that are None stay."""
    return replace(PRESETS[name], **{key: one for key, one in changes.items() if one is not None})
