"""What NVLink should join and is not there; GPUs that are said to be on two NUMA nodes."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.assemble.joined.topology import topology_of
from preflight.facts.design import Design
from preflight.facts.gpu import Gpu, Mig
from preflight.facts.host import Host, Identity, PciFunction
from preflight.facts.nics import Nic
from preflight.facts.numa import NumaNode
from preflight.facts.nvlink import Nvlink
from preflight.facts.topology import Matrix, Topology
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi.topo import matrix
from tests import topology_text

CARD = Design(generation="ampere", capability="8.6", form="workstation", nvlinks=4, bridged=True,
              nvlink_gbps=14.062, source="test")  # fmt: skip
#: Seen whole: bare metal, and no allocation.
BARE = Identity("node-07", container="none")


def made(text: str = "", **facts: Any) -> Topology:
    told = matrix(text) if text else NOT_IN_INPUT
    assert isinstance(told, Matrix) or told is NOT_IN_INPUT
    return topology_of(Host("node-07", **facts), told, NOT_IN_INPUT)


def of_gpus(topology: Topology, field: str) -> dict[str, object]:
    assert not isinstance(topology.gpus, Missing)
    return {gpu.name: getattr(gpu, field) for gpu in topology.gpus}


def without_bridge(topology: Topology) -> list[str]:
    return [name for name, told in of_gpus(topology, "bridged").items() if told is False]


def cards(*up: int, **fields: Any) -> dict[str, Any]:
    made = (
        Gpu(at, f"gpu{at}", "", product="NVIDIA RTX A6000", nvlink=Nvlink(up=links), design=CARD)
        for at, links in enumerate(up)
    )
    return {"gpus": tuple(made)} | fields


# Bridges


@pytest.mark.parametrize("away", range(4))
def test_one_bridge_that_is_away_is_told(away: int) -> None:
    found = made(topology_text.pcie(bridges=True, without=away))
    assert without_bridge(found) == [f"gpu{2 * away}", f"gpu{2 * away + 1}"]


def test_hosts_that_were_bought_with_few_bridges_are_not_judged() -> None:
    def few(count: int) -> str:
        return topology_text.matrix(8, lambda a, b: "NV4" if a // 2 == b // 2 < count else "NODE")

    assert without_bridge(made(few(3))) == ["gpu6", "gpu7"]
    for bought in (0, 1, 2, 4):
        assert without_bridge(made(few(bought))) == []


def test_cards_of_another_model_or_cut_up_need_no_bridge() -> None:
    text = topology_text.pcie(bridges=True, without=3)
    alike = cards(4, 4, 4, 4, 4, 4, 0, 0)["gpus"]
    assert without_bridge(made(text, gpus=alike)) == ["gpu6", "gpu7"]
    other = [Gpu(at, f"gpu{at}", "", product="NVIDIA T400") for at in (6, 7)]
    assert without_bridge(made(text, gpus=(*alike[:6], *other))) == []
    cut = [Gpu(at, f"gpu{at}", "", product="NVIDIA RTX A6000", mig=Mig(mode="Enabled"))
           for at in (6, 7)]  # fmt: skip
    assert without_bridge(made(text, gpus=(*alike[:6], *cut))) == []


def test_without_a_matrix_the_links_of_the_cards_tell() -> None:
    assert without_bridge(made(**cards(4, 4, 0, 0, 4, 4, 4, 4))) == ["gpu2", "gpu3"]
    assert without_bridge(made(**cards(4, 4, 0, 0))) == []
    assert without_bridge(made(**cards(4, 4, 0, 0, 0, 0, 4, 4))) == []


# Boards


@pytest.mark.parametrize("count", [3, 5, 6, 7])
def test_a_board_seen_whole_that_lacks_a_gpu_is_counted(count: int) -> None:
    text = topology_text.matrix(count, lambda *_: "NV18")
    assert made(text, identity=BARE).board_gpus == count


@pytest.mark.parametrize("count", [3, 5, 6])
def test_what_a_job_may_have_been_granted_is_left_open(count: int) -> None:
    text = topology_text.matrix(count, lambda *_: "NV18")
    for facts in (
        {}, {"identity": Identity("pod", container="docker")},
        {"identity": Identity("job", container="none", allocation={"SLURM_JOB_ID": "7"})},
    ):  # fmt: skip
        told = made(text, **facts).board_gpus
        assert isinstance(told, Missing) and told.kind == "not-applicable"


def test_seven_are_told_by_a_matrix_alone_and_not_where_pci_shows_the_eighth() -> None:
    text = topology_text.matrix(7, lambda *_: "NV18")
    assert made(text).board_gpus == 7
    pci = tuple(
        PciFunction(f"0000:{at:02x}:00.0", "0x030200", "0x10de", "0x2330", "nvidia")
        for at in range(8)
    )
    assert made(text, pci=pci).board_gpus == 8
    assert made(text, pci=pci[:7]).board_gpus == 7


def test_a_gpu_without_links_and_a_card_beside_the_board_are_no_absent_gpu() -> None:
    assert made(topology_text.hgx(odd={7: "SYS"}), identity=BARE).board_gpus == 8
    nine = topology_text.matrix(9, lambda a, b: "SYS" if 8 in (a, b) else "NV18")
    assert made(nine, identity=BARE).board_gpus == 8


# NUMA nodes


def odd_node(gpu: int, *, nics: int = 8) -> str:
    return topology_text.matrix(
        8, lambda *_: "NV18", nics=[f"mlx5_{at}" for at in range(nics)], near=topology_text.rail,
        node=lambda one: str(int((one // 4 == 1) != (one == gpu))),
    )  # fmt: skip


@pytest.mark.parametrize("gpu", range(8))
def test_the_gpu_is_named_whose_column_does_not_fit_its_paths(gpu: int) -> None:
    told = of_gpus(made(odd_node(gpu)), "node_fits")
    assert [name for name, one in told.items() if one != "fits"] == [f"gpu{gpu}"]
    right, wrong = gpu // 4, 1 - gpu // 4
    assert str(told[f"gpu{gpu}"]).startswith(f"node {wrong}, but within a node with mlx5_")
    assert str(told[f"gpu{gpu}"]).endswith(f"of node {right}")


def test_gpus_without_nvlink_tell_it_without_adapters() -> None:
    text = topology_text.matrix(
        8, lambda a, b: "PXB" if a // 4 == b // 4 else "SYS",
        node=lambda gpu: "1" if gpu > 3 or gpu == 1 else "0",
    )  # fmt: skip
    told = of_gpus(made(text), "node_fits")
    assert {name: one for name, one in told.items() if one != "fits"} == {
        "gpu1": "node 1, but within a node with gpu[0,2-3] of node 0"
    }


def test_the_adapter_s_own_node_and_the_node_s_processors_count() -> None:
    text = topology_text.hgx()
    far = made(text, nics=(Nic("mlx5_0", numa_node=1),))
    told = of_gpus(far, "node_fits")
    assert told["gpu0"] == "node 0, but within a node with mlx5_0 of node 1"
    nodes = (NumaNode("node0", cpu_list="48-95"), NumaNode("node1", cpu_list="0-47"))
    told = of_gpus(made(text, numa_nodes=nodes), "node_fits")
    assert told["gpu0"] == "node 0, but its CPUs are 0-47, and those of the node 48-95"


def test_no_node_is_no_contradiction() -> None:
    text = topology_text.matrix(2, lambda *_: "PHB", node=lambda _: "N/A")
    assert all(isinstance(one, Missing) for one in of_gpus(made(text), "node_fits").values())
