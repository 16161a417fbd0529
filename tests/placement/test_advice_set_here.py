"""Variables that are set already are weighed: what is in the way is replaced, what does is kept."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.facts.nics import Netdev
from preflight.facts.stack import EnvTargets, EnvVar
from preflight.model import Advice
from preflight.placement.advice import advise
from tests.placed_hosts import TWO_NODES, dgx, even, matrix, netdev, placed, port
from tests.placement.test_advice_exports import (
    DOCKER,
    ETH0,
    ETH1,
    IB,
    STORAGE,
    exports,
    left,
    on_dgx,
    why,
)


def set_to(*variables: tuple[str, str], of: str = "shell") -> tuple[EnvVar, ...]:
    return tuple(EnvVar(name, value, of) for name, value in variables)


HERE = EnvTargets(netdevs=("lo", "eth0", "eth1", "docker0"))


def with_interfaces(name: str, value: str, *netdevs: Netdev, rdma: bool = True) -> Advice:
    graph = dgx("NV18", storage=()) if rdma else matrix(even(8, "NV18"), {}, TWO_NODES)
    return advise(
        placed(
            graph, nic_ports=IB if rdma else (), netdevs=netdevs, env_targets=HERE,
            environment=set_to((name, value)),
        )
    )  # fmt: skip


def test_rdma_that_is_switched_off_beside_its_adapters_is_switched_on() -> None:
    advice = on_dgx(nic_ports=IB, environment=set_to(("NCCL_IB_DISABLE", "1")))
    assert exports(advice)["NCCL_IB_DISABLE"] == "0"
    assert why(advice, "NCCL_IB_DISABLE").startswith(
        "NCCL_IB_DISABLE=1 is set here: NCCL goes past the adapters that carry training (8)"
    )
    for variables in (set_to(("NCCL_IB_DISABLE", "0")), ()):
        assert "NCCL_IB_DISABLE" not in exports(on_dgx(nic_ports=IB, environment=variables))
    bare = placed(matrix(even(8, "NV18"), {}, TWO_NODES), nic_ports=())
    assert advise(replace(bare, environment=set_to(("NCCL_IB_DISABLE", "1")))) == advise(bare)
    net = on_dgx(nic_ports=IB, environment=set_to(("NCCL_NET", "Socket"), of="/etc/nccl.conf"))
    assert "is set in /etc/nccl.conf: NCCL goes past" in left(net, "NCCL_NET=Socket")


@pytest.mark.parametrize("value, fault", [
    ("eth9", "and no interface here has such a name: the run stops at the start"),
    ("=eth", "and no interface here has such a name"),
    ("docker0", "which leads to no other host"),
    ("lo", "which leads to no other host"),
    ("eth1", "which is down: the run stops at the start"),
])  # fmt: skip
def test_an_interface_that_does_not_do_is_replaced_whatever_nccl_would_take(
    value: str, fault: str
) -> None:
    down = replace(ETH1, state="down")
    for more in ((), (netdev("eth2", "10.2.0.1/16"),), (netdev("ib0", "10.9.0.1/16"),)):
        advice = with_interfaces("NCCL_SOCKET_IFNAME", value, ETH0, down, DOCKER, *more)
        assert exports(advice)["NCCL_SOCKET_IFNAME"] in ("=eth0", "=ib0")
        told = why(advice, "NCCL_SOCKET_IFNAME")
        assert told.startswith(f"NCCL_SOCKET_IFNAME={value} is set here, {fault}")
    gloo = with_interfaces("GLOO_SOCKET_IFNAME", value, ETH0, down, DOCKER)
    assert fault in left(gloo, f"GLOO_SOCKET_IFNAME={value} is set here")


def test_without_a_better_one_the_wrong_interface_is_told_alone() -> None:
    free = replace(ETH0, default_route=False)
    advice = with_interfaces("NCCL_SOCKET_IFNAME", "docker0", free, ETH1, DOCKER)
    assert not exports(advice)
    assert left(advice, "NCCL_SOCKET_IFNAME=docker0").endswith("that leads to the other hosts")


@pytest.mark.parametrize(
    "value, taken", [("eth1", "eth1"), ("=eth0", "eth0"), ("eth", "eth0, eth1")]
)
def test_an_interface_that_does_is_kept(value: str, taken: str) -> None:
    advice = with_interfaces("NCCL_SOCKET_IFNAME", value, ETH0, ETH1, DOCKER)
    assert left(advice, "NCCL_SOCKET") == (
        f"NCCL_SOCKET_IFNAME={value} is set here: NCCL takes {taken}"
    )
    assert exports(advice) == ({} if "," in taken else {"GLOO_SOCKET_IFNAME": taken})


def test_what_is_left_out_leaves_a_choice() -> None:
    advice = with_interfaces("NCCL_SOCKET_IFNAME", "^docker,lo", ETH0, ETH1, DOCKER)
    assert exports(advice)["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert why(advice, "NCCL_SOCKET_IFNAME").endswith("NCCL_SOCKET_IFNAME=^docker,lo is set here")
    one = with_interfaces("NCCL_SOCKET_IFNAME", "^docker,lo,eth1", ETH0, ETH1, DOCKER)
    assert "NCCL has one to take, eth0; NCCL_SOCKET_IFNAME=^docker" in left(one, "NCCL_SOCKET")


def test_a_slow_interface_is_told_where_it_carries_the_data() -> None:
    slow = replace(ETH0, rate_gbits=1.0)
    advice = with_interfaces("NCCL_SOCKET_IFNAME", "eth0", slow, ETH1, rdma=False)
    assert "of 1 Gb/s, and without RDMA it carries the collectives too: eth1 has 100" in left(
        advice, "NCCL_SOCKET_IFNAME=eth0"
    )
    beside = with_interfaces("NCCL_SOCKET_IFNAME", "eth0", slow, ETH1)
    assert left(beside, "NCCL_SOCKET_IFNAME").endswith("NCCL takes eth0")


def test_interfaces_that_the_input_does_not_list_are_not_called_absent() -> None:
    host = placed(dgx("NV18", storage=()), nic_ports=IB, netdevs=(ETH0,))
    advice = advise(replace(host, environment=set_to(("NCCL_SOCKET_IFNAME", "bond0"))))
    assert left(advice, "NCCL_SOCKET_IFNAME") == "NCCL_SOCKET_IFNAME=bond0 is set here"


def test_what_is_set_in_spite_of_the_advice_stands_beside_it() -> None:
    variables = set_to(("NCCL_ALGO", "Ring"), ("NCCL_IB_GID_INDEX", "0"), ("NCCL_IB_HCA", "mlx5_0"))
    advice = advise(replace(placed(dgx("NV18"), other=STORAGE), nic_ports=(*IB, port("mlx5_8")),
                            environment=variables))  # fmt: skip
    assert left(advice, "NCCL_ALGO, NCCL_PROTO").endswith("; NCCL_ALGO=Ring is set here")
    assert left(advice, "NCCL_IB_GID_INDEX").endswith("; NCCL_IB_GID_INDEX=0 is set here")
    assert why(advice, "NCCL_IB_HCA").endswith("NCCL_IB_HCA=mlx5_0 is set here")


def test_a_bridge_of_docker_is_told_without_a_list_of_interfaces() -> None:
    host = placed(dgx("NV18", storage=()), environment=set_to(("NCCL_SOCKET_IFNAME", "docker0,lo")))
    assert "is set here, which leads to no other host" in left(advise(host), "NCCL_SOCKET_IFNAME")
