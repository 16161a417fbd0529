"""The machine around the GPUs, and the whole host as one record."""

from __future__ import annotations

from msgspec import Struct, field

from preflight.facts.accelerators import Accelerator, AcceleratorCount
from preflight.facts.bench import Lasting, NetworkGrowth, SettingSweep
from preflight.facts.chassis import Chassis, EventLog
from preflight.facts.collectives import (
    BenchStack,
    Collective,
    Inside,
    Localisation,
    RdmaTest,
    Shape,
)
from preflight.facts.counters import Counters
from preflight.facts.dcgm import DcgmDiag
from preflight.facts.fio import FioJob, FioRun, FioSide, FioTotal
from preflight.facts.gpu import Driver, Gpu, GpuInventory, GpuLooks
from preflight.facts.host_memory import Dimms, Edac
from preflight.facts.kernel import KernelLog
from preflight.facts.nccl import NcclLog
from preflight.facts.nccl_topo import NcclTopo
from preflight.facts.nics import Netdev, Nic, NicChoice, NicPort
from preflight.facts.numa import NumaNode
from preflight.facts.objects import ObjectStore, ObjectWay
from preflight.facts.patterns import Pattern
from preflight.facts.pci_tree import PciPaths, PciTree
from preflight.facts.services import DriverModule, FabricManager, Services
from preflight.facts.setup import Board, Package, Persisted, Software, Sysctl, Told
from preflight.facts.shard import Shard
from preflight.facts.stack import EnvReport, EnvTargets, EnvVar
from preflight.facts.stack_pieces import Stack
from preflight.facts.storage import Storage
from preflight.facts.stress import Stress
from preflight.facts.system import (
    AskedProcess,
    Binding,
    Cgroup,
    Clock,
    ConfiguredLimit,
    CpuState,
    Disk,
    JobService,
    Limit,
    MemoryState,
    Processes,
    SharedMemory,
)
from preflight.facts.topology import Topology
from preflight.facts.training import Training
from preflight.facts.watch import Watch
from preflight.facts.wire import Wire
from preflight.model import NOT_IN_INPUT, Known


class Identity(Struct, frozen=True):
    """Who answered, and when, by its own clock."""

    hostname: str
    boot_id: Known[str] = NOT_IN_INPUT
    date: Known[str] = NOT_IN_INPUT  # UTC, 2026-01-02T03:04:05Z
    date_s: Known[int] = NOT_IN_INPUT  # the same in seconds since 1970
    #: Its clock minus that of the machine that asked, at the same moment, good to about 2 s.
    clock_offset_s: Known[int] = NOT_IN_INPUT
    uptime_s: Known[float] = NOT_IN_INPUT
    uid: Known[int] = NOT_IN_INPUT
    kernel: Known[str] = NOT_IN_INPUT
    container: Known[str] = (
        NOT_IN_INPUT  # none | docker | podman | kubernetes | apptainer | container
    )
    nvidia_device_nodes: Known[int] = NOT_IN_INPUT  # /dev/nvidia0 ...
    allocation: dict[str, str] = field(default_factory=dict)  # the variables that grant GPUs
    line: int = 1
    probe: str = ""


class PciFunction(Struct, frozen=True):
    """One display, 3D, accelerator or NVSwitch function on PCI; ids in lower case hex."""

    address: str  # 0000:1b:00.0
    class_id: str  # 0x030200
    vendor_id: str  # 0x10de
    device_id: str
    driver: Known[str]  # "" where none is bound
    line: int = 0
    probe: str = ""


class Cpu(Struct, frozen=True):
    model: Known[str] = NOT_IN_INPUT
    sockets: Known[int] = NOT_IN_INPUT
    numa_nodes: Known[int] = NOT_IN_INPUT
    cpus: Known[int] = NOT_IN_INPUT
    hypervisor: Known[str] = NOT_IN_INPUT  # KVM ...; "none" on bare metal
    nodes: tuple[NumaNode, ...] = ()  # with their processors alone


class HostMemory(Struct, frozen=True):
    total_bytes: Known[int] = NOT_IN_INPUT
    available_bytes: Known[int] = NOT_IN_INPUT
    available_percent: Known[float] = NOT_IN_INPUT
    swap_total_bytes: Known[int] = NOT_IN_INPUT
    swap_used_bytes: Known[int] = NOT_IN_INPUT
    hugepages_unused_bytes: Known[int] = NOT_IN_INPUT  # reserved in the default size, and free
    hugepages_unused_percent: Known[float] = NOT_IN_INPUT  # of all memory
    commit_limit_bytes: Known[int] = NOT_IN_INPUT  # holds where vm.overcommit_memory is 2
    commit_percent: Known[float] = NOT_IN_INPUT  # of that limit, promised to processes
    line: int = 0
    probe: str = ""


