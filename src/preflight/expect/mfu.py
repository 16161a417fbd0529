"""How much of what its GPUs can do a training run turned into training, and where the rest went."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from preflight.expect.models import model_of
from preflight.facts.training import Training
from preflight.model import NOT_IN_INPUT, Known, Missing

#: Parts of a step beside forward and backward, in the order in which the ledger has them.
_LOST = {
    "communication": "exposed communication", "data": "data", "copy": "copies",
    "optimizer": "optimizer", "rest": "rest",
}  # fmt: skip
_NO_GPU = Missing("not-applicable", "processors have no one peak to be held against")


class Rung(Struct, frozen=True):
    """One step of the way down from the peak: what is lost there, of one GPU."""

    name: str
    tflops: float
    percent: float  # of the peak


class Mfu(Struct, frozen=True):
    """Model FLOP utilisation. The rungs of the ledger add up to the peak: 100 %."""

    percent: float
    tflops: float  # of one GPU
    peak_tflops: float
    formula: str
    source: str  # of the peak
    ledger: tuple[Rung, ...]


def mfu(run: Training) -> Known[Mfu]:
    """tokens/s x FLOP per token / (peak x GPUs); the FLOP are those of the model, without what is
    computed twice (Chowdhery et al. 2022, PaLM, appendix B)."""
    peak = _peak_tflops(run)
    if isinstance(peak, Missing):
        return peak
    rate, flops, world = run.tokens_per_s, run.flops_per_token, run.world
    for one in (rate, flops, world):
        if isinstance(one, Missing):
            return one
    assert isinstance(rate, float) and isinstance(flops, float) and isinstance(world, int)
    tflops = rate * flops / world / 1e12
    (product,) = run.products if isinstance(run.products, tuple) else ("",)
    return Mfu(
        percent=100.0 * tflops / peak,
        tflops=tflops,
        peak_tflops=peak,
        formula=f"{rate:,.0f} tokens/s x {flops:.3g} FLOP / ({peak:g} TFLOP/s x {world} GPUs)",
        source=f"NVIDIA's datasheet of {product}, dense {run.precision}; checks/data/gpus.yaml",
        ledger=tuple(_ledger(run, tflops, peak)),
    )


def _peak_tflops(run: Training) -> Known[float]:
    if run.device != "cuda":
        return run.device if isinstance(run.device, Missing) else _NO_GPU
    if isinstance(run.products, Missing) or not run.products:
        return NOT_IN_INPUT
    if len(run.products) > 1:
        return Missing("not-applicable", "its GPUs are of several models")
    if run.precision not in ("bf16", "fp16"):
        return Missing("not-applicable", "its peak is known in bf16 and fp16 only")
    model = model_of(run.products[0])
    if isinstance(model, Missing):
        return model
    if isinstance(model.half_tflops, Missing):
        text = f"the row of {run.products[0]} in checks/data/gpus.yaml has no half_tflops; add it"
        return Missing("not-applicable", text)
    return model.half_tflops


def _ledger(run: Training, tflops: float, peak: float) -> Iterator[Rung]:
    """Waiting has no FLOP rate: it costs its share of the time at the rate that was reached while
    computing. Checkpoints are left out, as they are of tokens/s."""
    shares = {part: share for part, share in run.shares.items() if part != "checkpoint"}
    whole = sum(shares.values())
    lost = {part: shares.get(part, 0.0) / whole if whole > 0 else 0.0 for part in _LOST}
    computing = 1.0 - sum(lost.values())
    reached = tflops / computing if computing > 0 else tflops
    yield Rung("kernels slower than the peak", peak - reached, 100.0 * (peak - reached) / peak)
    for part, name in _LOST.items():
        yield Rung(name, lost[part] * reached, 100.0 * lost[part] * reached / peak)
    yield Rung("MFU", tflops, 100.0 * tflops / peak)
