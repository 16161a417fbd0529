"""What a GPU says of itself. Units stand in the names: _c Celsius, _w watt, _mhz, _bytes, _percent.

Every record keeps `line`, where it began in the raw answer (from 1), so that the report can find
its evidence again.
"""

from __future__ import annotations

from msgspec import Struct, field

from preflight.facts.design import Design
from preflight.facts.nvlink import Nvlink
from preflight.model import NOT_IN_INPUT, Known


class Pcie(Struct, frozen=True):
    """The link between the card and its slot; widths in lanes."""

    gen: Known[int] = NOT_IN_INPUT
    gen_max: Known[int] = NOT_IN_INPUT  # what card and slot can both do
    gen_device_max: Known[int] = NOT_IN_INPUT
    gen_host_max: Known[int] = NOT_IN_INPUT
    width: Known[int] = NOT_IN_INPUT
    width_max: Known[int] = NOT_IN_INPUT
    replays: Known[int] = NOT_IN_INPUT  # since the last reset


class Ecc(Struct, frozen=True):
    """Error counts; volatile: since the driver was loaded, aggregate: over the card's life.

    Layouts before Ampere count single and double bit errors: those of the device memory are
    `dram_corrected` and `dram_uncorrected` here, those of the caches `sram_*`; where nothing but
    their total is told, it is the memory's.
    """

    mode: Known[str] = NOT_IN_INPUT  # Enabled | Disabled
    mode_pending: Known[str] = NOT_IN_INPUT
    volatile_sram_corrected: Known[int] = NOT_IN_INPUT
    volatile_sram_uncorrected: Known[int] = NOT_IN_INPUT
    volatile_dram_corrected: Known[int] = NOT_IN_INPUT
    volatile_dram_uncorrected: Known[int] = NOT_IN_INPUT
    aggregate_sram_corrected: Known[int] = NOT_IN_INPUT
    aggregate_sram_uncorrected: Known[int] = NOT_IN_INPUT
    aggregate_dram_corrected: Known[int] = NOT_IN_INPUT
    aggregate_dram_uncorrected: Known[int] = NOT_IN_INPUT
    sram_threshold_exceeded: Known[bool] = NOT_IN_INPUT
    channel_repair_pending: Known[bool] = NOT_IN_INPUT
    tpc_repair_pending: Known[bool] = NOT_IN_INPUT
    unrepairable_memory: Known[bool] = NOT_IN_INPUT


class Retired(Struct, frozen=True):
    """Memory pages taken out of use (before Ampere)."""

    single_bit: Known[int] = NOT_IN_INPUT
    double_bit: Known[int] = NOT_IN_INPUT
    total_pages: Known[int] = NOT_IN_INPUT
    pending: Known[bool] = NOT_IN_INPUT


class Remap(Struct, frozen=True):
    """Memory rows replaced by spares (Ampere and later); banks by how many spares are left."""

    corrected: Known[int] = NOT_IN_INPUT
    uncorrected: Known[int] = NOT_IN_INPUT
    pending: Known[bool] = NOT_IN_INPUT
    failure: Known[bool] = NOT_IN_INPUT
    banks_max: Known[int] = NOT_IN_INPUT
    banks_high: Known[int] = NOT_IN_INPUT
    banks_partial: Known[int] = NOT_IN_INPUT
    banks_low: Known[int] = NOT_IN_INPUT
    banks_none: Known[int] = NOT_IN_INPUT


class Throttle(Struct, frozen=True):
    """Why the clocks are below what was asked for, now; and for how long they were so far."""

    idle: Known[bool] = NOT_IN_INPUT
    applications_clocks: Known[bool] = NOT_IN_INPUT
    sw_power_cap: Known[bool] = NOT_IN_INPUT
    hw_slowdown: Known[bool] = NOT_IN_INPUT
    hw_thermal: Known[bool] = NOT_IN_INPUT
    hw_power_brake: Known[bool] = NOT_IN_INPUT
    sync_boost: Known[bool] = NOT_IN_INPUT
    sw_thermal: Known[bool] = NOT_IN_INPUT
    hw_thermal_s: Known[float] = NOT_IN_INPUT  # so far, since the driver was loaded
    hw_thermal_more_s: Known[float] = NOT_IN_INPUT  # than the GPUs beside it, by their median
    hw_power_brake_s: Known[float] = NOT_IN_INPUT
    hw_power_brake_more_s: Known[float] = NOT_IN_INPUT


class Temperature(Struct, frozen=True):
    """Celsius. Newer cards give the distance to the limit (T.Limit) in place of absolute limits."""

    gpu_c: Known[int] = NOT_IN_INPUT
    tlimit_c: Known[int] = NOT_IN_INPUT  # degrees left to the maximum operating temperature
    slowdown_c: Known[int] = NOT_IN_INPUT
    slowdown_tlimit_c: Known[int] = NOT_IN_INPUT
    margin_c: Known[int] = NOT_IN_INPUT  # degrees left to the card's own slowdown point
    memory_c: Known[int] = NOT_IN_INPUT
    memory_max_c: Known[int] = NOT_IN_INPUT
    memory_margin_c: Known[int] = NOT_IN_INPUT


