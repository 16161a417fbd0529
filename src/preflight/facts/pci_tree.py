"""The functions on PCI, their links, and the way from a device to its root port.

Speeds in GT/s per lane, widths in lanes, rates in GB/s of one direction, sizes in bytes.
"""

from __future__ import annotations

from msgspec import Struct, field

from preflight.model import NOT_IN_INPUT, Known


class PciDevice(Struct, frozen=True):
    """One function. Ids are lower case hex, as in sysfs; names as lspci prints them."""

    name: str  # 0000:1b:00.0
    line: int = 0
    probe: str = ""
    class_id: Known[str] = NOT_IN_INPUT  # 0x0302: base class and subclass
    class_name: Known[str] = NOT_IN_INPUT
    vendor_id: Known[str] = NOT_IN_INPUT  # 0x10de
    device_id: Known[str] = NOT_IN_INPUT
    product: Known[str] = NOT_IN_INPUT  # vendor and device, by name
    revision: Known[str] = NOT_IN_INPUT  # a1; 00 where lspci prints none
    answers: Known[bool] = True  # False: reads of its configuration give nothing but ones
    port: Known[str] = NOT_IN_INPUT  # Endpoint | Root Port | Upstream Port | Downstream Port | ...
    primary: Known[int] = NOT_IN_INPUT  # bus numbers of a bridge
    secondary: Known[int] = NOT_IN_INPUT
    subordinate: Known[int] = NOT_IN_INPUT
    speed_max_gtps: Known[float] = NOT_IN_INPUT  # LnkCap
    width_max: Known[int] = NOT_IN_INPUT
    speed_gtps: Known[float] = NOT_IN_INPUT  # LnkSta
    width: Known[int] = NOT_IN_INPUT
    #: GB/s of the link, where it is not told by speed and width.
    rate_gbps: Known[float] = NOT_IN_INPUT
    speed_word: str = ""  # ok | downgraded | strange ...; newer versions only
    width_word: str = ""
    link_line: int = 0  # where LnkSta stands
    payload_bytes: Known[int] = NOT_IN_INPUT  # MaxPayload as set, not as possible
    read_request_bytes: Known[int] = NOT_IN_INPUT
    driver: Known[str] = NOT_IN_INPUT  # "" where none is bound
    numa_node: Known[int] = NOT_IN_INPUT
    iommu_group: Known[int] = NOT_IN_INPUT
    acs: Known[tuple[str, ...]] = NOT_IN_INPUT  # the flags of ACSCtl that are set
    acs_line: int = 0
    uncorrected: Known[tuple[str, ...]] = NOT_IN_INPUT  # UESta, since it was last cleared
    corrected: Known[tuple[str, ...]] = NOT_IN_INPUT  # CESta
    errors_line: int = 0  # where UESta stands
    link_probe: str = ""  # what told the link, where it is another than `probe`
    #: From the top: the root complex, pci0000:15, and the bridges; as far as they are known.
    way: tuple[str, ...] = ()
    virtual: bool = False  # an SR-IOV function
    #: How an IOMMU translates for it: identity (addresses pass as they are) | DMA | DMA-FQ ...
    iommu_type: Known[str] = NOT_IN_INPUT
    os_names: tuple[str, ...] = ()  # mlx5_0, eth0, nvme0n1, where the input tells


class PciTree(Struct, frozen=True):
    """The functions in the order of their addresses: all that lspci shows; of sysfs, bridges and
    those that training uses."""

    devices: tuple[PciDevice, ...]
    line: int = 1
    probe: str = ""
    #: The text stops before the list does, or may: it ends within a bridge or with a GPU.
    may_be_cut: bool = False


