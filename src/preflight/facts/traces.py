"""What a profiler's trace tells of each step of a rank. Times are microseconds (`_us`)."""

from __future__ import annotations

from msgspec import Struct, field

#: What kernels do; `copy` and `set` are of memory.
KERNEL_CLASSES = ("gemm", "attention", "norm", "elementwise", "optimizer", "embedding",
                  "communication", "copy", "set", "other")  # fmt: skip
#: Who owns the time in which a device with work to do stands idle, as far as the trace shows it.
IDLE_OWNERS = ("loader", "host", "sync", "communication", "allocator", "compile", "gc", "save",
               "kernel-gap", "unknown")  # fmt: skip


class Collective(Struct, frozen=True):
    """One collective as one rank saw it. Joined across ranks by group, seq and name: no clock."""

    group: str
    seq: int
    name: str  # all_reduce, _allgather_base ...
    step: int  # of the trace, -1 outside of steps
    start_us: float
    duration_us: float
    bytes: int = 0
    ranks: int = 0  # of the group
    dtype: str = ""


class TraceStep(Struct):
    """One step: ProfilerStep#N; of a trace without any, the whole is step -1."""

    number: int
    start_us: float
    wall_us: float
    #: Device time by class, each class merged over streams.
    classes_us: dict[str, float] = field(default_factory=dict)
    busy_us: float = 0.0  # any kernel or copy
    compute_us: float = 0.0  # any kernel but of communication
    exposed_comm_us: float = 0.0  # communication with no compute beside it
    exposed_h2d_us: float = 0.0
    h2d_us: float = 0.0
    h2d_bytes: int = 0
    pageable_bytes: int = 0
    idle_us: dict[str, float] = field(default_factory=dict)  # by IDLE_OWNERS
    loader_us: float = 0.0  # in enumerate(DataLoader), whatever the device does meanwhile
    loader_idle_us: float = 0.0  # of it, with the device idle
    optimizer_us: float = 0.0  # on the host
    sync_us: float = 0.0  # the host waits for the device
    allocs: int = 0  # cudaMalloc and cudaFree
    alloc_us: float = 0.0
    gc_us: float = 0.0
    compile_us: float = 0.0
    save_us: float = 0.0
    launches: int = 0
    short_kernels: int = 0  # shorter than the call that launched them
    kernels: int = 0
    kernel_median_us: float = 0.0
    queue_median: float = 0.0  # kernels launched and not begun
    forward_us: float = 0.0  # on the host, where annotated or of a CPU run
    backward_us: float = 0.0
    comm_us: float = 0.0  # all communication


class KernelTotal(Struct, frozen=True):
    """A kernel over all steps."""

    name: str
    kind: str  # of KERNEL_CLASSES
    count: int
    total_us: float
    median_us: float


class RankTrace(Struct):
    """One trace. `has_device`: kernels of a GPU are in it."""

    source: str
    rank: int | None = None
    world: int | None = None
    host: str = ""
    device: str = ""  # its model
    backend: str = ""
    has_device: bool = False
    events: int = 0
    steps: tuple[TraceStep, ...] = ()
    collectives: tuple[Collective, ...] = ()  # of the last steps, bounded
    kernels: tuple[KernelTotal, ...] = ()  # the largest
    launch_limited: bool = False  # CUDA graphs: launches do not stand for kernels
    #: What was repaired or left out: "12 events with bare N/A", "cut at byte 1,234".
    damage: tuple[str, ...] = ()
    lost_events: int = 0
    truncated: bool = False
    lacks: tuple[str, ...] = ()  # what was not recorded: kernels, python stacks, group names


class Operation(Struct, frozen=True):
    """One operation of a worker in a timeline of a pipeline."""

    worker: int
    stage: int | None
    dp_rank: int | None
    step: int
    kind: str  # forward-compute, backward-compute, forward-send ...
    start_us: float
    duration_us: float
    micro_batch: int = 0
    chunk: int = 0


class Timeline(Struct):
    """Operations of all workers."""

    source: str
    operations: tuple[Operation, ...] = ()
    damage: tuple[str, ...] = ()
