"""Where ranks run: the GPU's node, a share of its processors, the adapters beside it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.facts.accelerators import Accelerator
from preflight.facts.gpu import Gpu, Mig
from preflight.facts.host import Host
from preflight.facts.numa import NumaNode
from preflight.facts.topology import GpuPlace, NicPlace, Topology
from preflight.model import Advice, Missing
from preflight.placement.advice import advise
from preflight.placement.advice.cpu_shares import share
from tests.conftest import sample
from tests.placed_hosts import TWO_NODES, dgx, even, matrix, nodes, placed


@pytest.mark.parametrize(
    ("cpus", "ranks", "shares"),
    [
        ("0-47,96-143", 4, ["0-11,96-107", "12-23,108-119", "24-35,120-131", "36-47,132-143"]),
        ("0-51", 4, ["0-12", "13-25", "26-38", "39-51"]),
        ("0-3", 1, ["0-3"]),
        ("0-47,96-142", 4, [""] * 4),  # a range that does not divide
        ("0,2,4,6", 2, ["", ""]),  # which of these are threads of one core is not known
        ("", 2, ["", ""]),
        ("all of them", 2, ["", ""]),
        ("0-3", 0, []),
    ],
)
def test_a_share_is_the_same_slice_of_each_range(cpus: str, ranks: int, shares: list[str]) -> None:
    assert [share(cpus, rank, ranks) for rank in range(ranks)] == shares


def test_ranks_are_bound_to_the_node_of_their_gpu() -> None:
    seats = advise(placed(dgx("NV18"), other=("mlx5_8", "mlx5_9"))).seats
    assert [seat.bind for seat in seats] == (
        ["numactl --cpunodebind=0 --membind=0"] * 4 + ["numactl --cpunodebind=1 --membind=1"] * 4
    )
    assert [seat.nics for seat in seats] == [(f"mlx5_{at}",) for at in range(8)]
    assert [seat.numa_node for seat in seats] == [0] * 4 + [1] * 4
    assert seats[5].cpus == "60-71,156-167"
    assert "with 3 more" in seats[5].why
    assert "nearest adapters by PXB" in seats[5].why


def test_in_a_container_memory_is_not_bound() -> None:
    seats = advise(placed(dgx("NV18"), container="docker")).seats
    assert seats[0].bind == "taskset -c 0-47,96-143"
    assert "may not set a memory policy" in seats[0].why


def test_a_node_that_is_not_known_is_told_by_its_processors() -> None:
    """Matrices of old drivers have no column of nodes."""
    seats = advise(placed(sample("topo/dgx1_v100_x8_4hca_tabs.txt"))).seats
    assert seats[7].numa_node is None
    assert seats[7].bind == "taskset -c 20-39,60-79"
    assert seats[7].cpus == "35-39,75-79"


UNBOUND = {
    "one node": (nodes("0-63"), "there is one NUMA node"),
    "nobody knows": (Missing("not-in-input", "not in the input"), "may hide the others"),
    # The second node is memory of GPUs.
    "memory alone": (nodes("0-63", ""), "there is one NUMA node"),
}


@pytest.mark.parametrize("name", UNBOUND)
def test_without_a_second_node_nothing_is_bound(name: str) -> None:
    known, why = UNBOUND[name]
    advice = advise(placed(matrix(even(8, "NV18"), {}, ["0-63"]), numa_nodes=known))
    assert {seat.bind for seat in advice.seats} == {""}
    assert why in advice.seats[0].why
    assert "numactl" not in "".join(one.text for one in advice.snippets)


def test_gpus_of_one_node_of_two_are_bound_to_it() -> None:
    host = placed(matrix(["X"], {}, ["0-31"]), numa_nodes=nodes("0-31", "32-63"))
    seat = advise(host).seats[0]
    assert seat.bind == "numactl --cpunodebind=0 --membind=0"
    assert seat.cpus == "0-31"
    assert "alone on the NUMA node" in seat.why


def test_processors_come_from_the_nodes_where_the_matrix_has_none() -> None:
    gpus = tuple(GpuPlace(f"gpu{at}", numa_node=at) for at in range(2))
    host = Host("h", topology=Topology(source="nvidia-smi topo", gpus=gpus, domains=()),
                numa_nodes=nodes("0-31", "32-63"))  # fmt: skip
    assert [seat.cpus for seat in advise(host).seats] == ["0-31", "32-63"]


def test_what_is_no_list_of_processors_gets_into_no_command() -> None:
    gpus = tuple(GpuPlace(f"gpu{at}", cpus=f"0;reboot {at}") for at in range(2))
    advice = advise(Host("h", topology=Topology(source="nvidia-smi topo", gpus=gpus, domains=())))
    assert "reboot" not in repr(advice)
    assert advice.seats[0].why == "not bound: the NUMA nodes of the GPUs are not known"


def test_efa_is_not_bound() -> None:
    host = placed(matrix(even(8, "NV18"), {}, TWO_NODES))
    efa = tuple(NicPlace(f"rdmap{at}s0", role="training") for at in (79, 80))
    host = replace(host, topology=replace(host.topology, nics=efa))
    advice = advise(host)
    assert {seat.bind for seat in advice.seats} == {""}
    assert "aws-ofi-nccl" in advice.seats[0].why
    assert advice.exports == ()
    assert "NCCL_IB_HCA, NCCL_IB_GID_INDEX: EFA is used through" in advice.left[0]


def only_why(advice: Advice) -> str:
    assert (advice.groups, advice.seats, advice.exports, advice.snippets) == ((), (), (), ())
    assert len(advice.left) == 1
    return advice.left[0]


def test_without_gpus_that_ranks_could_have_there_is_only_the_reason() -> None:
    assert "there is no GPU here" in only_why(advise(Host("h", gpus=())))
    assert "is not known: not in the input" in only_why(advise(Host("h")))
    no_tool = Missing("no-tool", "nvidia-smi is not installed")
    assert only_why(advise(Host("h", gpus=no_tool))).endswith(": nvidia-smi is not installed")
    none = Missing("not-applicable", "no NVIDIA GPU on PCI")
    assert only_why(advise(Host("h", gpus=none))) == "no advice: no NVIDIA GPU on PCI"
    amd = (Accelerator("card0", "AMD"),)
    assert "these are AMD" in only_why(advise(Host("h", accelerators=amd)))


def test_gpus_that_only_pci_knows_have_no_seats() -> None:
    places = (GpuPlace("0000:1b:00.0", numa_node=0),)
    why = Missing("exited", "NVIDIA-SMI has failed")
    host = Host("h", gpus=why, topology=Topology(source="pci", gpus=places))
    assert only_why(advise(host)) == (
        "no advice: 1 GPUs are on PCI, and the driver lists none: NVIDIA-SMI has failed"
    )


def test_names_of_gpus_alone_give_no_seats() -> None:
    """As of a table of peer access."""
    places = (GpuPlace("gpu0"), GpuPlace("gpu1"))
    why = only_why(advise(Host("h", topology=Topology(gpus=places))))
    assert why == "no advice: how the GPUs are joined is not known; `nvidia-smi topo -m` tells"


def test_instances_of_a_gpu_have_no_groups() -> None:
    gpu = Gpu(0, "gpu0", "00000000:1b:00.0", mig=Mig(mode="Enabled"))
    assert "MIG is on" in only_why(
        advise(placed(matrix(even(2, "NV12"), {}, ["0-3"]), gpus=(gpu,)))
    )


def test_a_lost_gpu_is_told_beside_the_seats() -> None:
    lost = Gpu(1, "gpu1", "00000000:1b:00.0", answers=False)
    advice = advise(placed(matrix(even(2, "NV12"), {}, ["0-3"]), gpus=(lost,)))
    assert advice.left[0] == "gpu1 does not answer: the seats count it; see to it first"


def test_gpus_of_several_models_are_numbered_by_their_place() -> None:
    gpus = tuple(Gpu(at, f"gpu{at}", f"00000000:{at:02x}:00.0", product=name)
                 for at, name in enumerate(["NVIDIA L4", "NVIDIA H100 PCIe"]))  # fmt: skip
    advice = advise(placed(matrix(even(2, "SYS"), {}, TWO_NODES), gpus=gpus))
    assert [(one.name, one.value) for one in advice.exports] == [
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    ]


def test_nothing_is_bound_to_the_memory_of_a_node_that_has_none() -> None:
    told = (NumaNode("node0", total_bytes=1 << 39), NumaNode("node1", total_bytes=0))
    advice = advise(placed(dgx("NV18"), numa_nodes=told))
    binds = [seat.bind for seat in advice.seats]
    assert binds[0] == "numactl --cpunodebind=0 --membind=0"
    assert all("--membind=1" not in bind and bind for bind in binds)
