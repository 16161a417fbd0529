"""What the host lets a training process have: limits, cgroups, shared memory, disks, time."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known

#: The word of the kernel's tools, `max` and `infinity` included: more than any number.
Unlimited = Literal["unlimited"]
UNLIMITED: Unlimited = "unlimited"
Amount = int | Unlimited


class Limit(Struct, frozen=True):
    """A resource limit (getrlimit(2)) of somebody; memlock and stack in bytes, the others count."""

    name: str  # nofile (shell)
    resource: str  # nofile | memlock | nproc | stack
    of: str  # shell | pid 4711 | slurmd.service | systemd's default
    soft: Known[Amount] = NOT_IN_INPUT
    hard: Known[Amount] = NOT_IN_INPUT
    lifted: Known[bool] = NOT_IN_INPUT  # memlock: CAP_IPC_LOCK, so it is not applied
    for_jobs: bool = False  # a service from whose limits those of the jobs come
    line: int = 0
    probe: str = ""


class JobService(Struct, frozen=True):
    """A service that starts jobs, which get its limits: the soft ones."""

    name: str  # slurmd.service
    nofile: Known[Amount] = NOT_IN_INPUT
    memlock: Known[Amount] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class ConfiguredLimit(Struct, frozen=True):
    """What limits.conf(5) gives the user at a login, and what the shell that was asked has."""

    name: str  # nofile soft
    configured: Amount
    running: Known[Amount] = NOT_IN_INPUT
    file: str = ""  # /etc/security/limits.d/90-train.conf
    line: int = 0
    probe: str = ""


class NodeShare(Struct, frozen=True):
    """What a process holds of the memory of one NUMA node, files that it maps left out."""

    node: int
    held_bytes: int


class AskedProcess(Struct, frozen=True):
    """A process that the user named."""

    name: str  # pid 4711
    command: Known[str] = NOT_IN_INPUT
    threads: Known[int] = NOT_IN_INPUT
    open_files: Known[int] = NOT_IN_INPUT
    open_files_percent: Known[float] = NOT_IN_INPUT  # of its soft limit
    nccl: Known[str] = NOT_IN_INPUT  # the version of the library that it has loaded
    nofile: Known[Amount] = NOT_IN_INPUT  # its soft limits
    memlock: Known[Amount] = NOT_IN_INPUT
    nproc: Known[Amount] = NOT_IN_INPUT
    stack: Known[Amount] = NOT_IN_INPUT
    memlock_lifted: Known[bool] = NOT_IN_INPUT  # CAP_IPC_LOCK, so it is not applied
    limits: tuple[Limit, ...] = ()
    cpus_allowed: Known[str] = NOT_IN_INPUT  # of its main thread: 0-47,96-143
    mems_allowed: Known[str] = NOT_IN_INPUT  # nodes: 0-1
    memory_policy: Known[str] = NOT_IN_INPUT  # default | bind:0 | prefer:0 | interleave:0-1
    memory: Known[tuple[NodeShare, ...]] = NOT_IN_INPUT
    gpus_open: Known[tuple[str, ...]] = NOT_IN_INPUT  # bus ids of the GPUs whose files it has open
    line: int = 0
    probe: str = ""


class Binding(Struct, frozen=True):
    """Where a process that the user named may run, and where its GPUs are."""

    name: str  # pid 4711
    gpus: Known[tuple[str, ...]] = NOT_IN_INPUT
    gpu_nodes: Known[tuple[int, ...]] = NOT_IN_INPUT  # the NUMA nodes of these
    near_cpus: Known[str] = NOT_IN_INPUT  # those of these nodes
    cpus_allowed: Known[str] = NOT_IN_INPUT
    memory_policy: Known[str] = NOT_IN_INPUT
    memory: Known[tuple[NodeShare, ...]] = NOT_IN_INPUT  # of nodes with processors
    near_percent: Known[float] = NOT_IN_INPUT  # of it, on the GPUs' nodes
    line: int = 0
    probe: str = ""


class Cgroup(Struct, frozen=True):
    """What the control groups above the shell leave it: of each limit the tightest on the way from
    its own group to the top. What the top of the tree holds is the whole machine's."""

    version: str  # v1 | v2 | hybrid
    path: str = ""  # of the shell's own group
    cpus_allowed: Known[int] = NOT_IN_INPUT  # processors it may run on
    quota_cores: Known[float | Unlimited] = NOT_IN_INPUT
    cores: Known[float] = NOT_IN_INPUT  # what both leave
    periods: Known[int] = NOT_IN_INPUT  # in which the quota was looked at, since it was made
    throttled_percent: Known[float] = NOT_IN_INPUT  # of these, in which it held processes back
    throttled_s: Known[float] = NOT_IN_INPUT
    memory_limit_bytes: Known[Amount] = NOT_IN_INPUT
    memory_used_bytes: Known[int] = NOT_IN_INPUT  # without the page cache
    memory_used_percent: Known[float] = NOT_IN_INPUT
    oom_kills: Known[int] = NOT_IN_INPUT  # in its own group, since it was made
    pids_limit: Known[Amount] = NOT_IN_INPUT
    pids: Known[int] = NOT_IN_INPUT
    pids_used_percent: Known[float] = NOT_IN_INPUT
    pids_refused: Known[int] = NOT_IN_INPUT  # forks that the limit made fail
    line: int = 1
    probe: str = ""


