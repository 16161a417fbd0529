"""The topology file that NCCL reads before it looks at the machine, or a dump that it wrote.

What the file says of a device counts: NCCL asks the kernel and the driver only for what the file
leaves out (NCCL User Guide, NCCL_TOPO_FILE; src/graph/xml.cc of NCCL).
"""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class FileDevice(Struct, frozen=True):
    """A GPU or an adapter as the file has it. What the file leaves out is not in it."""

    name: str  # its address on PCI: 0000:18:00.0
    kind: str  # gpu | nic
    numa_node: Known[int] = NOT_IN_INPUT
    bridges: tuple[str, ...] = ()  # their addresses, from the device upwards
    speed_gtps: Known[float] = NOT_IN_INPUT
    width: Known[int] = NOT_IN_INPUT
    nvlinks: Known[int] = NOT_IN_INPUT  # of a GPU, the sum over all targets
    line: int = 0
    probe: str = ""


class FileNet(Struct, frozen=True):
    """A network device as the file has it."""

    name: str  # mlx5_0; mlx5_0+mlx5_1 where NCCL joins two ports of one adapter
    address: Known[str] = NOT_IN_INPUT  # 0000:19:00.0
    rate_gbits: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class NcclTopo(Struct, frozen=True):
    """One file. `state`: read | none (no file is named, none is at NCCL's own place) | absent |
    denied | broken (it is there, and NCCL stops at it)."""

    state: str
    path: str = ""
    named: str = ""  # where its path stands: shell, pid 4711, /etc/nccl.conf, default, input
    fault: str = ""  # why it is broken
    devices: tuple[FileDevice, ...] = ()
    nets: tuple[FileNet, ...] = ()
    line: int = 1
    probe: str = ""
