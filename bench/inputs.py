"""Inputs of a stated size, made from the real outputs in tests/samples."""

from __future__ import annotations

import re

from bench.programs import ROOT

SAMPLES = ROOT / "tests" / "samples"
#: PCI buses of the eight GPUs of a DGX A100.
BUSES = ("07", "0F", "47", "4E", "87", "90", "B7", "BD")


def gpus_like(xml: str, count: int = 8) -> str:
    """`nvidia-smi -q -x` of up to 8 GPUs: the first of the sample, each at an address of BUSES."""
    found = re.search(r"[ \t]*<gpu id=.*?</gpu>\n", xml, re.DOTALL)
    if found is None:
        raise ValueError("the sample has no <gpu>")
    head = re.sub(r"(<attached_gpus>)\d+", rf"\g<1>{count}", xml[: found.start()])
    gpus = [_moved(found.group(), number, bus) for number, bus in enumerate(BUSES[:count])]
    return head + "".join(gpus) + "</nvidia_smi_log>\n"


def _moved(gpu: str, number: int, bus: str) -> str:
    """The same GPU as another: address, minor number, serial and UUID."""
    edits = (
        (r"00000000:[0-9A-F]{2}:00\.0", f"00000000:{bus}:00.0"),
        (r"(<pci_bus>)\w+", rf"\g<1>{bus}"),
        (r"(<minor_number>)\d+", rf"\g<1>{number}"),
        (r"(<serial>\d+)\d(?=</serial>)", rf"\g<1>{number}"),
        (r"(<uuid>GPU-)\w{8}", rf"\g<1>{number:08x}"),
    )
    for pattern, new in edits:
        gpu = re.sub(pattern, new, gpu)
    return gpu


def small_xml() -> str:
    """Eight A100, about 180 kB."""
    path = SAMPLES / "nvidia_smi_xml" / "a100_sxm4_80gb_mig_535.54.xml"
    return gpus_like(path.read_text(encoding="utf-8"))


def large_xml() -> str:
    """Eight GPUs in about 300 kB: a recent driver's XML, less one list of supported clocks."""
    path = SAMPLES / "nvidia_smi_xml" / "rtx_a5000_x2_nvlink_590.44_v13.xml"
    one_list = r"\s*<supported_mem_clock>(?:(?!</supported_mem_clock>).)*</supported_mem_clock>"
    xml = path.read_text(encoding="utf-8")
    return gpus_like(re.sub(one_list, "", xml, count=1, flags=re.DOTALL))


def kernel_log(lines: int = 2000) -> str:
    """The first lines of a real boot of an eight-GPU machine."""
    path = SAMPLES / "kernel_log" / "boot_xe9680_h100_mlx5_insufficient_power.log"
    return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:lines])


def on_host(text: str, number: int) -> str:
    """The same output as another host gives it: UUIDs, temperatures, fans and the date differ."""
    edits = (
        ("<uuid>GPU-0000000", f"<uuid>GPU-{number:07x}"),
        ("<gpu_temp>13 C", f"<gpu_temp>{30 + number % 17} C"),
        ("<fan_speed>30 %", f"<fan_speed>{30 + number % 9} %"),
        ("2025-01-17T", f"2025-01-{1 + number % 28:02}T"),
    )
    for old, new in edits:
        text = text.replace(old, new)
    return text