class SiteAnswer(Struct, frozen=True):
    """The answer to a question that a site's check file declares."""

    rc: Known[int] = NOT_IN_INPUT
    text: Known[str] = NOT_IN_INPUT
    lines: Known[int] = NOT_IN_INPUT
    number: Known[float] = NOT_IN_INPUT  # the first number in the text
    line: int = 1
    probe: str = ""


class BugReport(Struct, frozen=True):
    """The report of nvidia-bug-report.sh that answers were taken from."""

    whole: Known[bool] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class Host(Struct, frozen=True):
    """All facts of one host: what checks are judged on."""

    name: str
    identity: Known[Identity] = NOT_IN_INPUT
    os: Known[str] = NOT_IN_INPUT
    container: Known[str] = NOT_IN_INPUT
    virtualization: Known[str] = NOT_IN_INPUT  # none | vm
    cpu: Known[Cpu] = NOT_IN_INPUT
    memory: Known[HostMemory] = NOT_IN_INPUT
    pci: Known[tuple[PciFunction, ...]] = NOT_IN_INPUT
    driver: Known[Driver] = NOT_IN_INPUT
    gpus: Known[tuple[Gpu, ...]] = NOT_IN_INPUT
    gpu_inventory: GpuInventory = field(default_factory=GpuInventory)
    gpu_looks: GpuLooks = field(default_factory=GpuLooks)
    kernel_log: Known[KernelLog] = NOT_IN_INPUT
    pci_tree: Known[PciTree] = NOT_IN_INPUT
    pci_paths: Known[PciPaths] = NOT_IN_INPUT
    driver_module: Known[DriverModule] = NOT_IN_INPUT
    services: Known[Services] = NOT_IN_INPUT
    fabric_manager: FabricManager = field(default_factory=FabricManager)
    chassis: Known[Chassis] = NOT_IN_INPUT
    sel: Known[EventLog] = NOT_IN_INPUT
    edac: Known[Edac] = NOT_IN_INPUT
    dimms: Known[Dimms] = NOT_IN_INPUT
    dcgm: Known[DcgmDiag] = NOT_IN_INPUT
    watch: Known[Watch] = NOT_IN_INPUT
    training: Known[Training] = NOT_IN_INPUT  # of the bundled loop
    stress: Known[Stress] = NOT_IN_INPUT
    bug_report: Known[BugReport] = NOT_IN_INPUT
    board: Known[Board] = NOT_IN_INPUT
    sysctls: Known[tuple[Sysctl, ...]] = NOT_IN_INPUT
    counters: Known[Counters] = NOT_IN_INPUT
    persisted: Known[Persisted] = NOT_IN_INPUT
    nics: Known[tuple[Nic, ...]] = NOT_IN_INPUT
    nic_ports: Known[tuple[NicPort, ...]] = NOT_IN_INPUT
    nic_count: Known[int] = NOT_IN_INPUT  # without virtual functions
    nic_choice: Known[NicChoice] = NOT_IN_INPUT  # which of them somebody named for training
    netdevs: Known[tuple[Netdev, ...]] = NOT_IN_INPUT
    topology_shape: Known[str] = NOT_IN_INPUT
    nccl_topo: Known[NcclTopo] = NOT_IN_INPUT  # the file that NCCL reads of it
    topology: Topology = field(default_factory=Topology)
    software: Known[tuple[Software, ...]] = NOT_IN_INPUT
    packages: Known[tuple[Package, ...]] = NOT_IN_INPUT
    env_reports: tuple[EnvReport, ...] = ()  # recorded texts that tell of its software
    numa_nodes: Known[tuple[NumaNode, ...]] = NOT_IN_INPUT
    limits: Known[tuple[Limit, ...]] = NOT_IN_INPUT  # of the shell, of services, of a process
    job_services: Known[tuple[JobService, ...]] = NOT_IN_INPUT
    configured_limits: Known[tuple[ConfiguredLimit, ...]] = NOT_IN_INPUT
    asked_processes: Known[tuple[AskedProcess, ...]] = NOT_IN_INPUT
    bindings: Known[tuple[Binding, ...]] = NOT_IN_INPUT  # of these to processors and memory
    cgroup: Known[Cgroup] = NOT_IN_INPUT
    shared_memory: Known[SharedMemory] = NOT_IN_INPUT
    disks: Known[tuple[Disk, ...]] = NOT_IN_INPUT
    storage: Storage = field(default_factory=Storage)  # what is mounted, and the devices below
    processes: Known[Processes] = NOT_IN_INPUT
    clock: Known[Clock] = NOT_IN_INPUT
    cpu_state: Known[CpuState] = NOT_IN_INPUT
    memory_state: Known[MemoryState] = NOT_IN_INPUT
    stack: Stack = field(default_factory=Stack)
    #: Of other makers than NVIDIA.
    accelerators: Known[tuple[Accelerator, ...]] = NOT_IN_INPUT
    accelerator_count: AcceleratorCount = field(default_factory=AcceleratorCount)
    environment: Known[tuple[EnvVar, ...]] = NOT_IN_INPUT
    nccl: Known[NcclLog] = NOT_IN_INPUT  # a log, of however many hosts
    collectives: Known[tuple[Collective, ...]] = NOT_IN_INPUT  # what benchmarks of them measured
    collective_shapes: Known[tuple[Shape, ...]] = NOT_IN_INPUT
    rdma_tests: Known[tuple[RdmaTest, ...]] = NOT_IN_INPUT
    bench_stack: Known[BenchStack] = NOT_IN_INPUT  # of the ranks that timed collectives
    inside: Known[Inside] = NOT_IN_INPUT  # which GPU, fabric or rail of it is slow
    speaks_for_all: bool = False  # these benchmarks were of several hosts, and this one led them
    ended_job: bool = False  # what stopped them was this host's own
    localisation: Known[Localisation] = NOT_IN_INPUT  # which host is slow, by those that led
    fio_runs: Known[tuple[FioRun, ...]] = NOT_IN_INPUT  # what fio measured, by reports
    fio_jobs: Known[tuple[FioJob, ...]] = NOT_IN_INPUT
    fio_sides: Known[tuple[FioSide, ...]] = NOT_IN_INPUT
    fio_syncs: Known[tuple[FioSide, ...]] = NOT_IN_INPUT
    fio_totals: Known[tuple[FioTotal, ...]] = NOT_IN_INPUT
    #: Of these what tells how fast a device is: large blocks, or random ones, enough in flight.
    fio_large_reads: Known[tuple[FioTotal, ...]] = NOT_IN_INPUT
    fio_large_writes: Known[tuple[FioTotal, ...]] = NOT_IN_INPUT
    fio_random_reads: Known[tuple[FioTotal, ...]] = NOT_IN_INPUT
    object_stores: Known[tuple[ObjectStore, ...]] = NOT_IN_INPUT  # that objects were put into
    object_ways: Known[tuple[ObjectWay, ...]] = NOT_IN_INPUT  # sizes, and how many at once
    object_small_ways: Known[tuple[ObjectWay, ...]] = NOT_IN_INPUT  # those that tell of latency
    patterns: Known[tuple[Pattern, ...]] = NOT_IN_INPUT  # of storage, as training uses it
    #: Of these what loaders read past the page cache: through read, and through maps.
    loader_reads: Known[tuple[Pattern, ...]] = NOT_IN_INPUT
    loader_maps: Known[tuple[Pattern, ...]] = NOT_IN_INPUT
    shards: Known[tuple[Shard, ...]] = NOT_IN_INPUT  # files of the user's data, decoded
    wire: Known[Wire] = NOT_IN_INPUT  # its links by themselves
    #: Values of NCCL's variables that were held against each other.
    bench_settings: Known[tuple[SettingSweep, ...]] = NOT_IN_INPUT
    lasting: Known[tuple[Lasting, ...]] = NOT_IN_INPUT  # one collective for a long time
    network_growth: Known[NetworkGrowth] = NOT_IN_INPUT  # while a bench ran
    env_targets: EnvTargets = field(default_factory=EnvTargets)
    #: The model of its GPUs, of several the most frequent; "none" where there are no GPUs.
    gpu_product: Known[str] = NOT_IN_INPUT
    told: tuple[Told, ...] = ()  # what was asked of it, by parts
    site: dict[str, Known[SiteAnswer]] = field(default_factory=dict)
