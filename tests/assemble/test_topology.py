"""The topology of a host: roles of adapters, distances on PCI, boards by links, peer access."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.assemble.joined.p2p import as_asked, gpu_p2p
from preflight.assemble.joined.topology import topology_of
from preflight.assemble.pci.distance import Way, path_between
from preflight.facts.design import Design
from preflight.facts.gpu import Gpu, Mig
from preflight.facts.host import Cpu, Host
from preflight.facts.nics import Nic, NicPort
from preflight.facts.numa import NumaNode
from preflight.facts.nvlink import Nvlink
from preflight.facts.pci_tree import LinkState, PciDevice, PciPath, PciPaths, PciTree
from preflight.facts.topology import GpuPlace, Matrix, NicPlace, P2p, P2pPair, Topology
from preflight.model import NOT_IN_INPUT, Missing, Raw
from preflight.probes.nvidia_smi.topo import matrix
from tests import topology_text

H100 = Design(generation="hopper", capability="9.0", form="sxm", nvlinks=18, nvlink_gbps=26.562,
              nvswitch=True, source="test")  # fmt: skip
L40S = Design(generation="ada", capability="8.9", form="pcie", source="test")
GEFORCE = Design(generation="ada", capability="8.9", form="geforce", source="test")


def gpus(count: int, design: Design, up: int = 18) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(at, f"gpu{at}", f"00000000:{at:02x}:00.0", nvlink=Nvlink(up=up), design=design)
        for at in range(count)
    )


def read(text: str) -> Matrix:
    found = matrix(text)
    assert isinstance(found, Matrix)
    return found


def made(text: str = "", **facts: Any) -> Topology:
    told = read(text) if text else NOT_IN_INPUT
    return topology_of(Host("node-07", **facts), told, NOT_IN_INPUT)


def ports(*rates: float | None) -> dict[str, Any]:
    """Adapters mlx5_0 and so on, with the rate of each; None where it is down."""
    names = [f"mlx5_{at}" for at in range(len(rates))]
    told = [
        NicPort(f"{name}/1", name, state="ACTIVE" if rate else "DOWN", rate_gbits=rate or 10.0)
        for name, rate in zip(names, rates, strict=True)
    ]
    return {"nics": tuple(map(Nic, names)), "nic_ports": tuple(told)}


def roles(topology: Topology) -> dict[str, object]:
    assert not isinstance(topology.nics, Missing)
    return {nic.name: nic.role for nic in topology.nics}


def gpu(topology: Topology, at: int) -> GpuPlace:
    assert not isinstance(topology.gpus, Missing)
    return topology.gpus[at]


def nic(topology: Topology, name: str) -> NicPlace:
    assert not isinstance(topology.nics, Missing)
    return next(one for one in topology.nics if one.name == name)


# Roles of adapters


def test_by_rate_where_no_way_is_known() -> None:
    found = roles(made(**ports(400, 400, 100, None)))
    assert list(found.values()) == ["training", "training", "other", "down"]


def test_the_adapter_of_one_gpu_is_down() -> None:
    found = made(topology_text.hgx(), **ports(*[400.0] * 7, None))
    assert roles(found)["mlx5_7"] == "down"
    assert [gpu(found, at).nic_beside for at in (0, 7)] == [True, False]
    assert gpu(found, 7).nic_path == "NODE"
    assert gpu(found, 7).nics == ("mlx5_4", "mlx5_5", "mlx5_6")


def of_models(*models: str) -> tuple[Nic, ...]:
    return tuple(Nic(f"mlx5_{at}", hca=model) for at, model in enumerate(models))


@pytest.mark.parametrize("slow", [1, 3, 4, 7, 8])
def test_an_adapter_beside_its_gpu_that_fell_behind_its_like_still_carries_training(
    slow: int,
) -> None:
    """However far, and however many; faster ports for storage beside no GPU do not take over."""
    text = topology_text.hgx()
    rates = [*[10.0] * slow, *[400.0] * (8 - slow)]
    given = ports(*rates) | {"nics": of_models(*["MT4129"] * 8)}
    assert set(roles(made(text, **given)).values()) == {"training"}
    assert set(roles(made(text, **ports(*rates[::-1]))).values()) >= {"training"}


def test_storage_does_not_take_over_where_most_gpus_have_their_own() -> None:
    names = [f"mlx5_{at}" for at in range(9)]
    text = topology_text.matrix(8, lambda *_: "NV18", nics=names, near=topology_text.rail)
    for rates in ([50.0] * 8 + [200.0], [100.0] * 2 + [400.0] * 6 + [400.0], [None] + [400.0] * 8):
        given = ports(*rates) | {"nics": of_models(*["MT4129"] * 8, "MT4123")}
        found = roles(made(text, **given))
        assert found.pop("mlx5_8") == "other"
        assert set(found.values()) <= {"training", "down"}


def test_a_slow_adapter_of_another_kind_beside_a_gpu_is_none_of_training() -> None:
    given = ports(*[400.0] * 7, 100.0)
    other = of_models(*["MT4129"] * 7, "MT4125")
    assert roles(made(topology_text.hgx(), **(given | {"nics": other})))["mlx5_7"] == "other"
    # Of no known kind it is what is beside the GPU, as with the others.
    assert roles(made(topology_text.hgx(), **given))["mlx5_7"] == "training"


def test_bonds_and_virtual_functions_only_where_there_is_nothing_else() -> None:
    names = ("mlx5_0", "mlx5_1", "mlx5_bond_0")
    mixed = (Nic("mlx5_0"), Nic("mlx5_1", virtual=True), Nic("mlx5_bond_0"))
    assert list(roles(made(nics=mixed)).values()) == ["training", "other", "other"]
    alone = tuple(Nic(name, virtual=True) for name in names)
    assert set(roles(made(nics=alone)).values()) == {"training"}


def test_bonds_that_are_beside_the_gpus_carry_training() -> None:
    names = [*(f"mlx5_bond_{at}" for at in range(8)), "mlx5_0"]
    text = topology_text.matrix(8, lambda *_: "NV18", nics=names, near=topology_text.rail)
    found = roles(made(text))
    assert found.pop("mlx5_0") == "other"
    assert set(found.values()) == {"training"}


def test_two_ports_of_one_card_are_in_one_place() -> None:
    text = topology_text.matrix(2, lambda *_: "SYS", nics=["mlx5_0", "mlx5_1"],
                                near=lambda gpu, _: "NODE" if gpu else "SYS")  # fmt: skip
    assert made(text).training_places == 2
    one_card = text.replace("\t X \tNODE", "\t X \tPIX").replace("\tNODE\t X ", "\tPIX\t X ")
    assert made(one_card).training_places == 1


# Without a matrix


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (("0000:18:00.0", "17:00", "16:00", "15:01"),
         ("0000:19:00.0", "17:01", "16:00", "15:01"), "PIX"),
        (("0000:1b:00.0", "1a:00", "19:00", "17:01", "16:00", "15:01"),
         ("0000:18:00.0", "17:00", "16:00", "15:01"), "PXB"),
        (("0000:18:00.0", "15:01"), ("0000:28:00.0", "15:02"), "PHB"),
        (("0000:18:00.0", "15:01"), ("0000:28:00.0", "25:01"), "NODE"),
        (("0000:1b:00.0", "15:01"), ("0000:1b:00.1", "15:01"), "PIX"),
    ],
)  # fmt: skip
def test_how_far_two_devices_are_apart(
    one: tuple[str, ...], other: tuple[str, ...], path: str
) -> None:
    first, second = (Way(way[0], tuple(f"0000:{b}.0" for b in way[1:]), 0) for way in (one, other))
    assert path_between(first, second) == path
    assert path_between(second, first) == path


def test_between_nodes_and_where_the_node_is_not_known() -> None:
    one = Way("0000:18:00.0", ("0000:15:01.0",), 0)
    assert path_between(one, Way("0000:98:00.0", ("0000:95:01.0",), 1)) == "SYS"
    unknown = Way("0000:98:00.0", ("0000:95:01.0",))
    assert isinstance(path_between(one, unknown), Missing)
    assert path_between(one, unknown, nodes=1) == "NODE"
    assert isinstance(path_between(one, Way("0000:98:00.0", (), 1, whole=False)), Missing)


def path(name: str, bus: str, kind: str, *bridges: str) -> PciPath:
    above = LinkState() if bridges else NOT_IN_INPUT
    return PciPath(name, f"0000{bus}", kind, bridges=bridges, above=above)


def pci_host() -> Host:
    """Two GPUs: one below a switch with an adapter, the other on the second processor."""
    near = ("0000:17:01.0", "0000:16:00.0", "0000:15:01.0")
    return Host(
        "node-07",
        gpus=gpus(2, L40S),
        pci_tree=PciTree((
            PciDevice("0000:19:00.0", numa_node=0), PciDevice("0000:99:00.0", numa_node=1),
            PciDevice("0000:18:00.0", numa_node=0),
        )),
        pci_paths=PciPaths(
            gpus=(
                path("gpu0", "0000:19:00.0", "gpu", *near),
                path("gpu1", "0000:99:00.0", "gpu", "0000:95:01.0"),
            ),
            nics=(path("0000:18:00.0", "0000:18:00.0", "nic", "0000:17:00.0", *near[1:]),),
        ),
        nics=(Nic("mlx5_0", address="0000:18:00.0"),),
        numa_nodes=(NumaNode("node0", cpu_list="0-31"), NumaNode("node1", cpu_list="32-63")),
    )  # fmt: skip


def test_pci_tells_where_there_is_no_matrix() -> None:
    found = topology_of(pci_host(), NOT_IN_INPUT, NOT_IN_INPUT)
    assert found.source == "pci"
    assert isinstance(found.links, tuple)
    assert {(one.a, one.b): one.path for one in found.links} == {
        ("gpu0", "gpu1"): "SYS", ("gpu0", "mlx5_0"): "PIX", ("gpu1", "mlx5_0"): "SYS",
    }  # fmt: skip
    assert (gpu(found, 0).nics, gpu(found, 0).nic_path) == (("mlx5_0",), "PIX")
    assert (gpu(found, 1).numa_node, gpu(found, 1).cpus) == (1, "32-63")
    assert (nic(found, "mlx5_0").numa_node, nic(found, "mlx5_0").gpus) == (0, ("gpu0",))
    assert found.domains == ()  # by its model such a card has no NVLink


def test_a_board_with_switches_is_one_domain_where_all_links_are_up() -> None:
    found = made(gpus=gpus(8, H100))
    assert isinstance(found.domains, tuple)
    assert [(one.name, one.nvlinks) for one in found.domains] == [("gpu[0-7]", 18)]
    assert gpu(found, 3).peers == "7 x NV18"
    assert isinstance(found.links, tuple)
    assert len(found.links) == 28
    assert isinstance(made(gpus=(*gpus(7, H100), *gpus(8, H100, 17)[7:])).domains, Missing)


def test_a_matrix_that_cannot_be_read_leaves_it_unknown() -> None:
    broken = Missing("unreadable", "nvidia-smi-topo: no table")
    found = topology_of(Host("node-07", gpus=gpus(8, H100, 17)), broken, NOT_IN_INPUT)
    assert found.domains == broken
    assert gpu(found, 0).nvlinks == broken


def test_without_a_gpu_there_is_nothing_to_ask() -> None:
    none = Missing("not-applicable", "no NVIDIA GPU on PCI")
    absent = Missing("no-tool", "nvidia-smi is not installed")
    found = topology_of(Host("node-07", gpus=none), absent, absent)
    assert found.gpus == found.domains == found.matrix == found.p2p == none


# Links of a GPU


def test_four_gpus_joined_straight_have_the_sum_of_their_links() -> None:
    found = made(topology_text.matrix(4, lambda *_: "NV6"), gpus=gpus(4, H100))
    assert isinstance(found.domains, tuple)
    assert found.domains[0].switched is False
    assert gpu(found, 0).nvlinks == 18
    assert gpu(found, 0).nvlink_gbps == pytest.approx(18 * 26.562)


def test_through_switches_they_count_once() -> None:
    found = made(topology_text.matrix(3, lambda *_: "NV18"), gpus=gpus(3, H100))
    assert isinstance(found.domains, tuple)
    assert found.domains[0].switched is True
    assert gpu(found, 0).nvlinks == 18


def test_one_processor_on_bare_metal_has_one_node() -> None:
    text = topology_text.matrix(8, lambda *_: "NV18", node=lambda _: "0")
    cpu = Cpu(sockets=1)
    assert isinstance(made(text, cpu=cpu, virtualization="none").gpu_nodes, Missing)
    assert made(text, cpu=cpu, virtualization="vm").gpu_nodes == 1


# Peer access

CNS = (P2p((P2pPair("gpu0", "gpu1", "CNS"),)),)


def status(
    cards: tuple[Gpu, ...], virtualization: str = "none", p2p: tuple[P2p, ...] = CNS
) -> object:
    told = {card.name: card for card in cards}
    return gpu_p2p(["gpu0", "gpu1"], p2p, told, (), virtualization)[0].status


def test_no_peer_access_is_told_where_it_could_be() -> None:
    assert status(gpus(2, L40S)) == "CNS"
    assert status(()) == "CNS"


def test_by_design_there_is_none() -> None:
    assert isinstance(status(gpus(2, GEFORCE)), Missing)
    assert isinstance(status(gpus(2, L40S), "vm"), Missing)
    sliced = tuple(Gpu(at, f"gpu{at}", "", mig=Mig(mode="Enabled"), design=H100) for at in range(2))
    assert isinstance(status(sliced), Missing)
    assert isinstance(status((), p2p=(P2p((P2pPair("gpu0", "gpu1", "GNS"),)),)), Missing)
    fine = (P2p((P2pPair("gpu0", "gpu1", "OK"),)),)
    assert status(gpus(2, GEFORCE), p2p=fine) == "OK"


def test_only_reading_counts() -> None:
    nvlink = (P2p((P2pPair("gpu0", "gpu1", "NS"),), capability="nvlink"),)
    assert isinstance(status((), p2p=nvlink), Missing)
    asked = as_asked(CNS, Raw("h", "nvidia-smi-p2p", ("nvidia-smi", "topo", "-p2p", "r")))
    assert not isinstance(asked, Missing)
    assert asked[0].capability == "read"
    assert as_asked(CNS, Raw("h", "nvidia-smi-p2p")) == CNS


def _eight(bad: dict[tuple[int, int], Missing | str]) -> dict[str, object]:
    names = [f"gpu{at}" for at in range(8)]
    pairs = [P2pPair(names[a], names[b], bad.get((a, b), "OK"))
             for a in range(8) for b in range(a + 1, 8)]  # fmt: skip
    told = gpu_p2p(names, (P2p(tuple(pairs)),), {}, (), "none")
    return {one.name: one.status for one in told if one.status != "OK"}


def test_a_gpu_that_no_peer_reaches_is_told_alone() -> None:
    one = {(min(at, 3), max(at, 3)): "CNS" for at in range(8) if at != 3}
    assert _eight(dict(one)) == {"gpu3": "CNS"}
    halves = {(a, b): "TNS" for a in range(4) for b in range(4, 8)}
    assert len(_eight(dict(halves))) == 8
    assert _eight({(2, 5): "NS"}) == {"gpu2": "NS", "gpu5": "NS"}


def test_access_that_could_not_be_read_is_not_well() -> None:
    why = Missing("unreadable", "nvidia-smi topo -p2p says ERR!")
    assert _eight({(0, 1): why}) == {"gpu0": why, "gpu1": why}
    assert _eight({(0, 1): why, (0, 2): "CNS"}) == {"gpu0": "CNS", "gpu1": why, "gpu2": "CNS"}
