"""What a GPU model is by design."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import Known, Missing

_NOT_PROMISED = Missing("not-applicable", "the model promises none")


class Design(Struct, frozen=True, kw_only=True):
    """A row of checks/data/gpus.yaml, whose head explains the fields. What a row leaves out the
    model does not promise."""

    generation: str
    capability: str
    form: str
    repairs: Known[str] = _NOT_PROMISED
    nvlinks: Known[int] = _NOT_PROMISED
    nvlinks_max: Known[int] = _NOT_PROMISED
    nvlink_gbps: Known[float] = _NOT_PROMISED
    nvls_gbps: Known[float] = _NOT_PROMISED
    bridged: bool = False
    nvswitch: bool = False
    pcie_gen: Known[int] = _NOT_PROMISED
    pcie_width: Known[int] = _NOT_PROMISED
    power_w: Known[float] = _NOT_PROMISED
    memory_gbps: Known[float] = _NOT_PROMISED
    hbm: bool = False
    half_tflops: Known[float] = _NOT_PROMISED
    gemm_tflops: Known[float] = _NOT_PROMISED
    gemm_fp8_tflops: Known[float] = _NOT_PROMISED
    source: str
