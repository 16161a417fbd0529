"""A process beside its GPUs: bound there, to nothing, to another node; where its memory lies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.bindings import bindings_of
from preflight.assemble.host import assemble
from preflight.facts.gpu import Gpu, Process
from preflight.facts.host import Host
from preflight.facts.numa import NumaNode
from preflight.facts.system import AskedProcess, NodeShare
from preflight.facts.topology import GpuPlace, Topology
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.model import NOT_IN_INPUT, Known, Missing, Raw, Result, Status
from tests.binding_text import BOUND, ON_GPU, TWO_NODES
from tests.lspci_text import server

CHECKS = [one for one in load(("topology",)).checks if one.id.startswith("topo.process.")]
GIB = 1 << 30
#: Hyperthreads of a node are apart in the list.
NODES = (
    NumaNode("node0", cpus=96, cpu_list="0-47,96-143"),
    NumaNode("node1", cpus=96, cpu_list="48-95,144-191"),
)


def gpu(index: int, *pids: int, held: Known[int] = NOT_IN_INPUT) -> Gpu:
    bus_id = f"0000000{index // 8}:{0x10 + index:02x}:00.0"
    processes = tuple(Process(one, "C", memory_bytes=held) for one in pids)
    return Gpu(index, f"gpu{index}", bus_id, processes=processes)


def host(process: AskedProcess, **other: Any) -> Host:
    """Eight GPUs, four on each node, of which each but the last lists one process: 100, 101 ..."""
    gpus = (*(gpu(at, 100 + at) for at in range(7)), gpu(7))
    places = tuple(
        GpuPlace(one.name, bus_id=one.bus_id, numa_node=at // 4) for at, one in enumerate(gpus)
    )
    known: dict[str, Any] = {"gpus": gpus, "topology": Topology(gpus=places), "numa_nodes": NODES,
             "asked_processes": (process,)} | other  # fmt: skip
    made = Host("h", **known)
    return replace(made, bindings=bindings_of(made))


def process(pid: int, cpus: str = "0-191", node0: int = 8, node1: int = 0, **other: Any) -> Any:
    shares = (NodeShare(0, node0 * GIB), NodeShare(1, node1 * GIB))
    known: dict[str, Any] = {
        "command": "python3",
        "cpus_allowed": cpus,
        "memory": shares,
        "gpus_open": (),
    } | other
    return AskedProcess(f"pid {pid}", **known)


def of(host: Host) -> dict[str, Result]:
    return {one.check.rpartition(".")[2]: one for one in judge(host, CHECKS)}


@pytest.mark.parametrize(
    ("pid", "cpus", "status"),
    [
        (100, "0-47,96-143", "PASS"), (100, "0-11,96-107", "PASS"), (100, "7", "PASS"),
        (100, "0-191", "WARN"), (100, "40-60", "WARN"), (105, "0-191", "WARN"),
        (100, "48-95,144-191", "FAIL"), (105, "0", "FAIL"), (105, "48-95", "PASS"),
    ],
)  # fmt: skip
def test_where_it_may_run(pid: int, cpus: str, status: str) -> None:
    found = of(host(process(pid, cpus)))["cpus"]
    assert found.status.value == status
    assert found.subject == f"pid {pid}"


def test_the_advice_is_the_command_for_this_process() -> None:
    found = of(host(process(105, "0-47")))["cpus"]
    assert found.fix[0].startswith("taskset -acp 48-95,144-191 105 ")
    assert found.fix[1].startswith("numactl --cpunodebind=1 --membind=1 ")
    assert found.expected == "CPUs 48-95,144-191, NUMA node 1 of gpu5"
    moved = of(host(process(105, node0=30, node1=10)))["memory"]
    assert moved.fix[0].startswith("migratepages 105 0 1 ")


@pytest.mark.parametrize("container", ["docker", "kubernetes"])
def test_no_memory_policy_is_advised_where_containers_refuse_it(container: str) -> None:
    held = host(process(105, "0-47", node0=30, node1=10), container=container)
    for found in of(held).values():
        assert found.fix[1].startswith("taskset -c 48-95,144-191 python3 ")
        assert not any("membind" in line for line in found.fix[:2])


@pytest.mark.parametrize(
    ("pid", "node0", "node1", "status"),
    [(100, 64, 0, "PASS"), (100, 33, 31, "PASS"), (100, 31, 33, "WARN"), (100, 0, 64, "WARN"),
     (105, 64, 0, "WARN"), (105, 0, 64, "PASS")],
)  # fmt: skip
def test_where_its_memory_lies(pid: int, node0: int, node1: int, status: str) -> None:
    found = of(host(process(pid, node0=node0, node1=node1)))["memory"]
    assert found.status.value == status
    if status == "WARN":
        assert f"{100 * (node1 if pid == 100 else node0) / 64:.0f} % of it" in found.reason


def test_little_memory_far_away_is_not_judged_yet() -> None:
    shares = (NodeShare(0, 0), NodeShare(1, GIB // 2))
    found = of(host(process(100, memory=shares)))["memory"]
    assert (found.status, "too little as yet" in found.reason) == (Status.SKIP, True)


def test_memory_of_a_gpu_is_no_memory_of_a_processor() -> None:
    grace = (*NODES, NumaNode("node2", cpus=0, cpu_list=""))
    shares = (NodeShare(0, 8 * GIB), NodeShare(2, 90 * GIB))
    found = of(host(process(100, memory=shares), numa_nodes=grace))["memory"]
    assert found.measured == "8 GiB on node 0"
    assert found.status is Status.PASS


def test_gpus_of_both_nodes_want_the_processors_of_both() -> None:
    gpus = tuple(gpu(at, 4711, held=8 * GIB) for at in range(8))
    both = host(process(4711, "0-191", node0=8, node1=8), gpus=gpus)
    assert {one.status for one in of(both).values()} == {Status.PASS}


def test_a_context_on_another_gpu_is_no_work_on_it() -> None:
    gpus = tuple(gpu(at, 4711, held=(40 * GIB if at == 5 else GIB // 2)) for at in range(8))
    found = of(host(process(4711, "0-47,96-143"), gpus=gpus))["cpus"]
    assert (found.status, found.expected) == (
        Status.FAIL,
        "CPUs 48-95,144-191, NUMA node 1 of gpu5",
    )


@pytest.mark.parametrize("held", [GIB // 2, NOT_IN_INPUT])
def test_contexts_on_gpus_of_both_nodes_do_not_tell_where_it_works(held: Known[int]) -> None:
    gpus = tuple(gpu(at, 4711, held=held) for at in range(8))
    found = of(host(process(4711, "0-47,96-143"), gpus=gpus))
    assert {one.status for one in found.values()} == {Status.SKIP}
    assert "of several NUMA nodes" in found["cpus"].reason


def test_one_numa_node_is_near_to_all() -> None:
    one = host(process(100, "0-3", node0=0, node1=0), numa_nodes=NODES[:1], topology=Topology())
    found = of(one)
    assert {each.status for each in found.values()} == {Status.PASS}
    assert "one NUMA node" in str(found["cpus"].measured)


def test_a_node_whose_processors_are_not_told_is_still_the_only_one() -> None:
    lone = host(process(100, "0-1", 8, 0), numa_nodes=(NumaNode("node0", cpus=0, cpu_list=""),))
    assert {each.status for each in of(lone).values()} == {Status.PASS}


def test_who_holds_no_gpu_is_not_judged() -> None:
    found = of(host(process(999)))
    assert {one.status for one in found.values()} == {Status.SKIP}
    assert "no GPU lists it" in found["cpus"].reason
    bare = host(process(999), gpus=Missing("not-applicable", "no NVIDIA GPU on PCI"))
    assert of(bare)["cpus"].reason == "pid 999: it holds no GPU"


def test_in_a_container_the_open_files_tell_the_gpu() -> None:
    seen = host(process(999, "0-47", gpus_open=("0000:17:00.0",)))  # gpu7
    found = of(seen)["cpus"]
    assert (found.status, found.expected) == (
        Status.FAIL, "CPUs 48-95,144-191, NUMA node 1 of gpu7",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("other", "check"),
    [
        ({"command": Missing("unreadable", "gone")}, "cpus"),
        ({"cpus_allowed": Missing("denied", "?")}, "cpus"),
        ({"cpus_allowed": "many"}, "cpus"),
        ({"memory": Missing("timeout", "?")}, "memory"),
    ],
)
def test_what_is_not_known_of_it_is_no_pass(other: dict[str, Any], check: str) -> None:
    assert of(host(process(100, **other)))[check].status is Status.ERROR


@pytest.mark.parametrize(
    "other",
    [
        {"topology": Topology()},
        {"topology": Topology(gpus=(GpuPlace("gpu0", bus_id="00000000:10:00.0", numa_node=-1),))},
        {"numa_nodes": (replace(NODES[0], cpu_list=Missing("denied", "?")), NODES[1])},
    ],
)
def test_what_is_not_known_of_the_host_is_no_pass(other: dict[str, Any]) -> None:
    found = of(host(process(100), **other))["cpus"]
    assert found.status in (Status.SKIP, Status.ERROR)


def test_a_host_as_it_answers() -> None:
    answers = {"process": BOUND, "nvidia-smi": ON_GPU, "lspci": server(), "numactl": TWO_NODES}
    found = assemble("h", [Raw("h", name, (name,), 0, text) for name, text in answers.items()]).host
    assert not isinstance(found.bindings, Missing)
    (bound,) = found.bindings
    assert (bound.gpus, bound.gpu_nodes, bound.near_cpus) == (("gpu0",), (0,), "0-47")
    assert {one.status for one in of(found).values()} == {Status.PASS}


def test_without_a_process_nothing_is_asked_of_any() -> None:
    found = assemble("h", [Raw("h", "identity", ("sh",), 0, "hostname h\n")]).host
    assert isinstance(found.bindings, Missing)
    assert "--pid" in found.bindings.text
