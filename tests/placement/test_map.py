"""The map of a machine: what hangs on what, what is wrong with a link, what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.assemble.pci.kinds import named_by_order
from preflight.assemble.pci.paths import paths
from preflight.facts.gpu import Gpu, Pcie
from preflight.facts.host import Host
from preflight.facts.nics import Netdev, Nic, NicPort
from preflight.facts.numa import NumaNode
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.facts.topology import GpuPlace, Link, Matrix, NicPlace, Topology
from preflight.model import MapNode, Missing
from preflight.placement.map import map_of
from preflight.transports.recorded import open_inputs
from tests.placement import machines

SAMPLES = "tests/samples/lspci"


def every(nodes: Sequence[MapNode]) -> Iterator[MapNode]:
    for node in nodes:
        yield node
        yield from every(node.below)


def found(host: Host, name: str) -> MapNode:
    return next(node for node in every(map_of(host).nodes) if node.name == name)


def recorded(*names: str) -> Host:
    ((name, raws),) = open_inputs([f"{SAMPLES}/{each}" for each in names], None).hosts()
    return assemble(name, raws).host


def on_tree(*devices: PciDevice, **more: object) -> Host:
    return Host("n", pci_tree=PciTree(devices), **more)  # type: ignore[arg-type]


def test_each_socket_has_its_switches_and_each_switch_a_gpu_and_its_adapter() -> None:
    shown = map_of(machines.eight())
    assert [node.name for node in shown.nodes] == ["NUMA node 0", "NUMA node 1"]
    assert shown.nodes[0].label == "CPUs 0-47,96-143"
    first = shown.nodes[0].below[0]
    assert (first.kind, first.name) == ("root", "0000:10:01.0")
    (switch,) = first.below
    assert (switch.kind, switch.name, switch.link) == ("switch", "0000:11:00.0", "gen5 x16")
    assert [(node.kind, node.name) for node in switch.below] == [("gpu", "gpu0"), ("nic", "mlx5_0")]
    assert switch.below[1].label == "ConnectX-7, 400 Gb/s InfiniBand"
    assert shown.domains == (tuple(f"gpu{number}" for number in range(8)),)
    assert shown.unknown == ()


def test_the_table_has_gpus_then_adapters_and_both_halves() -> None:
    table = map_of(machines.eight()).table
    assert table is not None
    assert table.names[:2] == ("gpu0", "gpu1") and table.names[8] == "mlx5_0"
    assert table.cells[0][:2] == ("X", "NV18")
    assert table.cells[0][8] == "PIX" == table.cells[8][0]
    assert table.cells[7][8] == "SYS"


def test_links_that_nobody_tells_are_marked_as_such() -> None:
    links = (Link("gpu0", "gpu1", "PHB"), Link("gpu0", "gpu2", Missing("unreadable", "cut")))
    table = map_of(Host("n", topology=Topology(links=links))).table
    assert table is not None
    assert table.cells == (("X", "PHB", "?"), ("PHB", "X", "?"), ("?", "?", "X"))


def test_a_switch_on_half_of_its_lanes_and_a_port_at_half_of_its_rate_are_named() -> None:
    host = machines.faulty()
    assert found(host, "0000:16:00.0").fault == "x8 of x16"
    assert found(host, "0000:16:00.0").link == "gen5 x8"
    assert found(host, "mlx5_5").fault == "200 of 400 Gb/s"
    faulty = [node.name for node in every(map_of(host).nodes) if node.fault]
    assert faulty == ["0000:16:00.0", "mlx5_5"]


def test_nothing_is_wrong_with_links_in_a_virtual_machine() -> None:
    host = replace(machines.faulty(), virtualization="vm", nic_ports=())
    shown = map_of(host)
    assert not any(node.fault for node in every(shown.nodes))
    assert any("hypervisor" in text for text in shown.unknown)


def test_a_card_of_its_own_lanes_is_named_and_one_that_rests_is_not() -> None:
    root = PciDevice("0000:00:01.0", class_id="0x0604", port="Root Port", secondary=1,
                     speed_max_gtps=32.0, width_max=16)  # fmt: skip
    card = PciDevice("0000:01:00.0", class_id="0x0302", vendor_id="0x10de", port="Endpoint",
                     speed_max_gtps=32.0, width_max=16, speed_gtps=2.5, width=8,
                     way=("pci0000:00", "0000:00:01.0"))  # fmt: skip
    tree = PciTree((root, card), probe="lspci")
    none = Missing("not-in-input", "")
    host = on_tree(root, card, pci_paths=paths(tree, none, "none"), virtualization="none")
    shown = found(host, "0000:01:00.0")
    assert (shown.link, shown.fault) == ("gen1 x8 at rest", "x8 of x16")


def test_a_function_that_does_not_answer_is_named() -> None:
    host = recorded("optimus_gpu_rev_ff_excerpt.txt")
    assert [node.fault for node in every(map_of(host).nodes) if node.kind == "gpu"] == [
        "does not answer"
    ]


def test_without_lspci_the_link_is_that_of_nvidia_smi() -> None:
    pcie = Pcie(gen=4, gen_max=5, width=8, width_max=16)
    gpu = Gpu(0, "gpu0", "00000000:1b:00.0", product="NVIDIA L40S", pcie=pcie)
    for state, link, fault in (
        ("P0", "gen4 x8", "x8 of x16, gen4 of gen5"),
        ("P8", "gen4 x8 at rest", "x8 of x16"),
    ):
        host = Host("n", gpus=(replace(gpu, performance_state=state),), virtualization="none")
        shown = found(host, "gpu0")
        assert (shown.label, shown.link, shown.fault) == ("L40S", link, fault)


def test_functions_of_one_adapter_are_one_and_virtual_ones_are_counted() -> None:
    ports = [PciDevice(f"0000:1b:00.{at}", class_id="0x0200", product=name) for at, name in (
        (0, "Mellanox Technologies MT2892 Family [ConnectX-6 Dx]"),
        (1, "Mellanox Technologies MT2892 Family [ConnectX-6 Dx]"),
        (2, "Mellanox Technologies ConnectX Family mlx5Gen Virtual Function"),
    )]  # fmt: skip
    more = PciDevice("0000:1b:01.0", class_id="0x0200", product="something")
    nics = (
        Nic("mlx5_0", address="0000:1b:00.0"),
        Nic("mlx5_1", address="0000:1b:00.1"),
        Nic("mlx5_9", address="0000:1b:01.0", virtual=True),
    )
    rates = tuple(
        NicPort(f"{name}/1", name, state="ACTIVE", rate_gbits=100.0, link_layer="Ethernet")
        for name in ("mlx5_0", "mlx5_1")
    )
    (node,) = map_of(on_tree(*ports, more, nics=nics, nic_ports=rates)).nodes
    (card,) = node.below
    assert card.name == "mlx5_[0-1]"
    assert card.label == "ConnectX-6 Dx, 2 x 100 Gb/s Ethernet, 2 virtual functions"


def _functions(*named: tuple[str, str]) -> list[PciDevice]:
    return [
        PciDevice(f"0000:{at}", class_id="0x0207", vendor_id="0x15b3",
                  product=f"Mellanox Technologies {name}")
        for at, name in named
    ]  # fmt: skip


def test_virtual_functions_belong_to_the_adapter_of_their_model_not_to_what_stands_above() -> None:
    devices = _functions(
        ("1b:00.0", "MT28908 Family [ConnectX-6]"),
        ("1c:00.0", "MT2910 Family [ConnectX-7]"),
        ("1e:00.1", "MT28908 Family [ConnectX-6 Virtual Function]"),
        ("1e:00.2", "MT28908 Family [ConnectX-6 Virtual Function]"),
    )
    gpu = PciDevice("0000:1d:00.0", class_id="0x0302", vendor_id="0x10de", product="GPU")
    (node,) = map_of(on_tree(*devices, gpu)).nodes
    assert [(each.kind, each.label) for each in node.below] == [
        ("nic", "ConnectX-6, 2 virtual functions"), ("nic", "ConnectX-7"), ("gpu", "GPU"),
    ]  # fmt: skip


def test_virtual_functions_alone_are_what_a_guest_has() -> None:
    devices = _functions(*(
        (f"{bus}:00.0", "MT28908 Family [ConnectX-6 Virtual Function]") for bus in ("01", "02")
    ))  # fmt: skip
    (node,) = map_of(on_tree(*devices)).nodes
    assert [each.label for each in node.below] == 2 * ["ConnectX-6 Virtual Function"]


def test_a_port_that_is_down_says_so_and_is_no_fault_of_the_link() -> None:
    nic = PciDevice("0000:1b:00.0", class_id="0x0207", product="Mellanox ConnectX")
    port = NicPort("mlx5_0/1", "mlx5_0", state="DOWN", rate_gbits=10.0, rate_max_gbits=400.0)
    host = on_tree(nic, nics=(Nic("mlx5_0", address="0000:1b:00.0"),), nic_ports=(port,))
    shown = found(host, "mlx5_0")
    assert shown.label == "Mellanox ConnectX, port down"
    assert shown.fault == ""


def test_console_display_and_sata_are_not_drawn() -> None:
    drawn = {node.label for node in every(map_of(machines.eight()).nodes)}
    assert not any("ASPEED" in label for label in drawn)
    sata = PciDevice("0000:00:17.0", class_id="0x0106", vendor_id="0x8086", product="SATA")
    assert map_of(on_tree(sata)).nodes == ()


def test_of_an_excerpt_the_devices_are_there_without_their_bridges() -> None:
    shown = map_of(recorded("xe9680_h100_x8_cx7_vvv_devices.txt"))
    kinds = [node.kind for node in every(shown.nodes)]
    assert kinds.count("gpu") == 8 and kinds.count("nvswitch") == 4
    assert kinds.count("nic") == 10  # two of them with two ports
    assert [node.name for node in shown.nodes] == ["NUMA node 0", "NUMA node 1"]


def test_a_list_without_bus_numbers_says_that_bridges_are_not_known() -> None:
    shown = map_of(recorded("gb200_plain.txt"))
    assert [node.name for node in shown.nodes] == ["NUMA node not told"]
    assert any(text.startswith("which bridge is above which device") for text in shown.unknown)
    assert any(text.startswith("NVLink between the GPUs") for text in shown.unknown)


def test_bus_numbers_that_go_in_a_circle_end() -> None:
    one = PciDevice("0000:01:00.0", class_id="0x0604", secondary=2)
    other = PciDevice("0000:02:00.0", class_id="0x0604", secondary=1)
    card = PciDevice("0000:02:01.0", class_id="0x0108", product="disk")
    shown = map_of(on_tree(one, other, card))
    assert [node.name for node in every(shown.nodes)][-1] == "0000:02:01.0"


def test_ports_of_switches_are_told_by_their_place_where_nothing_else_tells() -> None:
    chain = [
        PciDevice(f"0000:{bus:02x}:00.0", class_id="0x0604", secondary=bus + 1) for bus in (0, 1, 2)
    ]
    card = PciDevice("0000:03:00.0", class_id="0x0302", vendor_id="0x10de", product="GPU")
    kinds = [node.kind for node in every(map_of(on_tree(*chain, card)).nodes)]
    assert kinds == ["numa", "root", "switch", "gpu"]


def test_what_has_no_numa_node_is_on_the_only_one_there_is() -> None:
    shown = map_of(machines.without_gpu())
    (node,) = shown.nodes
    assert (node.name, node.label) == ("NUMA node 0", "CPUs 0-1")
    assert [(each.kind, each.name) for each in node.below] == [
        ("other", "0000:00:02.0"), ("nic", "eth0"),
    ]  # fmt: skip
    assert shown.unknown[0] == "GPUs and NVLink: no NVIDIA GPU on PCI"
    assert any("container" in text for text in shown.unknown)


def test_nodes_of_memory_alone_are_left_out_and_those_with_processors_shown() -> None:
    nodes = (NumaNode("node0", 8, "0-7"), NumaNode("node1", 8, "8-15"), NumaNode("node2", 0, ""))
    shown = map_of(Host("n", numa_nodes=nodes))
    assert [node.label for node in shown.nodes] == ["CPUs 0-7", "CPUs 8-15"]


def test_with_a_matrix_alone_what_pix_joins_is_behind_one_switch() -> None:
    gpus = tuple(GpuPlace(f"gpu{at}", numa_node=at // 2, cpus=f"{at // 2}") for at in range(4))
    nics = (NicPlace("mlx5_0"), NicPlace("mlx5_1"))
    links = (
        Link("gpu0", "gpu1", "NODE"), Link("gpu0", "mlx5_0", "PIX"), Link("gpu1", "mlx5_0", "NODE"),
        Link("gpu2", "gpu3", "PXB"), Link("gpu2", "mlx5_1", "PXB"), Link("gpu3", "mlx5_1", "PIX"),
    )  # fmt: skip
    matrix = Matrix((), links)
    topology = Topology("nvidia-smi topo", gpus, nics, links, matrix=matrix)
    shown = map_of(Host("n", topology=topology))
    one, other = shown.nodes
    assert (one.name, one.label) == ("NUMA node 0", "CPUs 0")
    assert [(node.kind, node.name) for node in every(one.below)] == [
        ("switch", "a PCIe switch"), ("gpu", "gpu0"), ("nic", "mlx5_0"), ("gpu", "gpu1"),
    ]  # fmt: skip
    assert [node.name for node in every(other.below)] == ["PCIe switches", "gpu2", "gpu3", "mlx5_1"]
    assert any(text.startswith("bridges and links on PCI") for text in shown.unknown)


def test_a_matrix_that_was_cut_says_so() -> None:
    topology = Topology("nvidia-smi topo", matrix=Matrix((), (), whole=False))
    assert (
        "some of the links: the output of nvidia-smi topo -m was cut"
        in map_of(Host("n", topology=topology)).unknown
    )


def test_gpus_without_a_driver_are_called_as_the_topology_calls_them() -> None:
    card = PciDevice("0000:1b:00.0", class_id="0x0302", vendor_id="0x10de", product="GPU")
    place = GpuPlace("gpu0", "00000000:1b:00.0")
    assert found(on_tree(card, topology=Topology(gpus=(place,))), "gpu0").kind == "gpu"
    handed = replace(card, driver="vfio-pci")
    assert found(on_tree(handed), "0000:1b:00.0").label == "GPU, handed to a virtual machine"


def test_an_adapter_without_rdma_is_called_by_its_interface() -> None:
    card = PciDevice("0000:1b:00.0", class_id="0x0200", product="Intel Corporation E810 [E810-C]")
    host = on_tree(card, netdevs=(Netdev("ens1", address="0000:1b:00.0", rate_gbits=100.0),))
    assert found(host, "ens1").label == "E810-C, 100 Gb/s"


def test_links_that_only_root_may_read_are_told_of() -> None:
    denied = Missing("denied", "only root may read it")
    card = PciDevice("0000:1b:00.0", class_id="0x0302", vendor_id="0x10de", speed_gtps=denied)
    told = map_of(on_tree(card, virtualization="none")).unknown
    assert any(text.startswith("speeds and widths of links: only root") for text in told)


def test_adapters_without_an_address_are_those_beside_the_gpus_they_are_nearest_to() -> None:
    whole = machines.faulty()
    assert isinstance(whole.nics, tuple)
    nics = tuple(replace(each, address=Missing("not-in-input", "ibstat")) for each in whole.nics)
    topology = replace(whole.topology, nics=tuple(NicPlace(each.name) for each in nics))
    shown = map_of(replace(whole, nics=nics, topology=topology))
    assert shown.nodes == map_of(whole).nodes


def test_which_of_two_behind_one_switch_is_which_is_left_open() -> None:
    whole = machines.sixteen()
    assert isinstance(whole.nics, tuple)
    nics = tuple(replace(each, address=Missing("not-in-input", "ibstat")) for each in whole.nics)
    topology = replace(whole.topology, nics=tuple(NicPlace(each.name) for each in nics))
    nodes = list(every(map_of(replace(whole, nics=nics, topology=topology)).nodes))
    names = [node.name for node in nodes if node.kind == "nic"]
    assert names[:4] == [*2 * ["one of mlx5_[0-1]"], *2 * ["one of mlx5_[2-3]"]]
    assert nodes[4].label == "ConnectX-7, 400 Gb/s InfiniBand"
    assert "NUMA node not told" not in [node.name for node in nodes]


MATRIX = "../topo/h20_x8_8nic_pix_pairs_tabs.txt"


def test_a_matrix_and_a_list_of_pci_draw_each_device_once() -> None:
    host = recorded(MATRIX, "xe9680_h100_x8_cx7_vvv_devices.txt")
    drawn = [node for node in every(map_of(host).nodes) if node.kind in ("gpu", "nic")]
    gpus = [node for node in drawn if node.kind == "gpu"]
    assert [(node.name, node.link) for node in gpus] == [
        (f"gpu{number}", "gen5 x16") for number in range(8)
    ]
    names = [node.name for node in drawn if "ConnectX-7" in node.label]
    assert names == 4 * ["one of mlx5_[1-4]"] + 4 * ["one of mlx5_[5-8]"]
    assert len(drawn) == 18  # two ConnectX-6 besides, which the matrix does not show


def test_gpus_are_not_named_by_their_order_where_their_count_or_their_nodes_differ() -> None:
    host = recorded(MATRIX, "xe9680_h100_x8_cx7_vvv_devices.txt")
    matrix, tree = host.topology.matrix, host.pci_tree
    assert isinstance(matrix, Matrix) and isinstance(tree, PciTree)
    assert list(named_by_order(tree, matrix).values()) == [f"gpu{at}" for at in range(8)]
    others = [each for each in tree.devices if each.name != "0000:19:00.0"]
    assert named_by_order(PciTree(tuple(others)), matrix) == {}
    moved = [replace(each, numa_node=1) for each in tree.devices]
    assert named_by_order(PciTree(tuple(moved)), matrix) == {}
    assert named_by_order(tree, replace(matrix, whole=False)) == {}
