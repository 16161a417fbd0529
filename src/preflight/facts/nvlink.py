"""NVLink as one GPU reports it: which links are up, how fast, and what went wrong on them.

Rates are GB/s of one link and one direction, as `nvidia-smi nvlink -s` prints them.
"""

from __future__ import annotations

from msgspec import Struct, field

from preflight.model import NOT_IN_INPUT, Known


class NvlinkErrors(Struct, frozen=True):
    """Counts over all links of the GPU, since the driver was loaded or the GPU was reset.

    NVLink 1 to 4 have `replay`, `recovery` and `crc`, NVLink 5 (Blackwell) the others.
    Bit error rates are those of the worst link, after error correction.
    """

    line: int = 0
    probe: str = ""
    replay: Known[int] = NOT_IN_INPUT
    recovery: Known[int] = NOT_IN_INPUT
    crc: Known[int] = NOT_IN_INPUT  # all lanes
    packets: Known[int] = NOT_IN_INPUT  # malformed, overrun, received with errors, discarded
    recovery_failed: Known[int] = NOT_IN_INPUT
    recovered: Known[int] = NOT_IN_INPUT
    effective: Known[int] = NOT_IN_INPUT
    symbol: Known[int] = NOT_IN_INPUT
    effective_ber: Known[float] = NOT_IN_INPUT
    symbol_ber: Known[float] = NOT_IN_INPUT


class Nvlink(Struct, frozen=True):
    """The links of one GPU. Of an excerpt no count is known, and no zero."""

    line: int = 0
    probe: str = ""
    listed: Known[int] = NOT_IN_INPUT
    up: Known[int] = NOT_IN_INPUT
    down: Known[tuple[int, ...]] = NOT_IN_INPUT  # the numbers of those that are listed and not up
    rate_min_gbps: Known[float] = NOT_IN_INPUT
    supported: Known[int] = NOT_IN_INPUT  # links with the capability "Link is supported"
    errors: Known[NvlinkErrors] = field(default_factory=NvlinkErrors)


class NvlinkGpu(Struct, frozen=True):
    """What one answer tells of one GPU; `index` is that of `nvidia-smi -i`."""

    index: int
    product: Known[str]
    uuid: Known[str]
    line: int
    probe: str
    links: Nvlink


class NvlinkAnswer(Struct, frozen=True):
    """One answer of `nvidia-smi nvlink`. `explained`: a sentence of NVML stands in it."""

    gpus: tuple[NvlinkGpu, ...]
    explained: bool = False
