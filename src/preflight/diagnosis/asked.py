"""What the user states of a run, where no input tells it."""

from __future__ import annotations

from msgspec import Struct


class Asked(Struct, frozen=True):
    """Of the model and the devices; None where it is not stated. What an input tells counts less:
    the user typed this for it."""

    gpu: str | None = None  # as nvidia-smi calls it
    gpus: int | None = None
    params: float | None = None
