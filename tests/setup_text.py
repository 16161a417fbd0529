"""How a host is set up, as our questions print it; the values are made up."""

from __future__ import annotations

BOARD = """\
sys_vendor Supermicro
product_name SYS-821GE-TNHR
board_name X13DEG-OAD
bios_vendor American Megatrends International, LLC.
bios_version 2.1
bios_date 01/12/2024
bios_release 5.32
end
"""
SYSCTLS = """\
vm/swappiness:10
kernel/numa_balancing:0
net/ipv4/tcp_rmem:4096\t131072\t6291456
net/ipv4/ip_local_reserved_ports:
thp.enabled always [madvise] never
cpu.governor performance
cpu.driver intel_pstate
cpu.smt on
clocksource tsc
option iommu=pt
option intel_iommu=on
option hugepagesz=1G
option hugepages=16
cmdline
end
"""


def nic(name: str, address: str) -> str:
    """One adapter of one port, with its interface."""
    return (
        f"nic {name}\naddress {address}\nhca_type MT4129\nboard_id MT_0000000838\n"
        "fw_ver 28.39.1002\nnuma_node 0\nport 1\nstate 4: ACTIVE\nphys_state 5: LinkUp\n"
        "rate 400 Gb/sec (4X NDR)\nlink_layer InfiniBand\n"
        f"netdev ib{name[-1]}\ndev_port 0\nmtu 4092\nspeed 400000\n"
    )


NICS = nic("mlx5_0", "0000:18:00.0") + nic("mlx5_1", "0000:2a:00.0") + "end\n"

#: Class, vendor and device; whether it has a link.
_KINDS = {
    "gpu": "0x030200 0x10de 0x2330", "nic": "0x020700 0x15b3 0x1021",
    "nvme": "0x010802 0x144d 0xa80a", "nvswitch": "0x068000 0x10de 0x22a3",
    "vga": "0x030000 0x1a03 0x2000", "bridge": "0x060400 0x1000 0xc030",
}  # fmt: skip


def function(
    kind: str, numa: int, *way: str, now: str = "32.0 16", can: str = "32.0 16",
    driver: str = "-", translated: str = "identity",
) -> str:  # fmt: skip
    """One line of the tree in sysfs: from the root complex by bridges to the device."""
    return (
        f"{_KINDS[kind]} 0xa1 {numa} {now} {can} - - {translated} 12 - {driver} "
        f"/sys/devices/{'/'.join(way)}\n"
    )


def board_of_8(first_bus: int = 0x10) -> str:
    """Two sockets with two switches each, below each of them two GPUs and two adapters, and a
    drive beside them. All bus numbers count up from `first_bus`."""
    lines, bus = [], first_bus
    for switch in range(4):
        numa = switch // 2
        root, port = f"pci0000:{bus:02x}", f"0000:{bus:02x}:01.0"
        up = f"0000:{bus + 1:02x}:00.0"
        for at, kind in enumerate(("gpu", "nic", "gpu", "nic")):
            down, device = f"0000:{bus + 2:02x}:{at:02x}.0", f"0000:{bus + 3 + at:02x}:00.0"
            lines.append(function(kind, numa, root, port, up, down, device))
        drive = f"0000:{bus + 7:02x}:00.0"
        lines.append(function("nvme", numa, root, f"0000:{bus:02x}:03.0", drive))
        bus += 0x10
    lines.append(function("vga", 0, "pci0000:00", "0000:00:1c.0", "0000:01:00.0"))
    return "".join(sorted(lines)) + "end\n"


TOPOLOGY = board_of_8()
SOFTWARE = """\
library libnvidia-container.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.14.6
library libnccl.so.2 /usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5
library libibverbs.so.1 /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0
library libcudnn.so.9 /usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0
cuda /usr/local/cuda-12.4
begin version.json
{
   "cuda" : {
      "name" : "CUDA SDK",
      "version" : "12.4.1"
   }
}
end version.json
ofed MLNX_OFED_LINUX-23.10-1.1.9.0:
libc glibc 2.35
end
"""
PACKAGES = """\
python 3.10.12 /opt/train/bin/python3
package torch 2.3.0+cu121
package nvidia-nccl-cu12 2.20.5
package numpy 1.26.4
end
"""

#: Probe -> its answer.
ENVIRONMENT = """\
of shell
var CUDA_VISIBLE_DEVICES=0,1
var LD_LIBRARY_PATH=/usr/local/cuda/lib64
var NCCL_DEBUG=WARN
netdevs
netdev lo
netdev eth0
adapters
adapter mlx5_0 InfiniBand
adapter mlx5_1 InfiniBand
end
"""
SETUP: dict[str, str] = {
    "board": BOARD,
    "sysctls": SYSCTLS,
    "nics": NICS,
    "pci-tree": TOPOLOGY,
    "software": SOFTWARE,
    "packages": PACKAGES,
}

#: A Python with a torch of pytorch.org, as the question prints it.
TORCH = """\
python 3.10.12 /opt/train/bin/python3
torch path /opt/train/lib/python3.10/site-packages/torch
torch version 2.3.0+cu121
torch cuda 12.1
torch hip None
torch nccl wheel
package torch 2.3.0+cu121
package torchvision 0.18.0+cu121
package triton 2.3.0
pin torchvision torch 2.3.0
pin torch triton 2.3.0
pin torch nvidia-nccl-cu12 2.20.5
package nvidia-nccl-cu12 2.20.5
package nvidia-cudnn-cu12 8.9.2.26
package flash-attn 2.5.8
package numpy 1.26.4
end
"""
