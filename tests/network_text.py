"""Network adapters of a whole host, as sysfs and the tools show them; the values are made up.

Eight adapters of 400 Gbit/s for training, and one of two ports at 100 for logins. In the faulty
host one of the eight runs at 200, with half of its lanes.
"""

from __future__ import annotations

COUNTERS = {
    "counters": {
        "symbol_error": 2, "link_error_recovery": 0, "link_downed": 1, "port_rcv_errors": 3,
        "port_xmit_discards": 0, "local_link_integrity_errors": 0,
        "excessive_buffer_overrun_errors": 0, "VL15_dropped": 0,
    },
    "hw_counters": {
        "out_of_buffer": 0, "out_of_sequence": 12, "packet_seq_err": 0,
        "local_ack_timeout_err": 4, "rx_icrc_encapsulated": 0, "roce_adp_retrans": 0,
        "np_cnp_sent": 812, "rp_cnp_handled": 455,
    },
}  # fmt: skip
#: The adapters for training, and where they sit.
NAMES = ("mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11")
SLOW = "mlx5_6"
_GUID = "a088:c203:00c0:{:04x}"


def _rate(slow: bool) -> str:
    return "200 Gb/sec (2X NDR)" if slow else "400 Gb/sec (4X NDR)"


def _roce_gids(name: str, at: int, netdev: str) -> list[str]:
    """Link-local and IPv4, each for RoCE v1 and v2, as mlx5 fills the table."""
    local = f"fe80:0000:0000:0000:a288:c2ff:fec0:{at:04x}"
    v4 = f"0000:0000:0000:0000:0000:ffff:0a0a:{at + 1:02x}01"
    rows = []
    for index, (gid, kind) in enumerate(
        ((local, "IB/RoCE v1"), (local, "RoCE v2"), (v4, "IB/RoCE v1"), (v4, "RoCE v2"))
    ):
        rows += [
            f"{name}/ports/1/gids/{index}:{gid}",
            f"{name}/ports/1/gid_attrs/types/{index}:{kind}",
            f"{name}/ports/1/gid_attrs/ndevs/{index}:{netdev}",
        ]
    return rows


def _counters(name: str) -> list[str]:
    return [
        f"{name}/ports/1/{folder}/{counter}:{value}"
        for folder, counters in COUNTERS.items()
        for counter, value in counters.items()
    ]


def sysfs(*, roce: bool = False, slow: str = "", logins: bool = True, most: int = 8) -> str:
    """The answer of the probe `nics`."""
    lines, tables = [], []
    for at, name in enumerate(NAMES[:most]):
        netdev = f"ens{at}np0" if roce else f"ibp{at}s0"
        lines += [
            f"nic {name}", f"address 0000:{0x18 + 0x11 * at:02x}:00.0", "hca_type MT4129",
            "board_id MT_0000000838", "fw_ver 28.39.1002", "node_type 1: CA",
            f"sys_image_guid {_GUID.format(at)}", f"numa_node {at // 4}", "port 1",
            "state 4: ACTIVE", "phys_state 5: LinkUp", f"rate {_rate(name == slow)}",
            f"link_layer {'Ethernet' if roce else 'InfiniBand'}",
            f"lid {'0x0' if roce else hex(75 + at)}", f"sm_lid {'0x0' if roce else '0x1'}",
            f"netdev {netdev}", "dev_port 0", f"mtu {4200 if roce else 4092}",
            f"speed {200000 if name == slow else 400000}",
        ]  # fmt: skip
        tables += _roce_gids(name, at, netdev) if roce else []
        tables += _counters(name)
    for function in range(2 if logins else 0):
        lines += [
            f"nic mlx5_{1 + function}", f"address 0000:a1:00.{function}", "hca_type MT4125",
            "board_id MT_0000000359", "fw_ver 22.39.1002", "node_type 1: CA",
            f"sys_image_guid {_GUID.format(99)}", "numa_node 0", "port 1", "state 4: ACTIVE",
            "phys_state 5: LinkUp", "rate 100 Gb/sec (4X EDR)", "link_layer Ethernet", "lid 0x0",
            "sm_lid 0x0", f"netdev eno{1 + function}", "dev_port 0", "mtu 1500", "speed 100000",
        ]  # fmt: skip
    return "\n".join([*lines, *tables, "end", ""])


