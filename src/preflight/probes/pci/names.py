"""The ids behind the names that lspci prints without -n: of the classes and vendors that count."""

from __future__ import annotations

#: pci.ids (https://pci-ids.ucw.cz), the list of classes.
_CLASSES = {
    "VGA compatible controller": "0300",
    "3D controller": "0302",
    "Display controller": "0380",
    "Processing accelerators": "1200",
    "Ethernet controller": "0200",
    "Infiniband controller": "0207",
    "InfiniBand controller": "0207",
    "Fabric controller": "0208",
    "Network controller": "0280",
    "Non-Volatile memory controller": "0108",
    "SATA controller": "0106",
    "RAID bus controller": "0104",
    "Serial Attached SCSI controller": "0107",
    "Mass storage controller": "0180",
    "Host bridge": "0600",
    "PCI bridge": "0604",
    "Bridge": "0680",
}

#: pci.ids, the list of vendors; how each name begins.
_VENDORS = (
    ("NVIDIA ", "0x10de"),
    ("nVidia ", "0x10de"),
    ("Mellanox ", "0x15b3"),
    ("Advanced Micro Devices, Inc. [AMD/ATI]", "0x1002"),
    ("Intel ", "0x8086"),
    ("Broadcom / LSI", "0x1000"),
    ("Broadcom ", "0x14e4"),
    ("ASPEED ", "0x1a03"),
    ("Matrox ", "0x102b"),
    ("Huawei ", "0x19e5"),
    ("Habana ", "0x1da3"),
    ("QEMU", "0x1b36"),
    ("Red Hat, Inc. QEMU", "0x1b36"),
    ("Red Hat, Inc. QXL", "0x1b36"),
    ("Red Hat, Inc. Virtio", "0x1af4"),
    ("VMware", "0x15ad"),
    ("Microsoft Corporation", "0x1414"),
    ("XenSource", "0x5853"),
    ("InnoTek", "0x80ee"),
)


def class_of(name: str) -> str:
    """`3D controller` -> 0302; empty where the class does not matter here."""
    return _CLASSES.get(name, "")


def name_of(class_id: str) -> str:
    """0302 -> `3D controller`, as lspci names it; empty where the class does not matter here."""
    return next((name for name, number in _CLASSES.items() if number == class_id), "")


def vendor_of(product: str) -> str:
    """`NVIDIA Corporation GA102GL [A10]` -> 0x10de; empty where the vendor does not matter here."""
    return next((number for name, number in _VENDORS if product.startswith(name)), "")
