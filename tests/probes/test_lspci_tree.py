"""The drawing of `lspci -t`, and lspci for machines."""

from __future__ import annotations

import re

import pytest

from preflight.errors import ParseError
from preflight.model import Missing
from preflight.probes.pci.drawn import lspci_tree
from preflight.probes.pci.lspci import lspci
from tests.conftest import sample
from tests.topology_hosts import machine, names, tree

DRAWN = sample("lspci_tree/esc8000a_e12_rtx6000ada_cx7_4_of_8_roots.txt")


def test_a_real_one() -> None:
    found = {one.name: one for one in lspci_tree(DRAWN).devices}
    assert len(found) == len(re.findall(r"\b[0-9a-f]{2}\.[0-7]\b", DRAWN)) == 78
    nvme = found["0000:6e:00.0"]
    assert nvme.way == (
        "pci0000:60", "0000:60:01.1", "0000:61:00.0", "0000:62:04.0", "0000:69:00.0",
        "0000:6a:0c.0",
    )  # fmt: skip
    assert [found[name].port for name in nvme.way[1:]] == [
        "Root Port", "Upstream Port", "Downstream Port", "Upstream Port", "Downstream Port",
    ]  # fmt: skip
    root = found["0000:60:01.1"]
    assert (root.primary, root.secondary, root.subordinate) == (0x60, 0x61, 0x73)
    assert found["0000:62:1c.0"].secondary == 0x73  # with nothing below it
    gpu = found["0000:e1:00.0"]
    assert (gpu.product, gpu.vendor_id) == (
        "NVIDIA Corporation AD102GL [RTX 6000 Ada Generation]", "0x10de",
    )  # fmt: skip
    assert DRAWN.split("\n")[gpu.line - 1].endswith(str(gpu.product))
    assert found["0000:21:00.1"].way == ("pci0000:20", "0000:20:03.1")


def test_every_function_of_a_drawing_is_found() -> None:
    functions = machine()
    found = {one.name: one for one in lspci_tree(tree(functions)).devices}
    assert set(found) == {one.address for one in functions}
    assert all(found[one.address].way == one.way for one in functions)


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("-[00]-+-00.0\n      \\-1f.0\n", {"0000:00:00.0": 1, "0000:00:1f.0": 1}),
        ("-[0000:00]---00.0\n", {"0000:00:00.0": 1}),
        ("-[0000:00]-+-02.0-[01]--\n           \\-03.0-[02-03]----00.0-[03]--\n",
         {"0000:00:02.0": 1, "0000:00:03.0": 1, "0000:02:00.0": 2}),
        ("-+-[10000:e0]-+-06.0-[e1]----00.0  Samsung\n \\-[0000:00]-+-0e.0\n"
         "             \\-1f.0\n",
         {"10000:e0:06.0": 1, "10000:e1:00.0": 2, "0000:00:0e.0": 1, "0000:00:1f.0": 1}),
        ("-[0000:00]-+-00.0  Intel Corporation Device [8086:0d57]\n"
         "           \\-01.0  8086:1234\n", {"0000:00:00.0": 1, "0000:00:01.0": 1}),
    ],
)  # fmt: skip
def test_other_layouts(text: str, ways: dict[str, int]) -> None:
    found = {one.name: len(one.way) for one in lspci_tree(text).devices}
    assert found == ways


def test_ids_of_nn() -> None:
    text = (
        "-[0000:00]-+-00.0  Intel Corporation Device [8086:0d57]\n           \\-01.0  10de:2330\n"
    )
    one, other = lspci_tree(text).devices
    assert (one.product, one.vendor_id, one.device_id) == (
        "Intel Corporation Device", "0x8086", "0x0d57",
    )  # fmt: skip
    assert (other.vendor_id, isinstance(other.product, Missing)) == ("0x10de", True)


@pytest.mark.parametrize(
    "text", ["", "hello", "00.0  Intel", "-[0000:00]-+-00.0\nhello\n", "+-00.0", "-[0000:00]-"]
)
def test_what_is_no_tree(text: str) -> None:
    with pytest.raises(ParseError):
        lspci_tree(text)


def _for_machines(text: str, *, named: bool) -> str:
    """`lspci -nn` as `lspci -mmnn`, or -mm."""
    pattern = r"(\S+) (.*?) \[(\w{4})\]: (\S+) (.*) \[(\w{4}):(\w{4})\] \(rev (\w\w)\)"
    shown = (
        r'\1 "\2" "\4" "\5" -r\8 "" ""' if named else r'\1 "\2 [\3]" "\4 [\6]" "\5 [\7]" -r\8 "" ""'
    )
    return re.sub(pattern, shown, text)


@pytest.mark.parametrize("named", [True, False])
def test_for_machines_it_tells_the_same(named: bool) -> None:
    people = names(machine())
    found = lspci(_for_machines(people, named=named)).devices
    for one, other in zip(found, lspci(people).devices, strict=True):
        assert (one.name, one.class_id, one.revision, one.line) == (
            other.name, other.class_id, other.revision, other.line,
        )  # fmt: skip
        assert one.vendor_id == other.vendor_id or "Samsung" in str(one.product)
        assert one.product == other.product
        assert named or one.device_id == other.device_id


def test_records_of_vmm() -> None:
    text = (
        "Slot:\t0000:19:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\n"
        "Device:\tGH100 [H100 SXM5 80GB]\nRev:\ta1\nDriver:\tnvidia\nModule:\tnouveau\n"
        "Module:\tnvidia\nNUMANode:\t1\nIOMMUGroup:\t7\n\n"
        "Slot:\t0000:1a:00.0\nClass:\t0207\nVendor:\t15b3\nDevice:\t1021\n\n"
    )
    gpu, nic = lspci(text).devices
    assert (gpu.name, gpu.class_id, gpu.vendor_id, gpu.product, gpu.revision, gpu.driver) == (
        "0000:19:00.0", "0x0302", "0x10de", "NVIDIA Corporation GH100 [H100 SXM5 80GB]", "a1",
        "nvidia",
    )  # fmt: skip
    assert (gpu.numa_node, gpu.iommu_group, gpu.line) == (1, 7, 1)
    assert (nic.class_id, nic.vendor_id, nic.device_id, nic.line) == (
        "0x0207", "0x15b3", "0x1021", 12,
    )  # fmt: skip
