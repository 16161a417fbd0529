"""Network adapters that do RDMA, and their ports, as the kernel shows them in sysfs."""

from __future__ import annotations

from msgspec import Struct, field

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
    usual_firmware: Known[str] = NOT_IN_INPUT  # of the adapters of its model here, itself included
    model: Known[str] = NOT_IN_INPUT  # ConnectX-7
    system_guid: Known[str] = NOT_IN_INPUT  # one for all devices of a card
    transport: Known[str] = NOT_IN_INPUT  # InfiniBand (RoCE as well) | iWARP | unspecified
    address: Known[str] = NOT_IN_INPUT  # 0000:18:00.0
    numa_node: Known[int] = NOT_IN_INPUT
    virtual: bool = False  # an SR-IOV function that is given to somebody
    line: int = 0
    probe: str = ""


class PortErrors(Struct, frozen=True):
    """What a port counts since its driver was loaded, or the counters were last cleared; the names
    are the kernel's (Documentation/ABI/stable/sysfs-class-infiniband)."""

    symbol_error: Known[int] = NOT_IN_INPUT
    link_error_recovery: Known[int] = NOT_IN_INPUT
    link_downed: Known[int] = NOT_IN_INPUT
    port_rcv_errors: Known[int] = NOT_IN_INPUT
    port_xmit_discards: Known[int] = NOT_IN_INPUT
    local_link_integrity_errors: Known[int] = NOT_IN_INPUT
    excessive_buffer_overrun_errors: Known[int] = NOT_IN_INPUT
    vl15_dropped: Known[int] = NOT_IN_INPUT
    # Of the adapter's transport (mlx5, bnxt_re).
    out_of_buffer: Known[int] = NOT_IN_INPUT
    out_of_sequence: Known[int] = NOT_IN_INPUT
    packet_seq_err: Known[int] = NOT_IN_INPUT
    local_ack_timeout_err: Known[int] = NOT_IN_INPUT
    rx_icrc_encapsulated: Known[int] = NOT_IN_INPUT
    roce_adp_retrans: Known[int] = NOT_IN_INPUT
    np_cnp_sent: Known[int] = NOT_IN_INPUT  # answers to packets marked by ECN
    rp_cnp_handled: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class NicPort(Struct, frozen=True):
    """One port, in the kernel's words. Ports are alike (`usual`) whose adapters are of one model,
    board and number of ports, with one link layer."""

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
    errors: PortErrors = field(default_factory=PortErrors)
    transport: Known[str] = NOT_IN_INPUT
    #: training | spare (a further port of a card, none of whose kind is up) | other (slower than
    #: those of training, of another link layer, for storage and logins) | left-out (fit for
    #: training, and not in the list of Host.nic_choice) | virtual. Where the places of adapters and
    #: GPUs are known these decide: topology.nics.
    role: Known[str] = NOT_IN_INPUT
    usual_rate_gbits: Known[float] = NOT_IN_INPUT  # of ports like it that are up
    usual_lanes: Known[int] = NOT_IN_INPUT
    usual_link_layer: Known[str] = NOT_IN_INPUT
    #: Of the RoCE v2 entry with an IPv4 address, else with one of IPv6 that is routed.
    gid_index: Known[int] = NOT_IN_INPUT
    roce_v2: Known[bool] = NOT_IN_INPUT  # whether there is such an entry
    virtual: bool = False
    line: int = 0
    probe: str = ""


class NicChoice(Struct, frozen=True):
    """A list of the adapters that training is to use, in NCCL's words (hca_list.py)."""

    value: str  # =mlx5_0,mlx5_1:1
    by: str  # --nics | NCCL_IB_HCA


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
    rate_max_gbits: Known[float] = NOT_IN_INPUT  # the fastest mode that it supports
    members_down: Known[tuple[str, ...]] = NOT_IN_INPUT  # of a bond
    members_up: Known[int] = NOT_IN_INPUT
    #: Of a bond by LACP: outside its active aggregator, churned, or with nobody who answers.
    members_out: Known[tuple[str, ...]] = NOT_IN_INPUT
    member_rates_gbits: Known[tuple[float, ...]] = NOT_IN_INPUT  # each once
    virtual_functions: Known[int] = NOT_IN_INPUT  # that were made of it
    rx_missed: Known[int] = NOT_IN_INPUT  # dropped by the adapter for want of room, since it is up
    rx_crc_errors: Known[int] = NOT_IN_INPUT
    # What ethtool and mlnx_qos tell.
    firmware: Known[str] = NOT_IN_INPUT
    full_duplex: Known[bool] = NOT_IN_INPUT
    rx_ring: Known[int] = NOT_IN_INPUT  # entries
    rx_ring_max: Known[int] = NOT_IN_INPUT
    channels: Known[int] = NOT_IN_INPUT
    channels_max: Known[int] = NOT_IN_INPUT
    pause_rx: Known[bool] = NOT_IN_INPUT  # of the whole link; PFC is of priorities
    pause_tx: Known[bool] = NOT_IN_INPUT
    trust: Known[str] = NOT_IN_INPUT  # pcp | dscp: what tells a packet's priority
    pfc: Known[tuple[int, ...]] = NOT_IN_INPUT  # priorities that may be paused
    lossless: Known[bool] = NOT_IN_INPUT  # some priority may
    rdma: bool = False  # it belongs to a port of an RDMA device, which is judged as such
    usual_rate_gbits: Known[float] = NOT_IN_INPUT  # of interfaces that can do as much and are up
    line: int = 0
    probe: str = ""


class Netdevs(Struct, frozen=True):
    """One answer about interfaces."""

    devices: tuple[Netdev, ...]
    line: int = 1
    probe: str = ""


class Nics(Struct, frozen=True):
    """One answer: `devices` and `ports` are empty where the host has none."""

    devices: tuple[Nic, ...]
    ports: tuple[NicPort, ...]
    line: int = 1
    probe: str = ""
