"""Variables: only what NCCL would get wrong by itself, with the value of this host."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from preflight.facts.gpu import Gpu
from preflight.facts.nics import Gid, NicPort
from preflight.facts.stack import EnvVar
from preflight.facts.stack_pieces import Stack
from preflight.facts.topology import NicPlace
from preflight.model import Advice, Missing
from preflight.placement.advice import advise
from tests.conftest import sample
from tests.placed_hosts import (
    TWO_NODES,
    dgx,
    even,
    matrix,
    netdev,
    placed,
    port,
    roce,
    with_nccl,
)

STORAGE = ("mlx5_8", "mlx5_9")
EIGHT = tuple(f"mlx5_{at}" for at in range(8))
OLD, NEW = with_nccl("2.20.5"), with_nccl("2.21.5")
IB = tuple(map(port, EIGHT))


def exports(advice: Advice) -> dict[str, str]:
    assert all(one.why for one in advice.exports)
    return {one.name: one.value for one in advice.exports}


def why(advice: Advice, name: str) -> str:
    return next(one.why for one in advice.exports if one.name == name)


def left(advice: Advice, name: str) -> str:
    return next((line for line in advice.left if line.startswith(name)), "")


def on_dgx(**fields: Any) -> Advice:
    return advise(placed(dgx("NV18"), other=STORAGE, **fields))


# NCCL_IB_HCA


@pytest.mark.parametrize("label", ["NIC{}", "0000:1{}:00.0"])
def test_a_label_of_the_matrix_and_an_address_are_no_names(label: str) -> None:
    """NCCL takes no adapter at all where none has a name that is given."""
    host = placed(dgx("NV18"), other=STORAGE)
    nics = host.topology.nics
    assert not isinstance(nics, Missing)
    nameless = tuple(replace(nic, name=label.format(at)) for at, nic in enumerate(nics))
    advice = advise(replace(host, topology=replace(host.topology, nics=nameless)))
    assert "NCCL_IB_HCA" not in exports(advice)
    assert "names of the adapters are not in the input" in left(advice, "NCCL_IB_HCA")
    assert not any("NCCL_IB_HCA" in one.text for one in advice.snippets)


def test_adapters_are_named_where_nccl_would_take_others_too() -> None:
    ports = (*IB, port("mlx5_8", layer="Ethernet", rate=100.0), port("mlx5_9", rate=200.0))
    advice = on_dgx(nic_ports=ports)
    assert exports(advice) == {"NCCL_IB_HCA": "=" + ",".join(f"{name}:1" for name in EIGHT)}
    told = why(advice, "NCCL_IB_HCA")
    assert "mlx5_8:1 (Ethernet 100 Gb/s), mlx5_9:1 (InfiniBand 200 Gb/s)" in told


@pytest.mark.parametrize("state", ["DOWN", "INIT"])
def test_they_are_not_named_where_the_others_are_not_active(state: str) -> None:
    advice = on_dgx(nic_ports=(*IB, *(port(name, state=state) for name in STORAGE)))
    assert exports(advice) == {}
    assert left(advice, "NCCL_IB_HCA").endswith("that it would take here carry training (8)")


def test_a_training_port_that_is_down_is_not_named() -> None:
    ports = (port("mlx5_0", state="DOWN"), *IB[1:], port("mlx5_8"))
    assert exports(on_dgx(nic_ports=ports))["NCCL_IB_HCA"].startswith("=mlx5_1:1,mlx5_2:1,")


def test_adapters_of_a_matrix_alone_are_named_without_ports() -> None:
    advice = on_dgx()
    assert exports(advice) == {"NCCL_IB_HCA": "=" + ",".join(EIGHT)}
    assert "mlx5_8 (NODE at best)" in why(advice, "NCCL_IB_HCA")


def test_names_are_in_the_order_of_their_numbers() -> None:
    host = placed(dgx("NV18", storage=("mlx5_10", "mlx5_11")), other=("mlx5_11",))
    last = ("mlx5_10", "mlx5_11")
    named = exports(advise(replace(host, nic_ports=(*map(port, last), *IB))))["NCCL_IB_HCA"]
    assert named.endswith("mlx5_7:1,mlx5_10:1")
    assert exports(advise(host))["NCCL_IB_HCA"].endswith("mlx5_7,mlx5_10")


def test_the_second_port_of_a_card_is_named_by_its_number() -> None:
    both = (port("mlx5_0"), replace(port("mlx5_0"), name="mlx5_0/2"), port("mlx5_8"))
    assert exports(on_dgx(nic_ports=both))["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_0:2"


def test_roles_that_are_not_known_give_no_names() -> None:
    host = placed(dgx("NV18"))
    nics = (NicPlace("mlx5_0", role=Missing("denied", "/sys may not be read")),)
    advice = advise(replace(host, topology=replace(host.topology, nics=nics)))
    assert exports(advice) == {}
    assert left(advice, "NCCL_IB_HCA").endswith("is not known: /sys may not be read")
    down = (NicPlace("mlx5_0", role="down"),)
    advice = advise(replace(host, topology=replace(host.topology, nics=down)))
    assert "no adapter here is up" in left(advice, "NCCL_IB_HCA")


def test_a_host_without_adapters_is_told_nothing_of_them() -> None:
    advice = advise(placed(matrix(even(8, "NV18"), {}, TWO_NODES)))
    assert exports(advice) == {}
    assert not any("NCCL_IB" in line for line in advice.left)


# NCCL_IB_GID_INDEX


def on_roce(ports: tuple[NicPort, ...], stack: Stack) -> Advice:
    return advise(placed(dgx("NV18", storage=()), nic_ports=ports, stack=stack))


ROCE = tuple(roce(name, f"10.{at}.0.1") for at, name in enumerate(EIGHT))
SIXTH = tuple(
    port(name, layer="Ethernet", gids=[(0, "IB/RoCE v1", "fe80::1"), (1, "RoCE v2", "fe80::1"),
                                       (2, "IB/RoCE v1", "2001:db8::1"),
                                       (3, "RoCE v2", "2001:db8::1")])
    for name in EIGHT
)  # fmt: skip


def test_old_nccl_is_told_the_index_of_roce_v2() -> None:
    advice = on_roce(ROCE, OLD)
    assert exports(advice) == {"NCCL_IB_GID_INDEX": "3"}
    assert "NCCL 2.20.5 takes 0" in why(advice, "NCCL_IB_GID_INDEX")


def test_the_index_is_this_hosts() -> None:
    ports = tuple(roce(name, "10.0.0.1", index=7) for name in EIGHT)
    assert exports(on_roce(ports, OLD)) == {"NCCL_IB_GID_INDEX": "7"}


def test_new_nccl_is_told_none() -> None:
    advice = on_roce(ROCE, NEW)
    assert exports(advice) == {}
    assert "NCCL 2.21.5 chooses RoCE v2 on each port by itself" in left(advice, "NCCL_IB_GID_INDEX")


def test_where_the_version_is_not_known_the_condition_is_told() -> None:
    advice = on_roce(ROCE, Stack())
    assert exports(advice) == {"NCCL_IB_GID_INDEX": "3"}
    assert "NCCL before 2.21 takes 0, later ones choose" in why(advice, "NCCL_IB_GID_INDEX")


def test_no_one_number_is_right_where_indexes_differ() -> None:
    advice = on_roce((*ROCE[:7], roce("mlx5_7", "10.7.0.1", index=5)), OLD)
    assert exports(advice) == {}
    assert "no one number is right (mlx5_0 3," in left(advice, "NCCL_IB_GID_INDEX")
    assert "mlx5_7 5)" in left(advice, "NCCL_IB_GID_INDEX")


def test_ipv6_alone_is_what_new_nccl_does_not_look_for() -> None:
    assert exports(on_roce(SIXTH, NEW)) == {"NCCL_IB_ADDR_FAMILY": "AF_INET6"}
    assert exports(on_roce(SIXTH, OLD)) == {"NCCL_IB_GID_INDEX": "3"}
    unknown = on_roce(SIXTH, Stack())
    assert exports(unknown) == {}
    assert "AF_INET6 from NCCL 2.21 on" in left(unknown, "NCCL_IB_GID_INDEX")


def test_a_port_without_an_address_has_no_index() -> None:
    bare = port("mlx5_7", layer="Ethernet", gids=[(1, "RoCE v2", "fe80::1")])
    for stack in (OLD, NEW):
        advice = on_roce((*ROCE[:7], bare), stack)
        assert exports(advice) == {}
        assert "mlx5_7 without a RoCE v2 address" in left(advice, "NCCL_IB_GID_INDEX")


def test_several_addresses_of_a_port_are_told() -> None:
    gids: tuple[Gid, ...] = (
        Gid(3, "::ffff:10.0.0.1", "RoCE v2", ipv4="10.0.0.1"),
        Gid(5, "::ffff:10.9.0.1", "RoCE v2", ipv4="10.9.0.1"),
    )
    ports = tuple(replace(one, gids=gids) for one in ROCE)
    assert "mlx5_0 has several: NCCL_IB_ADDR_RANGE" in left(on_roce(ports, NEW), "NCCL_IB_GID")
    assert exports(on_roce(ports, OLD)) == {"NCCL_IB_GID_INDEX": "3"}


def test_tables_that_are_not_known_give_no_number() -> None:
    ports = tuple(replace(one, gids=Missing("not-in-input", "not in the input")) for one in ROCE)
    assert exports(on_roce(ports, OLD)) == {}
    assert "NCCL 2.20.5 needs it" in left(on_roce(ports, OLD), "NCCL_IB_GID_INDEX")
    assert "NCCL before 2.21 needs it" in left(on_roce(ports, Stack()), "NCCL_IB_GID_INDEX")
    assert "by itself" in left(on_roce(ports, NEW), "NCCL_IB_GID_INDEX")


@pytest.mark.parametrize("stack", [OLD, NEW, Stack()])
def test_on_infiniband_the_index_is_never_advised(stack: Stack) -> None:
    advice = on_dgx(nic_ports=(*IB, port("mlx5_8", layer="Ethernet")), stack=stack)
    assert set(exports(advice)) == {"NCCL_IB_HCA"}
    assert left(advice, "NCCL_IB_GID_INDEX").endswith("these adapters are InfiniBand")


# NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME

ETH0 = netdev("eth0", "10.0.0.1/24", default_route=True, rate_gbits=25.0)
ETH1 = netdev("eth1", "10.1.0.1/24", rate_gbits=100.0)
DOCKER = netdev("docker0", "172.17.0.1/16", kind="bridge")
BRIDGE = netdev("br-4f1a", "172.18.0.1/16", kind="bridge")

#: interfaces -> the one that is named; "": none.
INTERFACES = {
    "one": ((ETH0,), ""),
    "one and docker": ((ETH0, DOCKER), ""),
    "two": ((ETH1, ETH0), "eth0"),
    "a bridge of Docker Compose": ((BRIDGE, ETH0), "eth0"),
    "the other is down": ((ETH0, replace(ETH1, state="down")), ""),
    "the other has no carrier": ((ETH0, replace(ETH1, carrier=False)), ""),
    "the other has no address": ((ETH0, netdev("eth1", "")), ""),
    "the other's is of the link": ((ETH0, netdev("usb0", "169.254.3.1/16")), ""),
    "IPoIB": ((ETH0, netdev("ib0", "10.9.0.1/16"), ETH1), ""),
    "no route, one leads out": ((replace(ETH0, default_route=False), BRIDGE), "eth0"),
    "no route, two": ((replace(ETH0, default_route=False), ETH1), ""),
}


@pytest.mark.parametrize("name", INTERFACES)
def test_an_interface_is_named_where_nccl_has_a_choice(name: str) -> None:
    netdevs, chosen = INTERFACES[name]
    advice = advise(placed(dgx("NV18", storage=()), nic_ports=IB, netdevs=netdevs))
    wanted = {"NCCL_SOCKET_IFNAME": f"={chosen}", "GLOO_SOCKET_IFNAME": chosen}
    assert exports(advice) == (wanted if chosen else {})
    assert bool(left(advice, "NCCL_SOCKET_IFNAME")) != bool(chosen)


def test_without_rdma_the_fastest_interface_carries_the_data() -> None:
    bare = matrix(even(8, "NV18"), {}, TWO_NODES)
    advice = advise(placed(bare, netdevs=(ETH0, ETH1)))
    assert exports(advice)["NCCL_SOCKET_IFNAME"] == "=eth1"
    assert "the fastest, 100 Gb/s; without RDMA it carries the collectives too" in why(
        advice, "NCCL_SOCKET_IFNAME"
    )
    alike = (ETH0, replace(ETH1, rate_gbits=25.0))
    assert exports(advise(placed(bare, netdevs=alike)))["NCCL_SOCKET_IFNAME"] == "=eth0"


# What is left alone


def test_constants_of_recipes_are_left_alone() -> None:
    advice = on_roce(ROCE, NEW)
    assert "NCCL derives them from the topology" in left(advice, "NCCL_ALGO")
    assert "compare with nccl-tests" in left(advice, "NCCL_IB_QPS_PER_CONNECTION")
    assert len(advice.left) <= 4
    assert left(on_dgx(), "NCCL_IB_QPS_PER_CONNECTION") == ""
    assert advise(placed(matrix(["X"], {}, ["0-3"]))).left == ()


def test_a_virtual_machine_of_a_whole_board_is_told_of_the_topology_file() -> None:
    text = matrix(even(8, "NV18"), {}, ["0-63"])
    assert left(advise(placed(text, virtualization="vm")), "NCCL_TOPO_FILE")
    assert not left(advise(placed(text, virtualization="none")), "NCCL_TOPO_FILE")
    named = Stack(environment=(EnvVar("NCCL_TOPO_FILE", "/opt/ndv4.xml"),))
    assert not left(advise(placed(text, virtualization="vm", stack=named)), "NCCL_TOPO_FILE")
    small = matrix(even(2, "NV12"), {}, ["0-63"])
    assert not left(advise(placed(small, virtualization="vm")), "NCCL_TOPO_FILE")
    two = matrix(even(8, "NV18"), {}, TWO_NODES)
    assert not left(advise(placed(two, virtualization="vm")), "NCCL_TOPO_FILE")


def test_nothing_depends_on_a_gpu_that_only_has_a_name() -> None:
    """Facts of nvidia-smi beside the matrix change nothing of the variables."""
    gpus = tuple(Gpu(at, f"gpu{at}", f"00000000:{at:02x}:00.0", product="NVIDIA H100 80GB HBM3")
                 for at in range(8))  # fmt: skip
    assert on_dgx(gpus=gpus) == on_dgx()


def test_of_a_matrix_alone_it_is_not_known_that_the_adapters_are_up() -> None:
    told = left(advise(placed(sample("topo/h20_x8_8nic_pix_pairs_tabs.txt"))), "NCCL_IB_HCA")
    assert told.endswith("carry training, if they are up (8)")