def ibstat(*, slow: str = "") -> str:
    """The same adapters, as ibstat shows them."""
    found = []
    for at, name in enumerate(NAMES):
        guid = f"0xa088c20300c0{at:04x}"
        found.append(
            f"CA '{name}'\n\tCA type: MT4129\n\tNumber of ports: 1\n"
            f"\tFirmware version: 28.39.1002\n\tHardware version: 0\n\tNode GUID: {guid}\n"
            f"\tSystem image GUID: {guid}\n\tPort 1:\n\t\tState: Active\n"
            f"\t\tPhysical state: LinkUp\n\t\tRate: {200 if name == slow else 400}\n"
            f"\t\tBase lid: {75 + at}\n\t\tLMC: 0\n\t\tSM lid: 1\n"
            f"\t\tCapability mask: 0xa751e848\n\t\tPort GUID: {guid}\n"
            "\t\tLink layer: InfiniBand\n"
        )
    return "".join(found)


def ethtool(*, slow: str = "") -> str:
    """Their interfaces, as `ethtool IFACE`, -g, -l and -a show them."""
    found = []
    for name in NAMES:
        netdev = f"ens{NAMES.index(name)}np0"
        speed, lanes = ("200000", "2") if name == slow else ("400000", "4")
        found.append(
            f"Settings for {netdev}:\n\tSupported ports: [ Backplane ]\n"
            "\tSupported link modes:   100000baseKR4/Full\n"
            "\t                        200000baseCR4/Full\n"
            "\t                        400000baseCR4/Full\n"
            "\tSupported pause frame use: Symmetric\n\tSupports auto-negotiation: Yes\n"
            f"\tSpeed: {speed}Mb/s\n\tLanes: {lanes}\n\tDuplex: Full\n"
            "\tAuto-negotiation: on\n\tPort: Direct Attach Copper\n\tLink detected: yes\n"
            f"Ring parameters for {netdev}:\nPre-set maximums:\nRX:\t\t8192\nRX Mini:\tn/a\n"
            "RX Jumbo:\tn/a\nTX:\t\t8192\nCurrent hardware settings:\nRX:\t\t8192\n"
            "RX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t1024\n"
            f"Channel parameters for {netdev}:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\n"
            "Other:\t\tn/a\nCombined:\t63\nCurrent hardware settings:\nRX:\t\tn/a\n"
            "TX:\t\tn/a\nOther:\t\tn/a\nCombined:\t63\n"
            f"Pause parameters for {netdev}:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n"
        )
    return "".join(found)


IBV_DEVINFO = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.39.1002
\tnode_guid:\t\t\ta088:c203:00c0:0001
\tsys_image_guid:\t\t\ta088:c203:00c0:0001
\tvendor_id:\t\t\t0x02c9
\tvendor_part_id:\t\t\t4129
\thw_ver:\t\t\t\t0x0
\tboard_id:\t\t\tMT_0000000838
\tphys_port_cnt:\t\t\t1
\tmax_mr_size:\t\t\t0xffffffffffffffff
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t0
\t\t\tport_lid:\t\t0
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tEthernet
\t\t\tmax_msg_sz:\t\t0x40000000
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t100.0 Gbps (128)
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:a288:c2ff:fec0:0001, RoCE v1
\t\t\tGID[  1]:\t\tfe80::a288:c2ff:fec0:1, RoCE v2
\t\t\tGID[  2]:\t\t0000:0000:0000:0000:0000:ffff:0a0a:0101, RoCE v1
\t\t\tGID[  3]:\t\t::ffff:10.10.1.1, RoCE v2
"""
IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:a288:c2ff:fec0:0001
\tbase lid:\t 0x4b
\tsm lid:\t\t 0x1
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

"""
RDMA_LINK = """\
link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 75 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP
link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev eno1
link mlx5_2/1 state DOWN physical_state DISABLED netdev eno2
"""  # noqa: E501
RDMA_LINK_JSON = (
    '[{"ifindex":0,"ifname":"mlx5_0","port":1,"subnet_prefix":"fe80:0000:0000:0000","lid":75,'
    '"sm_lid":1,"lmc":0,"state":"ACTIVE","physical_state":"LINK_UP"},{"ifindex":1,"ifname":'
    '"mlx5_1","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eno1",'
    '"netdev_index":2},{"ifindex":2,"ifname":"mlx5_2","port":1,"state":"DOWN",'
    '"physical_state":"DISABLED","netdev":"eno2","netdev_index":3}]\n'
)
SHOW_GIDS = """\
DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
---     ----    -----   ---                                     ------------    ---     ---
mlx5_0  1       0       fe80:0000:0000:0000:a288:c2ff:fec0:0001                 v1      ens0np0
mlx5_0  1       1       fe80:0000:0000:0000:a288:c2ff:fec0:0001                 v2      ens0np0
mlx5_0  1       2       0000:0000:0000:0000:0000:ffff:0a0a:0101 10.10.1.1       v1      ens0np0
mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:0a0a:0101 10.10.1.1       v2      ens0np0
n_gids_found=4
"""
IBDEV2NETDEV = """\
mlx5_0 port 1 ==> ens0np0 (Up)
0000:a1:00.0 mlx5_1 (MT4125 - MCX623106AN-CDAT) ConnectX-6 Dx fw 22.39.1002 port 1 (ACTIVE) ==> eno1 (Up)
"""  # noqa: E501
IP_ADDR = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: eno1: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc mq master bond0 state UP group default qlen 1000
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff
3: ens0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4200 qdisc mq state UP group default qlen 1000
    link/ether a0:88:c2:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 10.10.1.1/24 brd 10.10.1.255 scope global ens0np0
       valid_lft forever preferred_lft forever
