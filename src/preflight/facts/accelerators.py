"""Accelerators of other makers than NVIDIA: which there are, and what their tools say."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Accelerator(Struct, frozen=True):
    """One NPU or GPU in the words of npu-smi or rocm-smi."""

    name: str  # npu0, npu0.1 (its second chip), card3
    vendor: str  # Huawei Ascend, AMD
    product: Known[str] = NOT_IN_INPUT  # 910B3, AMD Instinct MI300X
    address: Known[str] = NOT_IN_INPUT  # 0000:c1:00.0
    health: Known[str] = NOT_IN_INPUT  # OK, Warning, Alarm, Critical, UNKNOWN
    temperature_c: Known[float] = NOT_IN_INPUT
    power_w: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class AcceleratorAnswer(Struct, frozen=True):
    """What one tool tells: the accelerators, and the version of the driver or of the tool."""

    each: tuple[Accelerator, ...]
    version: Known[str] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class AcceleratorCount(Struct, frozen=True):
    """How many there are, by who says so."""

    on_pci: Known[int] = NOT_IN_INPUT
    bound: Known[int] = NOT_IN_INPUT  # of those on PCI, to a driver
    listed: Known[int] = NOT_IN_INPUT
    version: Known[str] = NOT_IN_INPUT  # of the driver (AMD), of npu-smi, which comes with it
    line: int = 1
    probe: str = ""