class Power(Struct, frozen=True):
    """Watts. `limit_percent` is draw over the enforced limit."""

    draw_w: Known[float] = NOT_IN_INPUT
    limit_w: Known[float] = NOT_IN_INPUT  # enforced
    default_limit_w: Known[float] = NOT_IN_INPUT
    max_limit_w: Known[float] = NOT_IN_INPUT
    limit_percent: Known[float] = NOT_IN_INPUT


class Clocks(Struct, frozen=True):
    """MHz."""

    sm_mhz: Known[int] = NOT_IN_INPUT
    memory_mhz: Known[int] = NOT_IN_INPUT
    sm_max_mhz: Known[int] = NOT_IN_INPUT
    memory_max_mhz: Known[int] = NOT_IN_INPUT
    application_mhz: Known[int] = NOT_IN_INPUT
    default_application_mhz: Known[int] = NOT_IN_INPUT


class MigInstance(Struct, frozen=True):
    """One slice of a GPU."""

    gpu_instance: int
    multiprocessors: Known[int] = NOT_IN_INPUT
    memory_bytes: Known[int] = NOT_IN_INPUT


class Mig(Struct, frozen=True):
    mode: Known[str] = NOT_IN_INPUT  # Enabled | Disabled
    mode_pending: Known[str] = NOT_IN_INPUT
    instances: Known[tuple[MigInstance, ...]] = NOT_IN_INPUT


class Memory(Struct, frozen=True):
    total_bytes: Known[int] = NOT_IN_INPUT
    total_mib: Known[int] = NOT_IN_INPUT  # the same, as nvidia-smi prints it
    used_bytes: Known[int] = NOT_IN_INPUT
    unexplained_mib: Known[int] = NOT_IN_INPUT  # used beyond what the processes shown hold


class Fabric(Struct, frozen=True):
    """The NVSwitch fabric as this GPU was told of it; from `health` on since driver 550."""

    state: Known[str] = NOT_IN_INPUT
    status: Known[str] = NOT_IN_INPUT
    clique_id: Known[str] = NOT_IN_INPUT  # the NVLink partition within the cluster
    cluster_uuid: Known[str] = NOT_IN_INPUT  # all zeros where NVLink ends at the host
    health: Known[str] = NOT_IN_INPUT  # Healthy | Unhealthy | Limited Capacity
    bandwidth_degraded: Known[bool] = NOT_IN_INPUT
    route_recovery: Known[bool] = NOT_IN_INPUT  # in progress
    route_unhealthy: Known[bool] = NOT_IN_INPUT  # its recovery failed or was given up
    access_timeout_recovery: Known[bool] = NOT_IN_INPUT  # in progress
    incorrect_configuration: Known[str] = NOT_IN_INPUT  # None, or what is wrong
    partition_assigned: Known[bool] = NOT_IN_INPUT


class Process(Struct, frozen=True):
    """A process that holds the GPU; kind C compute, G graphics, C+G both, M+C MPS."""

    pid: int
    kind: str
    name: Known[str] = NOT_IN_INPUT
    memory_bytes: Known[int] = NOT_IN_INPUT


