"""One thing that happened to the loss, the gradients or the loss scale."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: `restarted`: the run went back to a step before it since.
Recovery = Literal["", "alone", "slowly", "never", "restarted"]


class Event(Struct, frozen=True):
    """`kind`: a row of checks/data/divergence.yaml. `row`: of the series, `step` and `line` of it.
    `until`: the step from which it was over; None where it was not, or has no end."""

    kind: str
    row: int
    step: float
    line: int
    text: str
    column: str = "loss"
    value: float | None = None
    usual: float | None = None
    until: float | None = None
    recovery: Recovery = ""
    rows: int = 1  # how many rows it lasted, or was seen in
