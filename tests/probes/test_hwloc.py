"""lstopo's XML in both versions of its format: devices, links, nodes."""

from __future__ import annotations

import pytest

from preflight.assemble.host import assemble
from preflight.errors import ParseError
from preflight.model import Missing, Raw
from preflight.probes.pci.hwloc import hwloc
from preflight.recognise import recognise
from tests.conftest import sample

#: A socket of an A100 machine, version 2; the second node is the memory of none.
TWO = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f,,0xffff0000" nodeset="0x00000003">
    <object type="Package" os_index="1" cpuset="0x0000000f,,0xffff0000" nodeset="0x00000002">
      <object type="NUMANode" os_index="1" cpuset="0x0000000f,,0xffff0000" nodeset="0x00000002" local_memory="1082331758592"/>
      <object type="Bridge" gp_index="1" bridge_type="0-1" depth="0" bridge_pci="0000:[00-13]">
        <object type="Bridge" gp_index="867" bridge_type="1-1" depth="1" bridge_pci="0000:[02-13]" pci_busid="0000:01:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
          <info name="PCIVendor" value="Broadcom / LSI"/>
          <object type="Bridge" gp_index="843" bridge_type="1-1" depth="2" bridge_pci="0000:[03-09]" pci_busid="0000:02:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
            <object type="PCIDev" gp_index="90" pci_busid="0000:03:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692">
              <info name="PCIVendor" value="NVIDIA Corporation"/>
              <info name="PCIDevice" value="GA100 [A100 SXM4 40GB]"/>
              <object type="OSDev" name="nvml0" subtype="NVML" osdev_type="1"/>
              <object type="OSDev" name="cuda0" subtype="CUDA" osdev_type="5"/>
            </object>
            <object type="PCIDev" gp_index="91" pci_busid="0000:04:00.0" pci_type="0207 [15b3:101b] [15b3:0006] 00" pci_link_speed="15.753846">
              <object type="OSDev" name="ib0" osdev_type="2"/>
              <object type="OSDev" name="mlx5_0" osdev_type="3"/>
            </object>
          </object>
        </object>
      </object>
    </object>
    <object type="NUMANode" os_index="0" nodeset="0x00000001"/>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 1 </indexes>
    <u64values length="12">10 21 </u64values>
    <u64values length="12">21 10 </u64values>
  </distances2>
</topology>
"""  # noqa: E501


def test_bridges_devices_and_their_names() -> None:
    found = hwloc(TWO)
    assert not isinstance(found.tree, Missing)
    gpu, nic = found.tree.devices[2:]
    assert (gpu.name, gpu.class_id, gpu.vendor_id, gpu.device_id, gpu.revision) == (
        "0000:03:00.0", "0x0302", "0x10de", "0x20b0", "a1",
    )  # fmt: skip
    assert gpu.product == "NVIDIA Corporation GA100 [A100 SXM4 40GB]"
    assert gpu.way == ("pci0000:00", "0000:01:00.0", "0000:02:00.0")
    assert (gpu.rate_gbps, gpu.numa_node, gpu.os_names) == (31.51, 1, ("nvml0", "cuda0"))
    assert (nic.product, nic.rate_gbps, nic.os_names) == ("15b3:101b", 15.75, ("ib0", "mlx5_0"))
    root, upstream = found.tree.devices[:2]
    assert (root.port, root.secondary, root.subordinate) == ("Root Port", 2, 0x13)
    assert upstream.port == "Upstream Port"
    assert TWO.split("\n")[gpu.line - 1].strip().startswith('<object type="PCIDev"')


def test_nodes_and_their_distances() -> None:
    first, second = hwloc(TWO).nodes  # type: ignore[misc]
    assert (second.name, second.cpu_list, second.cpus) == ("node1", "16-31,64-67", 20)
    assert (second.total_bytes, second.distances) == (1082331758592, (21, 10))
    assert isinstance(first.cpu_list, Missing)


@pytest.mark.parametrize("version", [1, 2])
def test_this_kind_of_machine_in_both_formats(version: int) -> None:
    text = sample(f"hwloc/vm_2cpu_v{version}.xml")
    found = hwloc(text)
    assert [(one.name, one.os_names, one.numa_node) for one in found.tree.devices] == [  # type: ignore[union-attr]
        ("0000:00:02.0", ("vda",), 0), ("0000:00:03.0", ("eth0",), 0),
    ]  # fmt: skip
    (node,) = found.nodes  # type: ignore[misc]
    assert (node.cpu_list, node.total_bytes) == ("0-1", 25276502016)
    (raw,) = recognise(f"$ lstopo --of xml\n{text}$ exit\n".encode(), "x.txt")
    assert raw.probe == "hwloc"
    assert hwloc(str(raw.stdout)).nodes == found.nodes


def test_it_is_used_where_nothing_else_tells() -> None:
    (raw,) = recognise(TWO.encode(), "x.xml")
    host = assemble("n", [raw]).host
    assert [node.cpu_list for node in host.numa_nodes][1:] == ["16-31,64-67"]  # type: ignore[union-attr]
    (gpu,) = host.pci_paths.gpus  # type: ignore[union-attr, misc]
    assert gpu.bridges == ("0000:02:00.0", "0000:01:00.0")
    assert gpu.link.rate_gbps == 31.51
    numactl = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 9 MB\n"
    host = assemble("n", [raw, Raw("", "numactl", stdout=numactl)]).host
    assert [node.cpu_list for node in host.numa_nodes] == ["0-1"]  # type: ignore[union-attr]


def test_an_entity_is_refused() -> None:
    evil = TWO.replace('"hwloc2.dtd">', '"hwloc2.dtd" [<!ENTITY a "b">]>')
    with pytest.raises(ParseError, match="declares an entity, 'a': refused"):
        hwloc(evil)


@pytest.mark.parametrize(
    "text", ["", "hello", TWO[:900], "<topology></wrong></topology>", "<!DOCTYPE x><x/></topology>"]
)
def test_what_is_cut_short_or_something_else(text: str) -> None:
    with pytest.raises(ParseError):
        hwloc(text)


def test_odd_values_are_left_out() -> None:
    odd = TWO.replace("0000:03:00.0", "x").replace("31.507692", "9" * 400).replace(
        "0x0000000f,,0xffff0000", "0xf...f"
    )  # fmt: skip
    found = hwloc(odd)
    assert [one.name for one in found.tree.devices][-1] == "0000:04:00.0"  # type: ignore[union-attr]
    assert isinstance(found.nodes[1].cpu_list, Missing)  # type: ignore[index]
    assert isinstance(hwloc("<topology></topology>").tree, Missing)
