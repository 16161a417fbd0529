"""Network adapters that do RDMA, and their ports, as the kernel shows them in sysfs."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Gid(Struct, frozen=True):
    """One entry of a port's table of addresses; empty entries are left out."""

    index: int
    gid: str  # fe80:0000:0000:0000:...
    kind: Known[str] = NOT_IN_INPUT  # IB/RoCE v1 | RoCE v2, in the kernel's words
    netdev: Known[str] = NOT_IN_INPUT
    ipv4: Known[str] = NOT_IN_INPUT  # the address in it, where it is one of IPv4


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
    rate_max_gbits: Known[float] = NOT_IN_INPUT  # what the port can, by whoever says so
    active_mtu_bytes: Known[int] = NOT_IN_INPUT  # of RDMA on the wire
    lid: Known[int] = NOT_IN_INPUT
    sm_lid: Known[int] = NOT_IN_INPUT  # of the subnet manager; 0: none has come by
    gids: Known[tuple[Gid, ...]] = NOT_IN_INPUT
    virtual: bool = False
    line: int = 0
    probe: str = ""


class Netdev(Struct, frozen=True):
    """One network interface of the kernel that is not the loopback."""

    name: str  # eth0
    address: Known[str] = NOT_IN_INPUT  # on PCI: 0000:18:00.0
    driver: Known[str] = NOT_IN_INPUT
    kind: str = "physical"  # physical | virtual-function | bond | bridge | vlan | tunnel | other
    state: Known[str] = NOT_IN_INPUT  # up | down | lowerlayerdown ...
    carrier: Known[bool] = NOT_IN_INPUT
    carrier_changes: Known[int] = NOT_IN_INPUT  # since it was made
    rate_gbits: Known[float] = NOT_IN_INPUT
    mtu_bytes: Known[int] = NOT_IN_INPUT
    master: Known[str] = NOT_IN_INPUT  # the bond or bridge that it belongs to
    members: Known[tuple[str, ...]] = NOT_IN_INPUT  # of a bond
    ipv4: Known[tuple[str, ...]] = NOT_IN_INPUT  # 10.0.0.1/24
    default_route: Known[bool] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Nics(Struct, frozen=True):
    """One answer: `devices` and `ports` are empty where the host has none."""

    devices: tuple[Nic, ...]
    ports: tuple[NicPort, ...]
    line: int = 1
    probe: str = ""
