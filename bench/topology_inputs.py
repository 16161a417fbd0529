"""What the tools print of one whole host with 16 GPUs and 16 adapters.

Two sockets, four switches on each, behind each switch two GPUs and two adapters.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.inputs import SAMPLES, moved_to
from tests.lspci_text import HEADS, function

COUNT, SWITCHES = 16, 8
_SWITCH = "PCI bridge [0604]: Broadcom / LSI PEX890xx PCIe Gen 5 Switch [1000:c030] (rev b0)"
_ROOT = "PCI bridge [0604]: Intel Corporation Device [8086:352a] (rev 04)"
_GPU = "3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)"
_NIC = "Infiniband controller [0207]: Mellanox Technologies MT2910 [ConnectX-7] [15b3:1021]"
_CPUS = ("0-55,112-167", "56-111,168-223")


def files() -> dict[str, str]:
    """Each output under the name of a file for it."""
    return {
        "topo.txt": matrix(),
        "lspci.txt": lspci(),
        "ibstat.txt": ibstat(),
        "numactl.txt": numactl(),
        "smi.xml": xml(),
    }


def _bus(number: int) -> int:
    """The bus of the GPU or, one further, of the adapter with this number."""
    switch, slot = divmod(number, 2)
    return 0x10 + 8 * switch + 3 + 2 * slot


def _functions() -> Iterator[str]:
    full = "32 16"
    for switch in range(SWITCHES):
        first = 0x10 + 8 * switch
        last, node = first + 6, "01"[switch >= SWITCHES // 2]
        buses = f"{first:02x} {first + 1:02x} {last:02x}"
        text = function(f"0000:{first:02x}:01.0", _ROOT, "Root Port (Slot+)", full, full, bus=buses)
        buses = f"{first + 1:02x} {first + 2:02x} {last:02x}"
        text += function(f"0000:{first + 1:02x}:00.0", _SWITCH, "Upstream Port", full, full,
                         bus=buses)  # fmt: skip
        for slot in range(4):
            below = first + 3 + slot
            buses = f"{first + 2:02x} {below:02x} {below:02x}"
            text += function(f"0000:{first + 2:02x}:0{slot}.0", _SWITCH, "Downstream Port (Slot+)",
                             full, full, bus=buses)  # fmt: skip
        for slot in range(4):
            name = f"0000:{first + 3 + slot:02x}:00.0"
            head, driver = ((_GPU, "nvidia"), (_NIC, "mlx5_core"))[slot % 2]
            text += function(name, head, "Endpoint", full, full, driver=driver)
        yield text.replace("NUMA node: 0", f"NUMA node: {node}")


def lspci() -> str:
    """`lspci -Dvvvnn`."""
    return HEADS + "".join(_functions())


def _path(one: int, other: int) -> str:
    if one // 2 == other // 2:
        return "PIX"
    return "NODE" if one // 8 == other // 8 else "SYS"


def matrix() -> str:
    """`nvidia-smi topo -m`."""
    gpus, nics = ([f"{word}{at}" for at in range(COUNT)] for word in ("GPU", "NIC"))
    rows = [["", *gpus, *nics, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]]
    for at, name in enumerate([*gpus, *nics]):
        number, is_gpu = at % COUNT, at < COUNT
        row = [name]
        for to in range(2 * COUNT):
            path = "NV18" if is_gpu and to < COUNT else _path(number, to % COUNT)
            row.append(" X " if at == to else path)
        rows.append(row + ([_CPUS[number // 8], str(number // 8), "N/A"] if is_gpu else []))
    table = "".join("\t".join(row) + "\n" for row in rows)
    words = "".join(f"  NIC{at}: mlx5_{at}\n" for at in range(COUNT))
    legend = "  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect\n"
    return f"{table}\nLegend:\n\n{legend}\nNIC Legend:\n\n{words}\n"


def ibstat() -> str:
    """`ibstat`, each adapter with one port at 400 Gb/s."""
    return "".join(
        f"CA 'mlx5_{at}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n"
        f"\tHardware version: 0\n\tNode GUID: 0x0000000000{at:06x}\n"
        f"\tSystem image GUID: 0x0000000000{at:06x}\n\tPort 1:\n\t\tState: Active\n"
        "\t\tPhysical state: LinkUp\n\t\tRate: 400\n"
        f"\t\tBase lid: {at + 1}\n\t\tLMC: 0\n\t\tSM lid: 1\n\t\tCapability mask: 0xa651e848\n"
        f"\t\tPort GUID: 0x0000000000{at:06x}\n\t\tLink layer: InfiniBand\n"
        for at in range(COUNT)
    )


def numactl() -> str:
    """`numactl -H` of two sockets with 56 cores each."""
    halves = [
        [*range(56 * at, 56 * at + 56), *range(112 + 56 * at, 168 + 56 * at)] for at in (0, 1)
    ]
    told = "".join(
        f"node {at} cpus: {' '.join(map(str, cpus))}\nnode {at} size: 1031000 MB\n"
        f"node {at} free: 1020000 MB\n"
        for at, cpus in enumerate(halves)
    )
    return (
        f"available: 2 nodes (0-1)\n{told}node distances:\nnode   0   1\n"
        "  0:  10  21\n  1:  21  10\n"
    )


def xml() -> str:
    """`nvidia-smi -q -x`: a recent driver's, each GPU at its address."""
    text = (SAMPLES / "nvidia_smi_xml" / "rtx3060_570.124.xml").read_text(encoding="utf-8")
    text = text.replace("NVIDIA GeForce RTX 3060", "NVIDIA H100 80GB HBM3")
    text = text.replace("link_gen>4<", "link_gen>5<")
    return moved_to(text, [f"{_bus(at):02X}" for at in range(COUNT)])
