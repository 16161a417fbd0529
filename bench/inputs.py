"""Inputs of a stated size, made from the real outputs in tests/samples."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.programs import ROOT

SAMPLES = ROOT / "tests" / "samples"
#: PCI buses of the eight GPUs of a DGX A100.
BUSES = ("07", "0F", "47", "4E", "87", "90", "B7", "BD")


def gpus_like(xml: str, count: int = 8) -> str:
    """`nvidia-smi -q -x` of up to 8 GPUs: the first of the sample, each at an address of BUSES."""
    return moved_to(xml, BUSES[:count])


def moved_to(xml: str, buses: Sequence[str]) -> str:
    """The first GPU of the sample once on each of the buses."""
    found = re.search(r"[ \t]*<gpu id=.*?</gpu>\n", xml, re.DOTALL)
    if found is None:
        raise ValueError("the sample has no <gpu>")
    head = re.sub(r"(<attached_gpus>)\d+", rf"\g<1>{len(buses)}", xml[: found.start()])
    gpus = [_moved(found.group(), number, bus) for number, bus in enumerate(buses)]
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


#: Lines of a system log as most are: none of them tells of a fault.
_BENIGN = (
    "CRON[{n}]: (root) CMD (command -v debian-sa1 > /dev/null && debian-sa1 1 1)",
    "systemd[1]: Started Session {n} of User ubuntu.",
    "sshd[{n}]: Accepted publickey for ubuntu from 10.0.0.{b} port {n} ssh2: ED25519 SHA256:abc{n}",
    "kubelet[{n}]: I0101 12:00:00.123456 {n} kubelet.go:2410] SyncLoop (PLEG): pod event {n}",
    "slurmd[{n}]: launch task StepId={n}.0 request from UID:1000 GID:1000 HOST:10.0.0.{b} PORT:{n}",
    "containerd[{n}]: time=x level=info msg=shim disconnected id={n}{n}{n} namespace=k8s.io",
    "kernel: [{n}.123456] audit: type=1400 audit(17000{n}.123:45): apparmor=ALLOWED profile=snap",
    "node_exporter[{n}]: level=info ts=2025-01-01T00:00:00Z collector=filesystem duration={b}ms",
    "kernel: [{n}.654321] usb 1-14: new high-speed USB device number {b} using xhci_hcd",
    "dockerd[{n}]: health check for container {n}{n} passed in {b} ms, nothing to report",
)
#: Once in so many lines a line of a sample stands, as in the log of a real host.
_ONE_IN = 2700


def mixed_day(lines: int = 60_000) -> bytes:
    """A day of a mixed syslog, all of it dated Jan  1: see bench.kernel_log."""
    told = [
        f"kernel: [{number}.000000] {line.partition('] ')[2]}"
        for name in ("xid79_then_sxid20034_fatal.log", "xid119_gsp_rpc_timeout_h100.log")
        for number, line in enumerate(_sample_lines(name), 1000)
        if "id (" in line
    ]
    found = []
    for number in range(lines):
        at_s = number * 86_400 // lines
        at = f"{at_s // 3600:02}:{at_s // 60 % 60:02}:{at_s % 60:02}"
        benign = _BENIGN[number * 7919 % len(_BENIGN)]
        benign = benign.format(n=10_000 + number % 80_000, b=number % 99)
        text = benign if number % _ONE_IN else told[number // _ONE_IN % len(told)]
        found.append(f"Jan  1 {at} gpu-node-07 {text}\n")
    return "".join(found).encode()


def _sample_lines(name: str) -> list[str]:
    return (SAMPLES / "kernel_log" / name).read_text(encoding="utf-8").splitlines()


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
