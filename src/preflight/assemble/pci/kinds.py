"""Which functions on PCI training uses, and what nvidia-smi calls them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.facts.topology import Matrix
from preflight.model import Known, Missing

NVIDIA = "0x10de"
_GPU = ("0x0300", "0x0302")
NVSWITCH = "0x0680"
HOST_BRIDGE = "0x0600"
_NIC = ("0x0200", "0x0207", "0x0208")
_NVME = "0x0108"
#: Graphics of a server's management controller: ASPEED, Matrox, Huawei. No laptop has one.
_SERVER_GRAPHICS = frozenset({"0x1a03", "0x102b", "0x19e5"})
#: The names of data-centre cards, as pci.ids has them: [A100 SXM4 80GB], [Tesla T4], [L40S].
_DATACENTRE = re.compile(
    r"\[(?:Tesla|A\d{1,3}[A-Z]?|H\d{2,3}|L\d{1,2}S?|B\d{3}|T4G?|G[BH]\d{3}|DGX|GRID)\b"
)


def kind_of(device: PciDevice) -> str:
    """gpu | nvswitch | nic | nvme; empty for what training does not use."""
    nvidia = device.vendor_id == NVIDIA
    if nvidia and device.class_id in _GPU:
        return "gpu"
    if nvidia and device.class_id == NVSWITCH:
        return "nvswitch"
    if device.class_id == _NVME:
        return "nvme"
    return "nic" if device.class_id in _NIC else ""


def bus_id_of(device: PciDevice) -> str:
    """As nvidia-smi writes it: 00000000:1b:00.0."""
    domain, _, rest = device.name.partition(":")
    return f"{domain:0>8}:{rest}"


def is_own(device: PciDevice) -> bool:
    """Not handed to a virtual machine."""
    return device.driver != "vfio-pci"


def may_be_a_laptop(devices: Sequence[PciDevice]) -> bool:
    """One NVIDIA GPU, no sign of a server: it may be switched off to save power."""
    gpus = [each for each in devices if kind_of(each) == "gpu"]
    server = any(is_server(each) for each in devices)
    product = str(gpus[0].product) if gpus else ""
    return len(gpus) == 1 and not server and not _DATACENTRE.search(product)


def is_server(device: PciDevice) -> bool:
    """Whether only servers have such a device."""
    return device.vendor_id in _SERVER_GRAPHICS or kind_of(device) == "nvswitch"


def named_by_order(tree: PciTree, matrix: Known[Matrix]) -> dict[str, str]:
    """The names in the matrix of GPUs by their addresses, in whose order nvidia-smi numbers them:
    where PCI shows as many, none of them on another NUMA node than the matrix says."""
    if isinstance(matrix, Missing) or not matrix.whole:
        return {}
    gpus = [each for each in tree.devices if is_own(each) and kind_of(each) == "gpu"]
    rows = [each for each in matrix.devices if each.kind == "gpu"]
    pairs = list(zip(sorted(gpus, key=bus_id_of), rows, strict=False))
    apart = any(_differ(gpu.numa_node, row.numa_node) for gpu, row in pairs)
    if len(gpus) != len(rows) or apart:
        return {}
    return {bus_id_of(gpu): row.name for gpu, row in pairs}


def _differ(one: Known[int], other: Known[int]) -> bool:
    """The kernel says -1 where the firmware has not told the node."""
    return isinstance(one, int) and isinstance(other, int) and one != other and min(one, other) >= 0
