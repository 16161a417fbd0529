"""What devices did under load. Rates per second, bytes, shares in percent; distances of products in
units of the square root of their inner length."""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.training import Spread
from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known


class StressDevice(Struct, frozen=True):
    """One device: a GPU, or the host's processors (or a part of them)."""

    name: str  # gpu3 | processors | processors 1
    bus_id: str = ""  # where it is a GPU that nvidia-smi lists; else its name
    uuid: str = ""  # as torch tells it, without GPU-
    product: Known[str] = NOT_IN_INPUT
    ended: Known[bool] = NOT_IN_INPUT  # all its tests came to their end
    trouble: str = ""  # why not: wedged, died, failed, and in which test
    #: Digests of a short training, of attention and of each product, as one text; those of a device
    #: of another model, or that did not come so far, are not compared.
    digest: Known[str] = NOT_IN_INPUT
    peer_digest: Known[str] = NOT_IN_INPUT
    repeats: Known[bool] = NOT_IN_INPUT  # the training twice gave the same
    #: 1e9 bytes a second: a copy within its memory, and the slower of the two directions between it
    #: and pinned memory of the host.
    memory_gbps: Known[float] = NOT_IN_INPUT
    pinned_gbps: Known[float] = NOT_IN_INPUT
    #: Over the soak: the last tenth against the first, in percent of it; and products that changed.
    fading_percent: Known[float] = NOT_IN_INPUT
    soak_s: Known[float] = NOT_IN_INPUT
    soak_differing: Known[int] = NOT_IN_INPUT
    soak_tflops: Known[float] = NOT_IN_INPUT
    soak_least_tflops: Known[float] = NOT_IN_INPUT  # the slowest second of it
    #: Below the median of all GPUs of its model in the host, and how many those are.
    soak_behind_percent: Known[float] = NOT_IN_INPUT
    soak_peers: Known[int] = NOT_IN_INPUT
    pinned_behind_percent: Known[float] = NOT_IN_INPUT
    pinned_peers: Known[int] = NOT_IN_INPUT
    #: The median beside the tests, and how far it is above the air that the chassis takes in.
    gpu_c: Known[float] = NOT_IN_INPUT
    above_inlet_c: Known[float] = NOT_IN_INPUT
    watched_s: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Gemm(Struct, frozen=True):
    """Matrices multiplied in one precision on one device."""

    name: str  # gpu3 bf16
    device: str
    precision: str
    product: Known[str] = NOT_IN_INPUT
    tflops: Known[Spread] = NOT_IN_INPUT
    median_tflops: Known[float] = NOT_IN_INPUT
    worst: Known[float] = NOT_IN_INPUT  # the element farthest from fp64's
    block_worst: Known[float] = NOT_IN_INPUT  # of a block that the host multiplied
    differing: Known[int] = NOT_IN_INPUT  # elements that were others the last time than the first
    #: Below the median of all GPUs of its model in the host, and how many those are.
    behind_percent: Known[float] = NOT_IN_INPUT
    peers: Known[int] = NOT_IN_INPUT
    bus_id: str = ""
    line: int = 0
    probe: str = ""


class Rate(Struct, frozen=True):
    """Bytes by second of the device's memory (copy, triad), or between it and the host."""

    name: str  # gpu3 copy | gpu3 h2d pinned
    device: str
    what: str
    product: Known[str] = NOT_IN_INPUT
    gbps: Known[Spread] = NOT_IN_INPUT  # 1e9 bytes a second
    median_gbps: Known[float] = NOT_IN_INPUT
    bus_id: str = ""
    line: int = 0
    probe: str = ""


class Pattern(Struct, frozen=True):
    """Memory that was written with one pattern and read back."""

    name: str  # gpu3 address
    device: str
    tested_bytes: Known[int] = NOT_IN_INPUT
    errors: Known[int] = NOT_IN_INPUT  # words of 8 bytes
    where: str = ""  # address and bits of the first
    bus_id: str = ""
    line: int = 0
    probe: str = ""


class StressAttention(Struct, frozen=True):
    """Causal attention for one shape on one device."""

    name: str  # gpu3
    shape: str  # batch x heads x heads of keys x length x size of a head
    precision: str
    kernel: Known[str] = NOT_IN_INPUT  # flash | cudnn | efficient | math
    why_not_flash: str = ""
    apart: Known[float] = NOT_IN_INPUT  # relative, L2, to fp32
    tflops: Known[Spread] = NOT_IN_INPUT
    can_flash: Known[bool] = NOT_IN_INPUT  # whether flash attention has kernels for this device
    bus_id: str = ""
    line: int = 0
    probe: str = ""


class Pair(Struct, frozen=True):
    """A copy from one GPU to another."""

    name: str  # gpu0 to gpu3
    reaches: Known[bool] = NOT_IN_INPUT  # by itself; else through the host's memory
    same: Known[bool] = NOT_IN_INPUT
    gbps: Known[Spread] = NOT_IN_INPUT
    median_gbps: Known[float] = NOT_IN_INPUT
    #: Below the median of all pairs that are linked alike, and how many those are.
    link: Known[str] = NOT_IN_INPUT  # nvidia-smi topo's word: NV18, PIX, SYS
    behind_percent: Known[float] = NOT_IN_INPUT
    peers: Known[int] = NOT_IN_INPUT
    direct: Known[bool] = NOT_IN_INPUT  # reaches, where NVLink joins them
    #: The same of pairs that no NVLink joins, or of which it is not known.
    far_percent: Known[float] = NOT_IN_INPUT
    far_peers: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Stress(Struct, frozen=True):
    """One run."""

    cannot: str = ""
    lacks_torch: bool = False
    busy: str = ""
    interrupted: bool = False
    device: Known[str] = NOT_IN_INPUT  # cuda | cpu
    torch: Known[str] = NOT_IN_INPUT
    devices_asked: Known[int] = NOT_IN_INPUT  # 0: all that torch finds
    visible: str = ""  # CUDA_VISIBLE_DEVICES
    seconds: Known[float] = NOT_IN_INPUT
    injected: tuple[str, ...] = ()
    devices: Known[tuple[StressDevice, ...]] = NOT_IN_INPUT
    gemms: Known[tuple[Gemm, ...]] = NOT_IN_INPUT
    memory: Known[tuple[Rate, ...]] = NOT_IN_INPUT
    copies: Known[tuple[Rate, ...]] = NOT_IN_INPUT
    patterns: Known[tuple[Pattern, ...]] = NOT_IN_INPUT
    attention: Known[tuple[StressAttention, ...]] = NOT_IN_INPUT
    pairs: Known[tuple[Pair, ...]] = NOT_IN_INPUT
    watch: Known[Watch] = NOT_IN_INPUT  # NVML beside the tests
    line: int = 1
    probe: str = ""
