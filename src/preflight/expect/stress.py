"""What a sound device does under load, by its model, its precision and its link."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.expect.models import model_of
from preflight.expect.pcie import link_gbps
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.stress import Gemm, StressAttention, StressDevice
from preflight.model import NOT_IN_INPUT, Known, Missing

#: How far the worst of some ten million elements of a product may be from fp64's, in units of the
#: square root of the inner length, which is the size of an element; the largest is 6 of them.
#: fp32 and tf32 round while they add up: tf32 keeps 10 bits of each factor, and cutting the rest
#: off leaves up to 6 x 2^-10. What bf16 and fp16 round is the result, by half of its last bit (6 x
#: 2^-9, 6 x 2^-12), and partial sums where a product is split. fp8 adds up in some 14 bits and is
#: told in bf16. A bit that flips in an exponent or a high digit is beyond all of these.
_PRODUCT = {"fp32": 1e-4, "tf32": 2e-2, "bf16": 0.1, "fp16": 2e-2, "fp8": 0.2}
#: Attention against fp32's, relative, over all of it: the last bit of its precision, some times.
_ATTENTION = {"fp32": 1e-4, "bf16": 2e-2, "fp16": 5e-3}
#: The dense peak of a precision, in that of bf16 and fp16.
_PEAKS = {"bf16": 1.0, "fp16": 1.0, "tf32": 0.5, "fp8": 2.0}
#: GDDR keeps the check bits of ECC in line with the data, and reads them with it.
_INLINE_ECC = 0.85
#: Transfers a second and lane by generation (PCI Express Base Specification 6.0, 1.2).
_GTPS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_NO_BEST = Missing("not-applicable", "the best that was measured is known of bf16, fp16 and fp8")
_NO_PEAK = Missing("not-applicable", "the peak that is compared is that of tensor cores")
_TABLE = "checks/data/gpus.yaml"


def stress_product(_host: Host, one: Gemm) -> Known[Bound]:
    """How far the worst element of a product may be from fp64's, by its precision."""
    if one.precision not in _PRODUCT:
        return Missing("not-applicable", f"no tolerance is known for {one.precision}")
    return Bound(_PRODUCT[one.precision], f"what {one.precision} rounds")


def stress_attention(_host: Host, one: StressAttention) -> Known[Bound]:
    """How far attention may be from fp32's, by its precision."""
    if one.precision not in _ATTENTION:
        return Missing("not-applicable", f"no tolerance is known for {one.precision}")
    return Bound(_ATTENTION[one.precision], f"what {one.precision} rounds")


def stress_best(_host: Host, one: Gemm) -> Known[Bound]:
    """TFLOP/s: the best that was measured on this model."""
    model = model_of(one.product)
    if isinstance(model, Missing):
        return model
    column = {"bf16": "gemm_tflops", "fp16": "gemm_tflops", "fp8": "gemm_fp8_tflops"}
    if one.precision not in column:
        return _NO_BEST
    name = column[one.precision]
    best = getattr(model, name)
    if isinstance(best, Missing):
        text = f"the row of {one.product} in {_TABLE} has no {name}; add it"
        return Missing("not-applicable", text)
    return Bound(best, f"the best measured on {one.product}")


def stress_peak(_host: Host, one: Gemm) -> Known[Bound]:
    """TFLOP/s: the dense peak of the model's datasheet."""
    model = model_of(one.product)
    if isinstance(model, Missing):
        return model
    if one.precision not in _PEAKS:
        return _NO_PEAK
    if isinstance(model.half_tflops, Missing):
        text = f"the row of {one.product} in {_TABLE} has no half_tflops; add it"
        return Missing("not-applicable", text)
    return Bound(model.half_tflops * _PEAKS[one.precision], f"peak of {one.product}")


def stress_memory(host: Host, one: StressDevice) -> Known[Bound]:
    """GB/s of the model's memory; of GDDR less where ECC is on, or may be."""
    model = model_of(one.product)
    if isinstance(model, Missing):
        return model
    if isinstance(model.memory_gbps, Missing):
        text = f"the row of {one.product} in {_TABLE} has no memory_gbps; add it"
        return Missing("not-applicable", text)
    gpu = _gpu(host, one.name)
    if model.hbm or (gpu and _without_ecc(gpu)):
        return Bound(model.memory_gbps, f"{one.product} by design")
    text = f"{one.product} by design, {_INLINE_ECC:.0%} of it beside ECC"
    return Bound(model.memory_gbps * _INLINE_ECC, text)


def stress_copy(host: Host, one: StressDevice) -> Known[Bound]:
    """GB/s that the link to the host carries, by what card and slot can both do."""
    gpu = _gpu(host, one.name)
    if gpu is None:
        return NOT_IN_INPUT if isinstance(host.gpus, tuple) else host.gpus
    model = model_of(one.product)
    if not isinstance(model, Missing) and model.form == "superchip":
        return Missing("not-applicable", "NVLink-C2C joins it with its processor, not PCIe")
    generation, width = gpu.pcie.gen_max, gpu.pcie.width_max
    if isinstance(generation, Missing) or isinstance(width, Missing):
        return generation if isinstance(generation, Missing) else NOT_IN_INPUT
    if generation not in _GTPS:
        return Missing("not-applicable", f"PCIe generation {generation} has no row in stress.py")
    told = f"PCIe {generation}.0 x{width}, what card and slot can both do"
    return Bound(link_gbps(_GTPS[generation], width), told)


def _without_ecc(gpu: Gpu) -> bool:
    mode = gpu.ecc.mode
    return mode.kind == "not-applicable" if isinstance(mode, Missing) else mode == "Disabled"


def _gpu(host: Host, name: str) -> Gpu | None:
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    return next((gpu for gpu in gpus if gpu.name == name), None)
