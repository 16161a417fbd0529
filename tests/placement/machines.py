"""Whole hosts for the map and its pictures: a tree on PCI, GPUs, adapters, links, NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from preflight.assemble.pci.paths import paths
from preflight.facts.gpu import Gpu, Pcie
from preflight.facts.host import Host
from preflight.facts.nics import Netdev, Nic, NicPort
from preflight.facts.numa import NumaNode
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.facts.topology import GpuPlace, Link, NicPlace, NvlinkDomain, Topology
from preflight.model import Missing

_H100, _CX7 = "NVIDIA H100 80GB HBM3", "Mellanox Technologies MT2910 Family [ConnectX-7]"
_SWITCH = "Broadcom / LSI PEX890xx PCIe Gen 5 Switch"
_NO_DRIVER = Missing("not-applicable", "no NVIDIA GPU on PCI")


class Plan(Struct, frozen=True):
    """How a server is built: on each socket `switches`, behind each as many GPUs as adapters."""

    switches: int = 4
    gpus: int = 1
    nvlinks: int = 18
    narrow: str = ""  # the upstream port of this switch has half of its lanes
    slow: str = ""  # this adapter is at half of its rate


class _Bus:
    """Numbers of buses as the firmware deals them out."""

    def __init__(self, first: int) -> None:
        self.next = first

    def take(self) -> int:
        self.next += 1
        return self.next - 1


def server(plan: Plan) -> Host:
    """Two sockets with switches, GPUs and adapters as planned, four NVMe and a storage adapter."""
    tree = tuple(_functions(plan))
    at = [each.name for each in tree if each.product == _H100]
    nics_at = [each.name for each in tree if each.product == _CX7]
    gpus = tuple(_gpu(number, name) for number, name in enumerate(at))
    nics = tuple(Nic(f"mlx5_{number}", address=name) for number, name in enumerate(nics_at))
    found = PciTree(tree, probe="lspci")
    return Host(
        "node-07",
        virtualization="none",
        container="none",
        pci_tree=found,
        pci_paths=paths(found, Missing("not-in-input", ""), "none"),
        gpus=gpus,
        nics=nics,
        nic_ports=tuple(_port(each.name, plan) for each in nics),
        netdevs=(Netdev("ens3f0", address="0000:e2:00.0", rate_gbits=100.0),),
        numa_nodes=(
            NumaNode("node0", 96, "0-47,96-143"),
            NumaNode("node1", 96, "48-95,144-191"),
        ),
        topology=_topology(plan, gpus, nics),
    )


def _functions(plan: Plan) -> Iterator[PciDevice]:
    bus = _Bus(0x10)
    for socket in (0, 1):
        for _ in range(plan.switches):
            yield from _behind_switch(plan, socket, bus)
    bus.next = 0xD0
    for _ in range(4):
        root, below = bus.take(), bus.take()
        yield _bridge(root, "Root Port", 1, below)
        yield _device(f"0000:{below:02x}:00.0", "0x0108", "0x144d", "Samsung PM1743", 1, 32.0, 4)
    yield _bridge(0xE0, "Root Port", 1, 0xE2)
    for function in (0, 1):
        name = f"0000:e2:00.{function}"
        product = "Mellanox Technologies MT2892 Family [ConnectX-6 Dx]"
        yield _device(name, "0x0200", "0x15b3", product, 1, 16.0, 16)
    yield _device("0000:f0:00.0", "0x0300", "0x1a03", "ASPEED Graphics Family", 1, 5.0, 1)


def _behind_switch(plan: Plan, socket: int, bus: _Bus) -> Iterator[PciDevice]:
    root, up, down = bus.take(), bus.take(), bus.take()
    yield _bridge(root, "Root Port", socket, up)
    narrow = f"0000:{up:02x}:00.0" == plan.narrow
    yield _bridge(up, "Upstream Port", socket, down, 8 if narrow else 16)
    for slot in range(2 * plan.gpus):
        below = bus.take()
        yield _bridge(down, "Downstream Port", socket, below, slot=slot)
        name = f"0000:{below:02x}:00.0"
        if slot % 2:
            yield _device(name, "0x0207", "0x15b3", _CX7, socket)
        else:
            yield _device(name, "0x0302", "0x10de", _H100, socket)


def _bridge(
    bus: int, port: str, socket: int, below: int, width: int = 16, *, slot: int = 1
) -> PciDevice:
    if port != "Downstream Port":
        slot = 1 if port == "Root Port" else 0
    name = f"0000:{bus:02x}:{slot:02x}.0"
    return PciDevice(
        name, class_id="0x0604", vendor_id="0x1000", product=_SWITCH, port=port, primary=bus,
        secondary=below, subordinate=below, speed_max_gtps=32.0, width_max=16, speed_gtps=32.0,
        width=width, numa_node=socket,
    )  # fmt: skip


def _device(
    name: str, class_id: str, vendor: str, product: str, node: int, speed: float = 32.0,
    width: int = 16,
) -> PciDevice:  # fmt: skip
    return PciDevice(
        name, class_id=class_id, vendor_id=vendor, product=product, port="Endpoint",
        speed_max_gtps=speed, width_max=width, speed_gtps=speed, width=width, numa_node=node,
    )  # fmt: skip


def _gpu(number: int, address: str) -> Gpu:
    pcie = Pcie(gen=5, gen_max=5, width=16, width_max=16)
    return Gpu(number, f"gpu{number}", f"0000{address}", product=_H100, pcie=pcie)


def _port(nic: str, plan: Plan) -> NicPort:
    rate = 200.0 if nic == plan.slow else 400.0
    return NicPort(
        f"{nic}/1", nic, state="ACTIVE", rate_gbits=rate, rate_max_gbits=400.0,
        link_layer="InfiniBand",
    )  # fmt: skip


def _topology(plan: Plan, gpus: tuple[Gpu, ...], nics: tuple[Nic, ...]) -> Topology:
    names = tuple(each.name for each in gpus)
    half, cpus = len(gpus) // 2, ("0-47,96-143", "48-95,144-191")
    links = [Link(a, b, "NV", plan.nvlinks) for at, a in enumerate(names) for b in names[at + 1 :]]
    for at, gpu in enumerate(names):
        links += [Link(gpu, nic.name, _path(plan, at, to, half)) for to, nic in enumerate(nics)]
    for at, nic in enumerate(nics):
        links += [
            Link(nic.name, other.name, _path(plan, at, at + 1 + to, half))
            for to, other in enumerate(nics[at + 1 :])
        ]
    return Topology(
        source="nvidia-smi topo",
        gpus=tuple(
            GpuPlace(each.name, each.bus_id, at // half, cpus[at // half])
            for at, each in enumerate(gpus)
        ),
        nics=tuple(NicPlace(each.name, each.address, at // half) for at, each in enumerate(nics)),
        links=tuple(links),
        domains=(NvlinkDomain(f"gpu[0-{len(names) - 1}]", names, plan.nvlinks, True, True, True),),
    )


def _path(plan: Plan, one: int, other: int, half: int) -> str:
    if one // half != other // half:
        return "SYS"
    return "PIX" if one // plan.gpus == other // plan.gpus else "NODE"


def sixteen() -> Host:
    """16 GPUs and 16 adapters, two of each behind a switch."""
    return server(Plan(switches=4, gpus=2))


def eight() -> Host:
    """8 GPUs and 8 adapters, as in a DGX H100."""
    return server(Plan())


def faulty() -> Host:
    """The same with a switch on half of its lanes, and an adapter at half of its rate."""
    return server(Plan(narrow="0000:16:00.0", slow="mlx5_5"))


def without_gpu() -> Host:
    """A small virtual machine: no bridges, no GPU, functions on the root bus."""
    tree = (
        PciDevice("0000:00:00.0", class_id="0x0600", vendor_id="0x8086", numa_node=-1),
        PciDevice("0000:00:02.0", class_id="0x0180", vendor_id="0x1af4", numa_node=-1,
                  product="Red Hat, Inc. Virtio 1.0 block device"),
        PciDevice("0000:00:03.0", class_id="0x0200", vendor_id="0x1af4", numa_node=-1,
                  product="Red Hat, Inc. Virtio 1.0 network device"),
    )  # fmt: skip
    nothing = Missing("not-applicable", "no RDMA device in /sys/class/infiniband")
    return Host(
        "vm",
        virtualization="vm",
        container="docker",
        pci_tree=PciTree(tree, probe="lspci"),
        gpus=_NO_DRIVER,
        nics=nothing,
        nic_ports=nothing,
        netdevs=(Netdev("eth0", address="0000:00:03.0", driver="virtio_net"),),
        numa_nodes=(NumaNode("node0", 2, "0-1"),),
    )
