"""A whole machine with 8 GPUs as lspci, its tree and sysfs show it, sound or with a fault.

The addresses, switches and links are those of the Dell XE9680 in samples/lspci: of each switch the
root port, the upstream port, and ports with a drive, a GPU and an adapter below them; four
NVSwitches behind a switch of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests import lspci_text

#: The bus of the root complex of each switch; 1 more is its upstream port's, 2 more its ports'.
ROOTS = (0x15, 0x37, 0x48, 0x59, 0x97, 0xB7, 0xC7, 0xD7)
GPUS = tuple(f"0000:{bus + 4:02x}:00.0" for bus in ROOTS)
NICS = tuple(f"0000:{bus + 5:02x}:00.0" for bus in ROOTS)

#: Kind -> class, vendor, device, and what lspci calls it.
_KINDS = {
    "root": ("0604", "8086", "352a", "PCI bridge", "Intel Corporation Device"),
    "switch": ("0604", "1000", "c030", "PCI bridge", "Broadcom / LSI PEX890xx PCIe Gen 5 Switch"),
    "gpu": ("0302", "10de", "2330", "3D controller", "NVIDIA Corporation GH100 [H100 SXM5 80GB]"),
    "nic": ("0207", "15b3", "1021", "Infiniband controller",
            "Mellanox Technologies MT2910 Family [ConnectX-7]"),
    "nvme": ("0108", "144d", "a80a", "Non-Volatile memory controller",
             "Samsung Electronics Co Ltd NVMe SSD Controller PM9A3"),
    "nvswitch": ("0680", "10de", "22a3", "Bridge", "NVIDIA Corporation GH100 [H100 NVSwitch]"),
}  # fmt: skip
_DRIVERS = {"gpu": "nvidia", "nic": "mlx5_core", "nvme": "nvme", "nvswitch": "nvidia-nvswitch"}


@dataclass(frozen=True)
class Function:
    """One function; `now` and `can` as "32 16": GT/s and lanes. `below`: its buses, of a bridge."""

    address: str
    kind: str
    port: str
    way: tuple[str, ...]
    numa: int
    now: str = "32 16"
    can: str = "32 16"
    below: tuple[int, int] | None = None
    translated: str = "identity"
    payload: int = 256
    read_request: int = 4096

    @property
    def bus(self) -> int:
        return int(self.address.split(":")[1], 16)


def machine(changed: Mapping[str, Mapping[str, object]] | None = None) -> list[Function]:
    """The functions in their order; `changed`: address -> what is unlike there."""
    found = [one for bus in ROOTS for one in _switch(bus)] + list(_nvswitches())
    different = changed or {}
    assert set(different) <= {one.address for one in found}
    return [
        replace(one, **different.get(one.address, {}))  # type: ignore[arg-type]
        for one in sorted(found, key=lambda one: one.address)
    ]


def _at(bus: int, device: int = 0) -> str:
    return f"0000:{bus:02x}:{device:02x}.0"


def _switch(bus: int) -> Iterator[Function]:
    numa, top = int(bus > 0x80), f"pci0000:{bus:02x}"
    way = (top, _at(bus, 1), _at(bus + 1))
    last = bus + 5
    yield Function(_at(bus, 1), "root", "Root Port", way[:1], numa, below=(bus + 1, last))
    yield Function(_at(bus + 1), "switch", "Upstream Port", way[:2], numa, below=(bus + 2, last))
    for at, (kind, link) in enumerate((("nvme", "16 4"), ("gpu", "32 16"), ("nic", "32 16"))):
        port, below = _at(bus + 2, at), bus + 3 + at
        yield Function(port, "switch", "Downstream Port", way, numa, link,
                       "32 16" if kind != "nvme" else "32 4", (below, below))  # fmt: skip
        yield Function(_at(below), kind, "Endpoint", (*way, port), numa, link, link)


def _nvswitches() -> Iterator[Function]:
    way = ("pci0000:80", _at(0x80, 1), _at(0x81))
    yield Function(_at(0x80, 1), "root", "Root Port", way[:1], 1, "16 2", "32 16", (0x81, 0x86))
    yield Function(_at(0x81), "switch", "Upstream Port", way[:2], 1, "16 2", "16 2", (0x82, 0x86))
    for at in range(4):
        port, below = _at(0x82, at), 0x83 + at
        yield Function(port, "switch", "Downstream Port", way, 1, "8 2", "16 2", (below, below))
        yield Function(_at(below), "nvswitch", "Endpoint", (*way, port), 1, "8 2", "8 2")


def lspci(functions: list[Function]) -> str:
    """As `sudo lspci -Dvvvnn`."""
    return lspci_text.HEADS + "".join(map(_in_full, functions))


def _in_full(one: Function) -> str:
    buses = "" if one.below is None else " ".join(f"{bus:02x}" for bus in (one.bus, *one.below))
    told = lspci_text.function(
        one.address, _head(one), one.port, one.can, one.now, bus=buses,
        driver=_DRIVERS.get(one.kind, "pcieport"),
    )  # fmt: skip
    told = told.replace("NUMA node: 0", f"NUMA node: {one.numa}")
    sizes = f"MaxPayload {one.payload} bytes, MaxReadReq {one.read_request} bytes"
    return told.replace("MaxPayload 256 bytes, MaxReadReq 4096 bytes", sizes)


def _head(one: Function) -> str:
    class_id, vendor, device, kind, name = _KINDS[one.kind]
    return f"{kind} [{class_id}]: {name} [{vendor}:{device}] (rev a1)"


def names(functions: list[Function]) -> str:
    """As `lspci -nn`."""
    return "".join(f"{one.address.removeprefix('0000:')} {_head(one)}\n" for one in functions)


def tree(functions: list[Function]) -> str:
    """As `lspci -tv`."""
    tops = sorted({one.way[0] for one in functions}, reverse=True)
    lines = [
        line
        for at, top in enumerate(tops)
        for line in _drawn(functions, top, f"[{top.removeprefix('pci')}]", at == len(tops) - 1)
    ]
    return "-" + "\n".join(lines)[1:] + "\n"


def _drawn(functions: list[Function], above: str, label: str, last: bool) -> Iterator[str]:
    """The lines of one root complex, behind ` +-` or ` \\-`."""
    own = _below(functions, above)
    mark, rest = ("\\", " ") if last else ("+", "|")
    width = len(label) + 1
    for at, line in enumerate(own):
        yield f" {mark}-{label}-{line}" if at == 0 else f" {rest} {' ' * width}{line}"


def _below(functions: list[Function], above: str) -> list[str]:
    """What hangs below a bus, each line from its branch on."""
    here = [one for one in functions if one.way[-1] == above]
    lines = []
    for at, one in enumerate(here):
        own = _one(functions, one)
        last = at == len(here) - 1
        single = len(here) == 1
        mark = "---" if single else "\\-" if last else "+-"
        rest = "   " if single else "  " if last else "| "
        lines += [f"{mark}{own[0]}", *(f"{rest}{line}" for line in own[1:])]
    dashes = "-" if len(here) != 1 else ""
    return [f"{dashes}{lines[0]}", *(f"{' ' * len(dashes)}{line}" for line in lines[1:])]


def _one(functions: list[Function], one: Function) -> list[str]:
    name = one.address[8:]
    if one.below is None:
        return [f"{name}  {_KINDS[one.kind][4]}"]
    first, last = one.below
    buses = f"[{first:02x}]" if first == last else f"[{first:02x}-{last:02x}]"
    head = f"{name}-{buses}-"
    own = _below(functions, one.address)
    return [f"{head}{own[0]}", *(f"{' ' * len(head)}{line}" for line in own[1:])]


def sysfs(functions: list[Function]) -> str:
    """As the question to sysfs prints it."""
    return "".join(f"{_line(one)}\n" for one in functions) + "end"


def _line(one: Function) -> str:
    fields = files(one)
    told = " ".join(fields[name].partition(" ")[0] for name in (
        "class", "vendor", "device", "revision", "numa_node", "current_link_speed",
        "current_link_width", "max_link_speed", "max_link_width",
    ))  # fmt: skip
    buses = " ".join(fields.get(f"{name}_bus_number", "-") for name in ("secondary", "subordinate"))
    path = "/".join(("/sys/devices", *one.way, one.address))
    driver = _DRIVERS.get(one.kind, "pcieport")
    return f"{told} {buses} {one.translated} 12 - {driver} {path}"


def files(one: Function) -> dict[str, str]:
    """The files of its folder in sysfs."""
    class_id, vendor, device, *_ = _KINDS[one.kind]
    told = {"class": f"0x{class_id}00", "vendor": f"0x{vendor}", "device": f"0x{device}",
            "revision": "0xa1", "numa_node": str(one.numa)}  # fmt: skip
    for name, link in (("current", one.now), ("max", one.can)):
        speed, width = link.split()
        told[f"{name}_link_speed"] = f"{speed}.0 GT/s PCIe"
        told[f"{name}_link_width"] = width
    if one.below:
        told["secondary_bus_number"], told["subordinate_bus_number"] = map(str, one.below)
    return told


def write_sysfs(root: Path, functions: list[Function]) -> Path:
    """The same as files below `root`/sys."""
    by_bus = root / "sys/bus/pci/devices"
    group = root / "sys/kernel/iommu_groups/12"
    for folder in (by_bus, group):
        folder.mkdir(parents=True)
    (group / "type").write_text(f"{functions[0].translated}\n")
    for one in functions:
        device = root.joinpath("sys/devices", *one.way, one.address)
        device.mkdir(parents=True, exist_ok=True)
        for name, value in files(one).items():
            (device / name).write_text(f"{value}\n")
        driver = root / "sys/bus/pci/drivers" / _DRIVERS.get(one.kind, "pcieport")
        driver.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(driver)
        (device / "iommu_group").symlink_to(group)
        (by_bus / one.address).symlink_to(device)
    return root