class SharedMemory(Struct, frozen=True):
    """/dev/shm."""

    size_bytes: Known[int] = NOT_IN_INPUT
    free_bytes: Known[int] = NOT_IN_INPUT
    used_percent: Known[float] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class Disk(Struct, frozen=True):
    """A local file system; name: where it is mounted."""

    name: str
    device: str = ""
    kind: str = ""  # ext4
    size_bytes: Known[int] = NOT_IN_INPUT
    free_bytes: Known[int] = NOT_IN_INPUT  # for those who are not root
    used_percent: Known[float] = NOT_IN_INPUT
    inodes_used_percent: Known[float] = NOT_IN_INPUT
    read_only: Known[bool] = NOT_IN_INPUT
    writable_by_fstab: Known[bool] = NOT_IN_INPUT  # whether /etc/fstab wants it writable
    line: int = 0
    probe: str = ""


class Processes(Struct, frozen=True):
    """All processes that can be seen from here."""

    count: Known[int] = NOT_IN_INPUT
    threads: Known[int] = NOT_IN_INPUT  # of the whole machine, the kernel's too
    threads_limit: Known[int] = NOT_IN_INPUT
    threads_used_percent: Known[float] = NOT_IN_INPUT
    zombies: Known[int] = NOT_IN_INPUT
    #: In uninterruptible sleep in two looks a moment apart, and not awake between them.
    stuck: Known[tuple[str, ...]] = NOT_IN_INPUT  # python3 (4711) in nfs_wait_on_request
    line: int = 1
    probe: str = ""


class Clock(Struct, frozen=True):
    """Who keeps the time, and how well."""

    keeper: Known[str] = NOT_IN_INPUT  # chronyd ...; "none"
    synchronised: Known[bool] = NOT_IN_INPUT
    offset_s: Known[float] = NOT_IN_INPUT  # distance from the source's time, without a sign
    source: Known[str] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class CpuState(Struct, frozen=True):
    """The processors at work: which are on, how fast they may run, how busy they are."""

    present: Known[int] = NOT_IN_INPUT
    online: Known[int] = NOT_IN_INPUT
    offline: Known[int] = NOT_IN_INPUT  # without the siblings that `smt` switched off
    smt: Known[str] = NOT_IN_INPUT  # on | off | forceoff | notsupported | notimplemented
    frequency_limit_mhz: Known[int] = NOT_IN_INPUT  # the lowest of all processors
    frequency_can_mhz: Known[int] = NOT_IN_INPUT  # what that processor can do
    capped: Known[int] = NOT_IN_INPUT  # processors whose limit is 5 % or more below that
    deepest_idle: Known[str] = NOT_IN_INPUT  # the deepest state that is not disabled: C6
    deepest_idle_us: Known[int] = NOT_IN_INPUT  # to wake up from it
    throttle_events: Known[int] = NOT_IN_INPUT  # by heat, the most of all cores, since boot
    throttled_percent: Known[float] = NOT_IN_INPUT  # of the time since boot, the same
    load_5min: Known[float] = NOT_IN_INPUT
    load_per_cpu: Known[float] = NOT_IN_INPUT
    steal_percent: Known[float] = NOT_IN_INPUT  # of the time since boot, taken by the hypervisor
    line: int = 1
    probe: str = ""


class NodeMemory(Struct, frozen=True):
    """The free memory of one NUMA node."""

    name: str  # node0
    large_blocks: int  # free blocks of 256 pages (1 MiB) or more, smaller ones not counted
    line: int = 0
    probe: str = ""


class MemoryState(Struct, frozen=True):
    """What the kernel counts of memory since boot, and how much of it is in one piece."""

    swapped_in_pages: Known[int] = NOT_IN_INPUT
    swapped_out_pages: Known[int] = NOT_IN_INPUT
    oom_kills: Known[int] = NOT_IN_INPUT
    nodes: Known[tuple[NodeMemory, ...]] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""
