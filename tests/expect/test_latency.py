"""What a small message may take, against what sound machines, EFA, TCP and sleepy hosts take."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.expect.latency import collective_latency
from preflight.facts.collectives import Collective
from preflight.facts.host import Host
from preflight.facts.nccl import NcclLog, NcclSelection
from preflight.facts.nics import Netdev, NicPort
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.model import Known, Missing, Raw, Result, Status
from tests import collective_text as text

A100, H100, H100_PCIE = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"
T4, GB200 = "Tesla T4", "NVIDIA GB200"
CHECKS = [one for one in load(("collectives",)).checks if one.id == "collectives.latency"]
_UNKNOWN = Missing("not-in-input", "not in the input")
_NO_RDMA = Missing("not-applicable", "no RDMA device in /sys/class/infiniband")


def port(layer: str) -> tuple[NicPort, ...]:
    return (NicPort("mlx5_0/1", "mlx5_0", state="ACTIVE", link_layer=layer, role="training"),)


#: What the hosts talk through, as the input tells it.
NETWORKS: dict[str, dict[str, Any]] = {
    "ib": {"nic_ports": port("InfiniBand")},
    "roce": {"nic_ports": port("Ethernet")},
    "efa": {"nic_ports": port("Unspecified")},
    "none": {"nic_ports": _NO_RDMA},
    "google": {"nic_ports": _NO_RDMA, "netdevs": (Netdev("eth1", driver="gve"),)},
    "unknown": {"nic_ports": _UNKNOWN},
    "log: IB": {"nccl": NcclLog(9, 9, selections=(NcclSelection("a", "a", "IB"),))},
    "log: OFI": {"nccl": NcclLog(9, 9, selections=(NcclSelection("a", "a", "AWS Libfabric"),))},
}


def host(
    network: str, product: str, ranks: int, hosts: int, took_us: Known[float],
    collective: str = "all_reduce", tool: str = "nccl-tests",
) -> Host:  # fmt: skip
    """A host with that benchmark."""
    run = Collective(
        collective, tool, collective, ranks, host_count=hosts, product=product, small_us=took_us
    )
    return Host("node-01", collectives=(run,), **NETWORKS[network])


def judged(one: Host) -> Result:
    (found,) = judge(one, CHECKS)
    return found


# Measured: samples/nccl_tests; NVIDIA/nccl-tests, issue 150 (two A100 of two hosts); A3 Mega, 16
# H100; deepseek-ai/DeepEP, issue 303 (eight H20).
@pytest.mark.parametrize("case", [
    ("unknown", A100, 8, 1, 35.0), ("unknown", H100, 8, 1, 15.3),
    ("unknown", "NVIDIA H20", 8, 1, 12.5),
    ("unknown", A100, 8, 1, 34.5, "all_gather"), ("unknown", A100, 8, 1, 34.5, "broadcast"),
    ("unknown", A100, 8, 1, 35.4, "reduce"), ("unknown", A100, 8, 1, 34.8, "reduce_scatter"),
    ("ib", A100, 16, 2, 37.0), ("roce", H100, 16, 2, 38.0), ("ib", A100, 2, 2, 19.0),
    ("log: IB", A100, 16, 2, 37.0), ("unknown", A100, 16, 2, 37.0),
    ("roce", "NVIDIA B200", 16, 2, 35.8, "all_gather"),
    ("efa", H100, 16, 2, 68.0), ("efa", A100, 16, 2, 161.5), ("log: OFI", A100, 16, 2, 161.5),
    ("google", H100, 16, 2, 123.0),
    # So many ranks by NCCL's own model: its time is the bound without the launch.
    ("ib", H100, 512, 64, 90.0), ("ib", GB200, 72, 18, 60.0),
])  # fmt: skip
def test_sound_machines_raise_no_alarm(case: Any) -> None:
    assert judged(host(*case)).status is Status.PASS


@pytest.mark.parametrize(("case", "status"), [
    (("ib", A100, 2, 2, 177.0), Status.FAIL),  # TCP in place of RDMA: two hosts of AWS
    (("none", A100, 16, 2, 200.0), Status.FAIL),  # the same, of hosts without RDMA
    (("roce", H100, 16, 2, 250.0), Status.FAIL),
    (("ib", H100, 16, 2, 75.0), Status.WARN),  # a host that wakes up slowly
    (("unknown", H100, 8, 1, 70.0), Status.WARN),
    (("unknown", H100, 8, 1, 120.0), Status.FAIL),
    (("ib", H100, 512, 64, 400.0), Status.FAIL),
    (("efa", A100, 16, 2, 900.0), Status.FAIL),
    # No message gets so far in so short a time.
    (("ib", H100, 16, 2, 0.5), Status.ERROR), (("unknown", H100, 8, 1, 0.5), Status.ERROR),
    (("ib", H100, 64, 8, 3.5), Status.ERROR),
    (("unknown", A100, 16, 2, 5000.0), Status.FAIL),  # too slow for anything
    # A process group of torch takes longer to launch one.
    (("ib", H100, 16, 2, 90.0, "all_reduce", "torch 2.7.0, nccl"), Status.PASS),
    (("ib", H100, 16, 2, 250.0, "all_reduce", "torch 2.7.0, nccl"), Status.FAIL),
])  # fmt: skip
def test_what_takes_long_is_told(case: Any, status: Status) -> None:
    assert judged(host(*case)).status is status


@pytest.mark.parametrize(("case", "reason"), [
    (("unknown", A100, 16, 2, 161.5), "so long takes TCP, and EFA too"),
    (("none", T4, 2, 2, 177.0), "the hosts have no port of RDMA for training"),
    (("ib", H100, 16, 2, 86.0, "alltoall"), "no source tells how long"),
    (("ib", H100, 16, 2, 86.0, "all_gather or alltoall"), "no source tells how long"),
    (("ib", H100_PCIE, 16, 2, 86.0), "no NVSwitch joins the GPUs of a host"),
    (("unknown", H100, 1, 1, 5.0), "one rank by itself sends nothing"),
    (("ib", "NVIDIA Graphics Device", 16, 2, 38.0), "has no row in checks/data/gpus.yaml"),
])  # fmt: skip
def test_what_no_source_tells_is_shown_and_not_judged(case: Any, reason: str) -> None:
    found = judged(host(*case))
    assert found.status is Status.SKIP and reason in found.reason


def test_steps_grow_with_the_depth_of_the_tree_and_the_length_of_the_ring() -> None:
    def bound(ranks: int, hosts: int, collective: str = "all_reduce") -> float:
        one = host("ib", H100, ranks, hosts, 10.0, collective)
        assert not isinstance(one.collectives, Missing)
        found = collective_latency(one, one.collectives[0])
        assert not isinstance(found, Missing)
        return round(float(found.value) - 26.8, 1)

    assert [bound(8 * hosts, hosts) for hosts in (1, 2, 4, 64)] == [8.4, 18.4, 28.4, 68.4]
    assert bound(24, 3) == bound(32, 4)
    assert [bound(8 * hosts, hosts, "all_gather") for hosts in (1, 2)] == [4.2, 11.1]


def test_small_sizes_are_those_from_8_bytes_to_4_kib_by_their_median() -> None:
    def small(sizes: tuple[int, ...]) -> Known[float]:
        told = text.nccl_tests(370.0, sizes=sizes)
        found = assemble("h", [Raw("h", "nccl-tests", ("x",), 0, told)]).host.collectives
        assert not isinstance(found, Missing)
        return found[0].small_us

    assert small((8, 64, 4096, 1 << 20)) == 20.0
    none = small((1 << 20, 1 << 30))
    assert isinstance(none, Missing)
    assert none.text == "no size from 8 B to 4 KiB was measured: all_reduce_perf -b 8 -e 8G -f 2"


def test_the_arithmetic_stands_below_the_table() -> None:
    told = text.nccl_tests(370.0)
    (table,) = examine_tables(told)
    note = next(one for one in table["notes"] if one.startswith("8 B to 4 KiB"))
    assert note == (
        "8 B to 4 KiB: 20 us: 0.6 times 35.2 (6.8 us of NCCL + 14 steps x 0.6 us of NVLink + "
        "20 us to launch it)"
    )
    report = examine("h", [Raw("h", "nccl-tests", ("x",), 0, told)], CHECKS)
    assert report.results[0].status is Status.PASS


def examine_tables(told: str) -> tuple[dict[str, Any], ...]:
    from preflight.reports.collectives import collective_tables

    return collective_tables(assemble("h", [Raw("h", "nccl-tests", ("x",), 0, told)]).host)