class Gpu(Struct, frozen=True):
    """One GPU in the order of nvidia-smi; `index` counts from 0, as `nvidia-smi -i` does. Where
    not all GPUs are listed it is not known, and the GPU is called by its bus id."""

    index: Known[int]
    name: str  # the subject: gpu0, or 0000:1b:00.0
    bus_id: str  # 00000000:1b:00.0 in lower case, domain of eight digits
    line: int = 0
    probe: str = ""  # which probe's raw `line` counts in
    answers: Known[bool] = NOT_IN_INPUT  # False: lost, or in need of a reset
    product: Known[str] = NOT_IN_INPUT
    brand: Known[str] = NOT_IN_INPUT
    architecture: Known[str] = NOT_IN_INPUT
    uuid: Known[str] = NOT_IN_INPUT
    serial: Known[str] = NOT_IN_INPUT
    vbios: Known[str] = NOT_IN_INPUT
    inforom: Known[str] = NOT_IN_INPUT  # version of its image: G520.0200.00.05
    pci_device: Known[str] = NOT_IN_INPUT  # 0x233010de: device and vendor
    virtualization: Known[str] = NOT_IN_INPUT  # None | Pass-Through | VGPU | Host VGPU | Host VSGA
    persistence: Known[str] = NOT_IN_INPUT  # Enabled | Disabled
    addressing: Known[str] = NOT_IN_INPUT
    display_active: Known[str] = NOT_IN_INPUT
    compute_mode: Known[str] = NOT_IN_INPUT
    performance_state: Known[str] = NOT_IN_INPUT  # P0 fastest
    fan_percent: Known[int] = NOT_IN_INPUT
    utilization_percent: Known[int] = NOT_IN_INPUT
    load: Known[str] = NOT_IN_INPUT  # idle | busy; missing where it is neither
    reset_required: Known[bool] = NOT_IN_INPUT
    reset_recommended: Known[bool] = NOT_IN_INPUT  # Drain and Reset Recommended
    inforom_corrupted: Known[bool] = NOT_IN_INPUT  # nvidia-smi warns of it beside its report
    recovery_action: Known[str] = (
        NOT_IN_INPUT  # None | Reset | Reboot | Drain P2P | Drain and Reset
    )
    unreadable: Known[tuple[str, ...]] = NOT_IN_INPUT  # "Addressing Mode: Unknown Error"
    pcie: Pcie = field(default_factory=Pcie)
    ecc: Ecc = field(default_factory=Ecc)
    retired: Retired = field(default_factory=Retired)
    remap: Remap = field(default_factory=Remap)
    throttle: Throttle = field(default_factory=Throttle)
    temperature: Temperature = field(default_factory=Temperature)
    power: Power = field(default_factory=Power)
    clocks: Clocks = field(default_factory=Clocks)
    mig: Mig = field(default_factory=Mig)
    memory: Memory = field(default_factory=Memory)
    fabric: Fabric = field(default_factory=Fabric)
    processes: Known[tuple[Process, ...]] = NOT_IN_INPUT
    graphical: Known[bool] = NOT_IN_INPUT  # a graphics session holds it (Xorg, a compositor)
    nvlink: Known[Nvlink] = field(default_factory=Nvlink)
    design: Known[Design] = NOT_IN_INPUT  # of its model, by checks/data/gpus.yaml


class Driver(Struct, frozen=True):
    """How the driver answered. `state`: answers | version-mismatch | not-running | no-devices |
    nvml-error | hangs (nvidia-smi did not end within its own limit)."""

    state: Known[str] = NOT_IN_INPUT
    text: str = ""  # the driver's own sentence where it did not answer
    version: Known[str] = NOT_IN_INPUT
    cuda: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""
    answer_s: Known[float] = NOT_IN_INPUT  # how long nvidia-smi took; a paste does not tell
    exit_status: Known[int] = NOT_IN_INPUT  # of a whole report; a paste does not tell


class NvidiaSmi(Struct, frozen=True):
    """One answer of nvidia-smi."""

    driver: Driver
    attached: Known[int]  # as announced in its head
    gpus: tuple[Gpu, ...]
    cut: bool = False  # a GPU of a whole report lacks its begin or its end
    silence: Driver | None = None  # what the driver said in place of another report beside it


class GpuLooks(Struct, frozen=True):
    """Where one input holds several looks of nvidia-smi at a host, a table beside a full report."""

    unlike: Known[tuple[str, ...]] = NOT_IN_INPUT  # what one shows beyond the one that is judged
    line: int = 0
    probe: str = ""


class PciGpu(Struct, frozen=True):
    """One NVIDIA GPU on PCI that is not handed to a virtual machine."""

    name: str  # gpu3 where nvidia-smi lists it, else its address
    bus_id: str  # 00000000:1b:00.0
    driver: Known[str] = NOT_IN_INPUT  # nvidia, nouveau ...; "none" where none is bound
    line: int = 0
    probe: str = ""


class GpuInventory(Struct, frozen=True):
    """How many GPUs there are, by who says so."""

    on_pci: Known[int] = NOT_IN_INPUT  # NVIDIA display or 3D functions, vfio-pci left out
    functions: Known[tuple[PciGpu, ...]] = NOT_IN_INPUT  # these, one by one
    unlisted: tuple[str, ...] = ()  # of these, the addresses that nvidia-smi does not list
    off_pci: Known[tuple[str, ...]] = NOT_IN_INPUT  # listed, and not on PCI: "gpu2 0000:4c:00.0"
    other_vendors: tuple[str, ...] = ()
    attached: Known[int] = NOT_IN_INPUT  # as announced by nvidia-smi
    listed: Known[int] = NOT_IN_INPUT  # as listed by nvidia-smi; missing where the list is cut
    #: As told by an answer of the driver without addresses (nvidia-smi -L, nvlink), in a record.
    nameless: Known[int] = NOT_IN_INPUT
    expected: Known[int] = NOT_IN_INPUT  # what this host or its allocation should show
    basis: str = ""  # where `expected` comes from
    #: What an installed nvidia-smi says where it fails and PCI shows no GPU; "" where it does not.
    fails_without_gpu: Known[str] = NOT_IN_INPUT
    #: Where the first GPU stands that only one of the two knows.
    line: int = 0
    probe: str = ""
