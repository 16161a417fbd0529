"""Network adapters that do RDMA, and their ports, as the kernel shows them in sysfs."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Nic(Struct, frozen=True):
    """One RDMA device: an InfiniBand HCA or an Ethernet adapter with RoCE, EFA and the like."""

    name: str  # mlx5_0
    hca: Known[str] = NOT_IN_INPUT  # MT4129
    board_id: Known[str] = NOT_IN_INPUT  # PSID: MT_0000000838
    firmware: Known[str] = NOT_IN_INPUT  # 28.39.1002
    address: Known[str] = NOT_IN_INPUT  # 0000:18:00.0
    numa_node: Known[int] = NOT_IN_INPUT
    virtual: bool = False  # an SR-IOV function that is given to somebody
    line: int = 0
    probe: str = ""


class NicPort(Struct, frozen=True):
    """One port, in the kernel's words."""

    name: str  # mlx5_0/1
    nic: str
    hca: Known[str] = NOT_IN_INPUT
    state: Known[str] = NOT_IN_INPUT  # ACTIVE | INIT | DOWN ...
    phys_state: Known[str] = NOT_IN_INPUT  # LinkUp | Polling | Disabled ...
    rate_gbits: Known[float] = NOT_IN_INPUT
    lanes: Known[int] = NOT_IN_INPUT
    link_layer: Known[str] = NOT_IN_INPUT  # InfiniBand | Ethernet
    netdev: Known[str] = NOT_IN_INPUT  # the network interface on the same port
    mtu_bytes: Known[int] = NOT_IN_INPUT  # of the interface
    netdev_rate_gbits: Known[float] = NOT_IN_INPUT
    virtual: bool = False
    line: int = 0
    probe: str = ""


class Nics(Struct, frozen=True):
    """One answer: `devices` and `ports` are empty where the host has none."""

    devices: tuple[Nic, ...]
    ports: tuple[NicPort, ...]
    line: int = 1
    probe: str = ""
