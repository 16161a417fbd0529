"""What a profiler's trace tells of each step of a rank. Times are microseconds (`_us`)."""

from __future__ import annotations

from msgspec import Struct, field

#: What kernels do; `copy` and `set` are of memory.
KERNEL_CLASSES = ("gemm", "attention", "norm", "elementwise", "optimizer", "embedding",
                  "communication", "copy", "set", "other")  # fmt: skip
#: Who owns the time in which a device with work to do stands idle, as far as the trace shows it.
IDLE_OWNERS = ("loader", "host", "sync", "communication", "allocator", "compile", "gc", "save",
               "kernel-gap", "unknown")  # fmt: skip


#: What a trace may lack.
TRACE_LACKS = {
    "steps": "no ProfilerStep: the schedule's profiler.step() was not called",
    "kernels": "nothing of a device: ProfilerActivity.CUDA was not asked for, or there is none",
    "launches": "no calls of the runtime: which step and which call a kernel belongs to",
    "operators": "nothing of the host: ProfilerActivity.CPU was not asked for",
    "python stacks": "with_stack=True was not given",
    "group names": "collectives without the group they belong to",
    "sequence numbers": "collectives without their numbers",
    "rank": "whose trace it is: no distributedInfo",
}


class Collective(Struct, frozen=True):
    """One collective as one rank saw it. Joined across ranks by group, seq and name: no clock.
    Where the trace has no sequence numbers, `counted`: seq is its place among those of its group
    and name within the step, from 0, and the step belongs to what it is joined by."""

    group: str  # as the framework numbers it; "" where the trace does not tell it
    seq: int
    name: str  # all_reduce, _allgather_base ...
    step: int  # of the trace, -1 outside of steps
    start_us: float
    duration_us: float
    bytes: int = 0
    ranks: int = 0  # of the group
    dtype: str = ""
    counted: bool = False


class TraceStep(Struct):
    """One step: ProfilerStep#N; of a trace without any, the whole is step -1.

    Work of the device belongs to the step that launched it. The step lasts from its begin on the
    host, or from the end of the work of the step before where that is later, to its end on the
    host, or to the end of its own work where that is later: so steps of a device that lags follow
    each other, and `busy_us` and `idle_us` together are `wall_us`. Times of the host (loader,
    optimizer, sync, gc, save ...) are those within the step on the host, `host_us` long.
    """

    number: int
    start_us: float
    wall_us: float
    host_us: float = 0.0
    #: Device time by class, each class merged over streams.
    classes_us: dict[str, float] = field(default_factory=dict)
    busy_us: float = 0.0  # any kernel or copy
    compute_us: float = 0.0  # any kernel but of communication
    exposed_comm_us: float = 0.0  # communication with no compute beside it
    exposed_h2d_us: float = 0.0  # copies to the device with no kernel of computing beside them
    h2d_us: float = 0.0
    h2d_bytes: int = 0
    pageable_bytes: int = 0  # of them, from memory that is not pinned
    idle_us: dict[str, float] = field(default_factory=dict)  # by IDLE_OWNERS
    loader_us: float = 0.0  # in enumerate(DataLoader), whatever the device does meanwhile
    loader_idle_us: float = 0.0  # of it, with the device idle
    optimizer_us: float = 0.0  # on the host
    sync_us: float = 0.0  # the host waits for the device
    syncs: int = 0
    allocs: int = 0  # cudaMalloc and cudaFree
    alloc_us: float = 0.0
    gc_us: float = 0.0
    compile_us: float = 0.0
    save_us: float = 0.0
    launches: int = 0
    short_kernels: int = 0  # shorter than the call that launched them
    kernels: int = 0
    kernel_median_us: float = 0.0
    queue_median: float = 0.0  # kernels launched and not begun, when one is launched
    #: On the host, where annotated; of a run without a device also what operators take.
    forward_us: float = 0.0
    backward_us: float = 0.0
    comm_us: float = 0.0  # all communication; of a run without a device that of the host


class KernelTotal(Struct, frozen=True):
    """A kernel over all steps."""

    name: str
    kind: str  # of KERNEL_CLASSES
    count: int
    total_us: float
    median_us: float


class RankTrace(Struct):
    """One trace. `has_device`: kernels of a GPU are in it. Where they are of several devices, those
    of the one with most work are told."""

    source: str
    rank: int | None = None
    world: int | None = None
    host: str = ""
    device: str = ""  # its model
    backend: str = ""
    has_device: bool = False
    events: int = 0
    steps: tuple[TraceStep, ...] = ()
    device_first_us: float = 0.0  # when its first work began
    device_last_us: float = 0.0  # and its last ended
    collectives: tuple[Collective, ...] = ()  # of the last steps, bounded
    kernels: tuple[KernelTotal, ...] = ()  # the largest
    launch_limited: bool = False  # CUDA graphs: launches do not stand for kernels
    #: What was repaired or left out: "12 events with bare N/A", "cut at byte 1,234".
    damage: tuple[str, ...] = ()
    lost_events: int = 0
    truncated: bool = False
    lacks: tuple[str, ...] = ()  # of TRACE_LACKS: what was not recorded


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
