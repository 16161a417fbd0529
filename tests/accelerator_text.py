"""What npu-smi and rocm-smi print, in their layouts; the values are made up."""

from __future__ import annotations

import json

_RULE = "+---------------------------+---------------+" + "-" * 52 + "+\n"
_LINE = "+===========================+===============+" + "=" * 52 + "+\n"
ADDRESSES = ("0000:C1:00.0", "0000:C2:00.0", "0000:81:00.0", "0000:82:00.0")


def npus(health: str = "OK", count: int = 4) -> str:
    """`npu-smi info` of a host with Ascend 910B3; `health` is that of the last."""
    head = (
        "+" + "-" * 96 + "+\n" + f"| {'npu-smi 24.1.rc2':<33}{'Version: 24.1.rc2':<61} |\n" + _RULE
        + _row("NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)")
        + _row("Chip", "Bus-Id", "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)") + _LINE
    )  # fmt: skip
    rows = ""
    for at in range(count):
        state = health if at == count - 1 else "OK"
        rows += _row(f"{at}     910B3", state, f"9{at}.4        4{at}                0    / 0")
        rows += _row("0", ADDRESSES[at], "0           0    / 0          3404 / 65536") + _LINE
    tail = _row("NPU     Chip", "Process id", "Process name             | Process memory(MB)")
    tail += _LINE + _row("0       0", "4711", "python3                  | 3100")
    return head + rows + _RULE + tail + _RULE


def _row(*cells: str) -> str:
    first, second, third = cells
    return f"| {first:<25} | {second:<13} | {third:<50} |\n"


def amd(count: int = 2) -> str:
    """`rocm-smi ... --json` of a host with MI300X."""
    cards: dict[str, dict[str, str]] = {
        f"card{at}": {
            "Temperature (Sensor edge) (C)": "N/A",
            "Temperature (Sensor junction) (C)": f"4{at}.0",
            "Current Socket Graphics Package Power (W)": "133.0",
            "PCI Bus": f"0000:{at + 1:02X}:00.0",
            "Card Series": "AMD Instinct MI300X",
            "Card Model": "0x74a1",
        }
        for at in range(count)
    }
    return json.dumps({**cards, "system": {"Driver version": "6.8.5"}})


def pci(vendor: str, count: int) -> str:
    """Our list of PCI functions."""
    kind = {"0x19e5": ("0xd802", "devdrv_device_driver"), "0x1002": ("0x74a1", "amdgpu")}[vendor]
    lines = (f"0000:{at + 1:02x}:00.0 0x120000 {vendor} {kind[0]} {kind[1]}" for at in range(count))
    return "".join(f"{line}\n" for line in lines) + "end\n"