class LinkState(Struct, frozen=True):
    """One link, and what both of its ends can do; the lower end alone where the upper one is not in
    the input."""

    lower: str = ""  # the address of the device at its lower end
    width: Known[int] = NOT_IN_INPUT
    width_can: Known[int] = NOT_IN_INPUT
    speed_gtps: Known[float] = NOT_IN_INPUT
    speed_can_gtps: Known[float] = NOT_IN_INPUT
    rate_gbps: Known[float] = NOT_IN_INPUT
    rate_can_gbps: Known[float] = NOT_IN_INPUT
    #: `speed_gtps` where it can be held against what both ends can do: not where the GPU may save
    #: power at rest, as its peers do, nor where the slot is not known.
    judged_gtps: Known[float] = NOT_IN_INPUT
    card_width: Known[int] = NOT_IN_INPUT  # what the lower end can
    slot_width: Known[int] = NOT_IN_INPUT  # what the upper end can
    ends: str = ""  # "card 32 GT/s x16, slot 16 GT/s x16"
    line: int = 0
    probe: str = ""


class LinkErrors(Struct, frozen=True):
    """Uncorrected errors that stand in the registers of a device and of the bridges above it, as
    "0000:17:00.0 DLP"; what enumeration itself causes is left out."""

    uncorrected: Known[tuple[str, ...]] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class PathAcs(Struct, frozen=True):
    """Ports of switches above a device that send traffic between their devices up to the root: ACS
    with ReqRedir or CmpltRedir."""

    redirecting: Known[tuple[str, ...]] = NOT_IN_INPUT  # their addresses
    line: int = 0
    probe: str = ""


class PathPayload(Struct, frozen=True):
    """The largest packet that a device sends, and the bridges above it that are set to another."""

    payload_bytes: Known[int] = NOT_IN_INPUT
    unlike: Known[tuple[str, ...]] = NOT_IN_INPUT  # 0000:17:01.0 at 128
    line: int = 0
    probe: str = ""


class PciPath(Struct, frozen=True):
    """A device that training uses, with its way to the root."""

    name: str  # gpu3 where nvidia-smi names it, else its address
    bus_id: str  # 00000000:1b:00.0
    kind: str  # gpu | nvswitch | nic | nvme | bridge
    answers: Known[bool] = True
    by_driver: bool = False  # nvidia-smi tells of its link too
    virtual: bool = False  # in a virtual machine: the link shown is the hypervisor's choice
    bridges: tuple[str, ...] = ()  # their addresses, from the device upwards
    link: LinkState = field(default_factory=LinkState)
    #: The slowest link above the device's own.
    above: Known[LinkState] = NOT_IN_INPUT
    errors: LinkErrors = field(default_factory=LinkErrors)
    acs: PathAcs = field(default_factory=PathAcs)
    payload: PathPayload = field(default_factory=PathPayload)
    read_request_bytes: Known[int] = NOT_IN_INPUT
    product: Known[str] = NOT_IN_INPUT
    iommu_type: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class PciPaths(Struct, frozen=True):
    """The devices that training uses, by what is asked of them; each list is missing, with the
    reason, where there is no such device."""

    devices: Known[tuple[PciPath, ...]] = NOT_IN_INPUT  # all but the next
    #: Those, and bridges that do not answer, or where the list breaks off.
    answering: Known[tuple[PciPath, ...]] = NOT_IN_INPUT
    #: The only GPU of what may be a laptop: it is switched off when nobody uses it.
    may_sleep: Known[tuple[PciPath, ...]] = NOT_IN_INPUT
    gpus: Known[tuple[PciPath, ...]] = NOT_IN_INPUT
    cards: Known[tuple[PciPath, ...]] = NOT_IN_INPUT  # GPUs, save the only one of a laptop
    board: Known[tuple[PciPath, ...]] = NOT_IN_INPUT  # GPUs and NVSwitches
    nics: Known[tuple[PciPath, ...]] = NOT_IN_INPUT
    nvmes: Known[tuple[PciPath, ...]] = NOT_IN_INPUT
    #: GPUs and the NICs that share a switch with one, where no device is a virtual machine's.
    acs: Known[tuple[PciPath, ...]] = NOT_IN_INPUT
