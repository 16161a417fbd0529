"""What a look at running training processes told. Nothing here was asked of the process itself."""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.hangs import Stack
from preflight.model import NOT_IN_INPUT, Known


class ThreadLoad(Struct, frozen=True):
    """A thread over the look: shares of the time, percent."""

    tid: int
    name: str
    cpu_percent: float
    disk_wait_percent: float = 0.0  # in uninterruptible sleep
    states: dict[str, int] = {}  # R, S, D -> how many looks
    wchan: str = ""  # the kernel function it mostly slept in


class ProcessLook(Struct, frozen=True):
    """One process of a job: a rank, or one of its loader's workers (`parent` is a rank)."""

    host: str
    pid: int
    command: str
    parent: int | None = None
    role: str = "rank"  # rank | worker | other
    rank: Known[int] = NOT_IN_INPUT  # RANK of its environment
    local_rank: Known[int] = NOT_IN_INPUT
    seconds: float = 0.0  # looked at
    looks: int = 0
    cpu_percent: Known[float] = NOT_IN_INPUT  # 100 is one core
    cores_allowed: Known[int] = NOT_IN_INPUT
    disk_wait_percent: Known[float] = NOT_IN_INPUT
    asleep_percent: Known[float] = NOT_IN_INPUT  # its first thread
    waits_per_s: Known[float] = NOT_IN_INPUT  # how often its first thread began to wait
    read_bytes_per_s: Known[float] = NOT_IN_INPUT
    write_bytes_per_s: Known[float] = NOT_IN_INPUT
    rss_bytes: Known[int] = NOT_IN_INPUT
    rss_growth_bytes: Known[int] = NOT_IN_INPUT
    major_faults_per_s: Known[float] = NOT_IN_INPUT
    swapped_bytes: Known[int] = NOT_IN_INPUT
    run_wait_percent: Known[float] = NOT_IN_INPUT  # ready, and no processor for it
    throttled_percent: Known[float] = NOT_IN_INPUT  # periods in which its cgroup was held back
    processor_limit: Known[float] = NOT_IN_INPUT  # of that cgroup, in processors; 0: none
    stopped: bool = False
    trains: bool = False  # a framework of training is loaded, or it has a RANK or a GPU
    wchan: str = ""  # where it mostly slept uninterruptibly
    line: int = 0  # of the raw
    threads: tuple[ThreadLoad, ...] = ()
    stacks: Known[tuple[Stack, ...]] = NOT_IN_INPUT  # by py-spy, several samples
    ended: str = ""  # it ended meanwhile, or could not be looked at: why


class GpuLook(Struct, frozen=True):
    """A GPU that the processes use, over the look: medians."""

    host: str
    index: int
    pids: tuple[int, ...] = ()
    product: str = ""
    sm_percent: Known[float] = NOT_IN_INPUT
    memory_percent: Known[float] = NOT_IN_INPUT
    power_w: Known[float] = NOT_IN_INPUT
    power_limit_w: Known[float] = NOT_IN_INPUT
    sm_clock_mhz: Known[float] = NOT_IN_INPUT
    sm_clock_max_mhz: Known[float] = NOT_IN_INPUT
    temperature_c: Known[float] = NOT_IN_INPUT
    reasons: Known[int] = NOT_IN_INPUT  # clocks event bits seen, or-ed
    pcie_rx_mbps: Known[float] = NOT_IN_INPUT
    pcie_tx_mbps: Known[float] = NOT_IN_INPUT


class HostLook(Struct, frozen=True):
    """One host of the job."""

    host: str
    processes: tuple[ProcessLook, ...] = ()
    gpus: Known[tuple[GpuLook, ...]] = NOT_IN_INPUT
    #: In which something waited for it, percent of the look (/proc/pressure): io, memory, cpu.
    pressure: Known[dict[str, float]] = NOT_IN_INPUT
    disk_busy_percent: Known[dict[str, float]] = NOT_IN_INPUT  # by device
    network_mbps: Known[dict[str, float]] = NOT_IN_INPUT  # by interface, both ways
    ras: Known[str] = NOT_IN_INPUT  # what NCCL's service says
    troubles: tuple[str, ...] = ()  # what could not be looked at, and why
    spy: Known[str] = NOT_IN_INPUT  # py-spy's path
    seconds: float = 0.0


class KeptLooks(Struct):
    """The looks of a capture."""

    source: str
    hosts: tuple[HostLook, ...] = ()
    damage: str = ""  # what of the file could not be read
