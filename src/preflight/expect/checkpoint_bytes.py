"""What a checkpoint of a model weighs, part by part, and how long it takes to write and to read.

All that is needed to go on as if nothing had happened: weights, the master copy that mixed
precision steps, the optimizer's moments (Micikevicius et al. 2018; Rajbhandari et al. 2020, ZeRO,
section 3). The position of data, schedule and generators are kilobytes and not counted. Bytes;
rates in 1e9 bytes a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from preflight.errors import UsageError
from preflight.model import Known, Missing

#: Bytes of one number of the weights that the model computes with.
DTYPES = {"bf16": 2, "fp16": 2, "fp32": 4}
#: A restart should be over by then: what to hold a load against.
RESTORE_GOAL_S = 30.0
_BLOCK = 256  # values that share one fp32 maximum (bitsandbytes' blockwise optimizers)

NO_WRITE = Missing("not-asked", "no speed of writing was measured: `preflight io-bench --dir DIR`")
NO_READ = Missing("not-asked", "no speed of reading was measured: `preflight io-bench --dir DIR`")


class Part(Struct, frozen=True):
    """One part of the state, of each parameter."""

    name: str
    bytes_per_param: float
    note: str = ""


_MASTER = Part("fp32 master weights", 4.0)
_MOMENTS = {
    "adamw": (Part("first moment", 4.0), Part("second moment", 4.0)),
    "adamw-8bit": (
        Part("first moment, 8 bit", 1.0 + 4 / _BLOCK, f"and an fp32 maximum of each {_BLOCK}"),
        Part("second moment, 8 bit", 1.0 + 4 / _BLOCK, f"and an fp32 maximum of each {_BLOCK}"),
    ),
    "adafactor": (
        Part("second moment, factored", 0.0, "a row and a column of each matrix; no first moment"),
    ),
    "sgd": (),
    "momentum": (Part("momentum", 4.0),),
    "lion": (Part("momentum", 4.0),),
    "muon": (
        Part("momentum", 4.0, "of matrices; embedding, head and vectors with AdamW have 8"),
    ),
    "none": (),
}  # fmt: skip
OPTIMIZERS = tuple(_MOMENTS)


class Change(Struct, frozen=True):
    """Something else to do, and what it makes of the time that a save costs."""

    what: str
    factor: float


class Projection(Struct, frozen=True):
    """A checkpoint of a model that is not there yet. Rates are of all ranks together."""

    params: float
    optimizer: str
    dtype: str
    ranks: int
    parts: tuple[Part, ...]
    total_bytes: float
    least_bytes: float  # without the copy in half precision, which the master gives again
    write_gbps: Known[float]
    read_gbps: Known[float]
    save_s: Known[float]
    load_s: Known[float]
    restore_gbps: float  # that reads all of it in RESTORE_GOAL_S
    interval_s: float | None
    share_percent: Known[float]
    changes: tuple[Change, ...]

    @property
    def sum_told(self) -> str:
        """2 + 4 + 4 + 4 = 14 B."""
        told = " + ".join(f"{part.bytes_per_param:g}" for part in self.parts)
        whole = sum(part.bytes_per_param for part in self.parts)
        return f"{told} = {whole:g} B" if len(self.parts) > 1 else f"{whole:g} B"


def held(name: str, value: float, low: float, high: float) -> float:
    """The value; UsageError where it is no number between both."""
    if not (math.isfinite(value) and low <= value <= high):
        raise UsageError(f"{name} {value:g} is out of range", f"from {low:g} to {high:g}")
    return value


def layout(optimizer: str, dtype: str = "bf16") -> tuple[Part, ...]:
    """What is kept of each parameter; UsageError for a word that has no row."""
    if optimizer not in _MOMENTS:
        raise UsageError(
            f"--optimizer {optimizer!r} is not known", f"one of {', '.join(OPTIMIZERS)}"
        )
    if dtype not in DTYPES:
        raise UsageError(f"--dtype {dtype!r} is not known", f"one of {', '.join(DTYPES)}")
    weights = Part(f"{dtype} weights", float(DTYPES[dtype]))
    # Who computes in fp32 steps the weights themselves; who has no optimizer saves weights alone.
    master = () if dtype == "fp32" or optimizer == "none" else (_MASTER,)
    return (weights, *master, *_MOMENTS[optimizer])


def bytes_per_param(parts: tuple[Part, ...]) -> float:
    """The sum of the parts."""
    return sum(part.bytes_per_param for part in parts)


def seconds(size_bytes: float, rate_gbps: Known[float]) -> Known[float]:
    """bytes / rate; a rate that is not known leaves the time unknown."""
    return rate_gbps if isinstance(rate_gbps, Missing) else size_bytes / (rate_gbps * 1e9)


def share_percent(stall_s: Known[float], interval_s: float | None) -> Known[float]:
    """Of the run, where each interval of training is followed by a stall."""
    if isinstance(stall_s, Missing):
        return stall_s
    if interval_s is None:
        return Missing("not-asked", "needs --interval, such as --interval 30m")
    return 100.0 * stall_s / (interval_s + stall_s)


def project(
    params: float, *, optimizer: str = "adamw", dtype: str = "bf16", ranks: int = 1,
    write_gbps: Known[float] = NO_WRITE, read_gbps: Known[float] = NO_READ,
    interval_s: float | None = None,
) -> Projection:  # fmt: skip
    """Bytes by part, times at the speeds that were measured, and what would make it less.

    UsageError where a number cannot be one of a model or a measurement.
    """
    held("--model-params", params, 1, 1e16)
    held("--ranks", ranks, 1, 1e7)
    for name, rate in (("the speed of writing, GB/s,", write_gbps),
                       ("the speed of reading, GB/s,", read_gbps)):  # fmt: skip
        if not isinstance(rate, Missing):
            held(name, rate, 1e-6, 1e9)
    if interval_s is not None:
        held("--interval", interval_s, 1e-3, 1e9)
    parts = layout(optimizer, dtype)
    total = params * bytes_per_param(parts)
    copied = parts[0].bytes_per_param if _MASTER in parts else 0.0
    save = seconds(total, write_gbps)
    return Projection(
        params=params, optimizer=optimizer, dtype=dtype, ranks=ranks, parts=parts,
        total_bytes=total, least_bytes=total - params * copied,
        write_gbps=write_gbps, read_gbps=read_gbps,
        save_s=save, load_s=seconds(total, read_gbps),
        restore_gbps=total / RESTORE_GOAL_S / 1e9, interval_s=interval_s,
        share_percent=share_percent(save, interval_s),
        changes=tuple(_changes(parts, optimizer, dtype, write_gbps)),
    )  # fmt: skip


def _changes(
    parts: tuple[Part, ...], optimizer: str, dtype: str, write_gbps: Known[float]
) -> Iterator[Change]:
    """Each by itself, against the save as it is."""
    whole = bytes_per_param(parts)
    twice = "" if isinstance(write_gbps, Missing) else f", {2 * write_gbps:.3g} GB/s"
    yield Change(f"storage that is written twice as fast{twice}", 0.5)
    if optimizer == "adamw":
        less = bytes_per_param(layout("adamw-8bit", dtype)) / whole
        yield Change("moments of 8 bit (adamw-8bit)", less)
    if _MASTER in parts:
        without = 1 - parts[0].bytes_per_param / whole
        yield Change(f"no {parts[0].name} beside the master copy, which gives them again", without)