4: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 192.0.2.7/24 brd 192.0.2.255 scope global bond0
       valid_lft forever preferred_lft forever
5: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default
    link/ether 02:42:00:00:00:01 brd ff:ff:ff:ff:ff:ff
7: veth1a2b3c@if6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master docker0 state UP group default
    link/ether 02:42:00:00:00:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0
"""  # noqa: E501
BONDING = """\
Ethernet Channel Bonding Driver: v5.15.0-91-generic

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 100

802.3ad info
LACP active: on
LACP rate: fast
Active Aggregator Info:
\tAggregator ID: 1
\tNumber of ports: 2
\tPartner Mac Address: 44:38:39:ff:00:01

Slave Interface: eno1
MII Status: up
Speed: 100000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: b8:3f:d2:00:00:01
Aggregator ID: 1
Actor Churn State: none
Partner Churn State: none

Slave Interface: eno2
MII Status: up
Speed: 100000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: b8:3f:d2:00:00:02
Aggregator ID: 1
Actor Churn State: none
Partner Churn State: none
"""
MLNX_QOS = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
default priority:
Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=1310720
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
"""
NETDEVS = """\
netdev bond0
operstate up
carrier 1
carrier_changes 2
speed 200000
mtu 1500
mode 802.3ad 4
slaves eno1 eno2
rx_missed_errors 0
rx_crc_errors 0
netdev eno1
device /sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0
driver mlx5_core
sriov_numvfs 0
master bond0
operstate up
carrier 1
carrier_changes 4
speed 100000
mtu 1500
mii_status up
rx_missed_errors 0
rx_crc_errors 0
netdev eno2
device /sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.1
driver mlx5_core
sriov_numvfs 0
master bond0
operstate up
carrier 1
carrier_changes 4
speed 100000
mtu 1500
mii_status up
rx_missed_errors 0
rx_crc_errors 0
default bond0
routes
2: bond0    inet 192.0.2.7/24 brd 192.0.2.255 scope global bond0\\       valid_lft forever
addresses
end
"""
#: A drop, and rings that could be larger, in one report of ethtool.
_DROPS = (
    "Ring parameters for eno1:\nPre-set maximums:\nRX:\t\t8192\nTX:\t\t8192\n"
    "Current hardware settings:\nRX:\t\t8192\nTX:\t\t1024\n"
    "NIC statistics:\n     rx_packets: 812\n     rx_out_of_buffer: 40000\n"
    "     rx_crc_errors_phy: 0\n"
)

#: Probe -> its answers.
WRITTEN: dict[str, tuple[str, ...]] = {
    "nics": (sysfs(most=1), sysfs(roce=True, logins=False, most=2)),
    "ibstat": (ibstat(),),
    "ibstatus": (IBSTATUS,),
    "ibv_devinfo": (IBV_DEVINFO,),
    "rdma-link": (RDMA_LINK, RDMA_LINK_JSON),
    "show-gids": (SHOW_GIDS,),
    "ibdev2netdev": (IBDEV2NETDEV,),
    "ethtool": (ethtool(), _DROPS),
    "ip-addr": (IP_ADDR,),
    "bonding": (BONDING,),
    "mlnx-qos": (MLNX_QOS,),
    "netdevs": (NETDEVS,),
}
#: What inputs are made of that a check is seen to fail on.
BASES: dict[str, dict[str, str]] = {
    "ports": {"nics": sysfs()},
    "roce": {"nics": sysfs(roce=True)},
    "training_ports": {"nics": sysfs(logins=False)},
    "training_roce": {"nics": sysfs(roce=True, logins=False)},
    "netdevs": {"netdevs": NETDEVS},
    "bonding": {"bonding": BONDING},
    "ethtool": {"ethtool": ethtool()},
    "drops": {"ethtool": _DROPS},
    "ibv_devinfo": {"ibv_devinfo": IBV_DEVINFO},
    "mlnx-qos": {"mlnx-qos": MLNX_QOS},
    # Each port with what its interface can do.
    "roce_ethtool": {"nics": sysfs(roce=True), "ethtool": ethtool()},
}
