"""Which number counts: what the user states, else what was measured, else a datasheet."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from preflight.estimate.compute import flops_per_token
from preflight.estimate.figures import Figure, computed, stated
from preflight.estimate.measured import NO_POWER, NO_RATE, Measured
from preflight.estimate.run import Run
from preflight.expect.models import model_of
from preflight.model import Known, Missing

_NAMED = "such as 'NVIDIA H100 80GB HBM3'"
_PEAK = "--peak TFLOP/s, its dense bfloat16"


class Speeds(Struct, frozen=True):
    """Of this run: FLOP/s of one GPU beside and without exposed communication; GB/s; W."""

    reached_flops_per_s: Known[Figure]
    computing_flops_per_s: Known[Figure]
    #: Of a step, that the run which was measured waited for others; of a stated MFU unknown.
    communication_percent: Known[Figure]
    busbw_gbps: Known[Figure]
    write_gbps: Known[Figure]
    read_gbps: Known[Figure]
    power_w: Known[Figure]
    product: str


def speeds(run: Run, told: Measured) -> Speeds:
    """What the run is reckoned with."""
    product = run.gpu or (told.products[0] if len(told.products) == 1 else "")
    reached, waiting = told.flops_per_s, told.communication_percent
    if run.mfu_percent is not None:
        reached = _of_stated_mfu(run.mfu_percent, run.peak_tflops, product)
        waiting = Missing("not-asked", "a stated MFU contains the communication of its run")
    computing = reached
    if isinstance(reached, Figure) and isinstance(waiting, Figure):
        computing = computed(lambda rate, lost: rate / (1 - lost / 100), reached, waiting)
    return Speeds(
        reached_flops_per_s=reached, computing_flops_per_s=computing,
        communication_percent=waiting, product=product,
        busbw_gbps=_either(run.busbw_gbps, "--busbw", told.busbw_gbps),
        write_gbps=_either(run.write_gbps, "--write-speed", told.write_gbps),
        read_gbps=_either(run.read_gbps, "--read-speed", told.read_gbps),
        power_w=_power(run, told, product),
    )  # fmt: skip


def _either(said: float | None, option: str, found: Known[Figure]) -> Known[Figure]:
    return found if said is None else stated(said, option)


def _of_stated_mfu(mfu_percent: float, said: float | None, product: str) -> Known[Figure]:
    """MFU x peak in TFLOP/s: what was said, else the datasheet's."""
    if said is not None:
        source = f"--mfu {mfu_percent:g} of --peak {said:g} TFLOP/s"
        return replace(stated(mfu_percent / 100 * said * 1e12, ""), source=source)
    if not product:
        return Missing("not-asked", f"--mfu needs the GPU's peak: --gpu, {_NAMED}, or {_PEAK}")
    model = model_of(product)
    peak = model if isinstance(model, Missing) else model.half_tflops
    if isinstance(peak, Missing):
        takes = f"--gpu takes the name that `nvidia-smi -L` has, {_NAMED}"
        return Missing(peak.kind, f"no peak is known of {product!r}: {_PEAK}; {takes}")
    source = f"--mfu {mfu_percent:g} of {peak:g} TFLOP/s, the datasheet's of {product}"
    return replace(stated(mfu_percent / 100 * peak * 1e12, ""), source=source)


def _power(run: Run, told: Measured, product: str) -> Known[Figure]:
    """What was measured, up to the limit that the model is sold with."""
    if run.power_w is not None:
        return stated(run.power_w, "--power")
    model = model_of(product) if product else NO_POWER
    limit = model if isinstance(model, Missing) else model.power_w
    found = told.power_w
    if isinstance(limit, Missing):
        return found
    if isinstance(found, Missing):
        text = f"{limit:g} W: the limit that {product} is sold with, so the most that it takes"
        return Figure(limit, limit, limit, "datasheet", text)
    return replace(found, high=max(found.high, limit))


def training_s(run: Run, rate: Known[Figure]) -> Known[Figure]:
    """FLOP of the run / (GPUs x FLOP/s of one): the time were nothing waited for."""
    if isinstance(rate, Missing):
        return rate if rate.kind != "not-in-input" else NO_RATE
    whole = flops_per_token(run) * run.tokens
    return computed(lambda one: whole / (run.gpus * one), rate, falling="-")
