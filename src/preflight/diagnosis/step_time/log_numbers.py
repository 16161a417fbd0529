"""How well the devices are used: MFU by a log's own figures, against what is good."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Number, Sign
from preflight.diagnosis.step_time.log_run import Run, median_of
from preflight.expect.models import model_of
from preflight.model import Missing

#: Percent of the dense bf16 peak, of dense models of 7e9 parameters and more: published runs reach
#: 35 to 56 (BLOOM, Llama 3, Megatron-LM on A100 and H100, MegaScale); below 25 much is lost, and
#: above 60 a formula counts what is computed twice.
GOOD, POOR, ODD = 35.0, 25.0, 60.0
_LARGE = 7e9
#: 6 FLOP for a parameter and token: forward and backward, without attention (PaLM, appendix B).
_FLOP = 6.0


def numbers_of(run: Run, asked: Asked) -> Iterator[Number]:
    """MFU where it can be reckoned, else what the log says of the speed."""
    params = asked.params or amount(run.log.told.get("params", ""))
    gpu = asked.gpu or run.log.told.get("gpu", "")
    reached, formula = _tflops(run, params, asked)
    peak = _peak(gpu)
    if reached and peak:
        yield _mfu(reached / peak * 100, params, f"{formula}; {peak:g} TFLOP/s dense bf16 of {gpu}",
                   len(run.kept))  # fmt: skip
    elif reached:
        yield Number("model FLOP", reached, "TFLOP/s a GPU", n=len(run.kept), source=formula)
    else:
        for name, unit in (("tokens_per_s_gpu", "tokens/s a GPU"), ("tokens_per_s", "tokens/s"),
                           ("samples_per_s", "samples/s")):  # fmt: skip
            value = _middle(run, name)
            if value:
                yield Number("speed", value, unit, n=len(run.kept), source=name)
                return


def mfu_sign(run: Run, numbers: list[Number]) -> Iterator[Sign]:
    """A large model far below what others reach."""
    for one in numbers:
        if one.name == "MFU" and one.is_good is False:
            yield Sign(
                "low-mfu", f"MFU {one.value:.3g} %: {one.good}; {one.source}", confidence="medium",
                evidence=(run.evidence(run.kept[-1]),),
            )  # fmt: skip


def _mfu(percent: float, params: float | None, source: str, n: int) -> Number:
    if not params or params < _LARGE:
        return Number("MFU", percent, "%", n=n, source=source,
                      good="what is good is known of models from 7e9 parameters on")  # fmt: skip
    good = f"{GOOD:g} to 56 % is good for a dense model of this size, below {POOR:g} % is poor"
    verdict = None if percent > ODD or POOR <= percent < GOOD else percent >= GOOD
    return Number("MFU", percent, "%", n=n, low=GOOD, source=source, good=good, is_good=verdict)


def _tflops(run: Run, params: float | None, asked: Asked) -> tuple[float | None, str]:
    """Of one GPU: as it is told, else 6 x parameters x tokens/s."""
    told = _middle(run, "tflops_gpu")
    if told:
        return told, f"{told:.4g} TFLOP/s a GPU as the log tells (median)"
    rate, gpus = _middle(run, "tokens_per_s_gpu"), 1.0
    if not rate:
        rate = _middle(run, "tokens_per_s") or _tokens_by_batch(run)
        gpus = float(asked.gpus or amount(run.log.told.get("gpus", "")) or 0)
    if not rate or not params or not gpus:
        return None, ""
    formula = f"6 x {params:.3g} parameters x {rate / gpus:,.0f} tokens/s a GPU, without attention"
    return _FLOP * params * rate / gpus / 1e12, formula


def _tokens_by_batch(run: Run) -> float | None:
    """Sequences of a step x their length / its time."""
    batch = _middle(run, "batch_samples") or amount(run.log.told.get("global_batch", ""))
    length = _middle(run, "actual seqlen") or amount(run.log.told.get("sequence", ""))
    if not batch or not length or run.relative:
        return None
    return batch * length / run.spread.median


def _middle(run: Run, name: str) -> float | None:
    values = run.series.values(name)
    found = median_of([values[at] for at in run.kept])
    return found if found and math.isfinite(found) and found > 0 else None


def amount(text: str) -> float | None:
    """7392727040, "16,345,177", "7.39 B"."""
    match = re.match(r"\s*([\d.,]+)\s*([KMBT]?)", text or "")
    if not match:
        return None
    try:
        value = float(match[1].replace(",", ""))
    except ValueError:
        return None
    return value * {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[match[2]] or None


def _peak(gpu: str) -> float | None:
    """TFLOP/s, dense bf16; None where the model is not known."""
    if not gpu:
        return None
    model = model_of(gpu)
    if isinstance(model, Missing) or isinstance(model.half_tflops, Missing):
        return None
    return model.half_tflops
