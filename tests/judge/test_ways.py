"""Advice for a bench fits how it sent its data."""

from __future__ import annotations

import json

import pytest

from preflight.assemble.host import assemble
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.judge.ways import of_way
from preflight.model import Raw, Status
from preflight.recognise import recognise
from tests.bench_lines import inside, on_gpus
from tests.conftest import sample, sample_bytes

CHECKS = load(("collectives",)).checks
#: What only a host with RDMA has.
_OF_RDMA = ("ibstat", "NCCL_IB_HCA", "show_gids", "mlxlink", "ibdiagnet")


def advised(text: str, *beside: Raw) -> dict[str, str]:
    """The steps of each check that did not pass."""
    host = assemble("h1", [Raw("h1", "nccl-bench", stdout=text), *beside]).host
    found = judge(host, CHECKS)
    return {one.check: "\n".join(one.fix) for one in found
            if one.status in (Status.FAIL, Status.WARN)}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["slow_rail_of_h3_h3", "slow_link_of_h3_h3", "loses_h3", "lasting_slowed_h1"]
)
def test_over_sockets_no_adapter_of_rdma_is_named(name: str) -> None:
    told = advised(sample(f"nccl_bench/{name}.jsonl"))
    assert told
    for check, steps in told.items():
        assert not any(word in steps for word in (*_OF_RDMA, "gpu-health")), (check, steps)
        assert "TCP: " not in steps and "RDMA: " not in steps


def test_the_interface_that_was_asked_for_is_named() -> None:
    lines = [json.loads(one) for one in sample("nccl_bench/lasting_slowed_h1.jsonl").splitlines()]
    next(one for one in lines if one["kind"] == "begin")["plan"]["interface"] = "eth0"
    for one in lines:
        if one["kind"] == "window" and one["window"] == 7:
            one["most_us"] = 9e6
    told = advised("".join(f"{json.dumps(one)}\n" for one in lines))
    assert "ip -s -s link show dev eth0" in told["collectives.stalls"]
    assert not any("--interface eth0" in one or "IFACE" in one for one in told.values())


def test_over_adapters_of_rdma_no_socket_is_named() -> None:
    slow = {"kind": "nic", "name": "mlx5_3", "share": 0.5, "tests": [1, 2]}
    text = on_gpus(450.0, [inside(slow, gpu=9, fabric=6, nic=16)])
    alone = advised(text)["collectives.nic"]
    assert "RDMA: ibstat" in alone and "TCP: ethtool" in alone  # which way it was is not known
    ports = recognise(sample_bytes("infiniband/ibstat_h100_12hca_active.txt"), "x.txt")
    told = advised(text, *ports)["collectives.nic"]
    assert "ibstat mlx5_3" in told and "NCCL_IB_HCA=^=mlx5_3" in told
    assert "ethtool" not in told and "RDMA: " not in told


def test_a_step_for_one_way_is_left_out_on_another_and_stays_where_none_is_known() -> None:
    steps = ("RDMA: a", "TCP: b IFACE", "GPU: c", "processors: d", "look: e")
    assert of_way(steps, ("TCP", "processors"), "eth1") == ("b eth1", "d", "look: e")
    assert of_way(steps, ("RDMA", "GPU")) == ("a", "c", "look: e")
    assert of_way(steps, ("", "")) == steps
