"""The shape of a machine's PCI: alike where machines are built alike, and only there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.probes.topology import topology
from tests.probes.test_setup import asked, write
from tests.setup_text import TOPOLOGY, board_of_8, function

SHAPE = "numa0: 2 x ((2 gpu, 2 nic), nvme); numa1: 2 x ((2 gpu, 2 nic), nvme)"


def test_a_board_of_eight() -> None:
    assert topology(TOPOLOGY) == SHAPE


@given(st.integers(0x02, 0xC0), st.randoms(use_true_random=False))
def test_neither_bus_numbers_nor_the_order_matter(first_bus: int, chance: Random) -> None:
    lines = board_of_8(first_bus).splitlines()[:-1]
    chance.shuffle(lines)
    assert topology("\n".join([*lines, "end"])) == SHAPE


@given(st.integers(0, 19))
def test_a_device_less_is_another_machine(at: int) -> None:
    lines = [line for line in TOPOLOGY.splitlines() if "0x1a03" not in line]
    assert topology("\n".join(lines[:at] + lines[at + 1 :])) != SHAPE


def test_a_device_elsewhere_is_another_machine() -> None:
    # A card behind the other switch, and one on the other socket.
    moved = TOPOLOGY.replace("0000:12:00.0/0000:13:00.0", "0000:12:00.0/x/0000:13:00.0", 1)
    assert topology(moved) == SHAPE
    lines = TOPOLOGY.splitlines()
    first = next(at for at, line in enumerate(lines) if "0x030200" in line)
    kind, vendor, _, path = lines[first].split()
    other = path.replace("pci0000:10", "pci0000:20").replace("0000:10:01.0", "0000:20:01.0")
    other = other.replace("0000:11:00.0", "0000:21:00.0")
    assert other != path
    for changed, begin in (
        (f"{kind} {vendor} 0 {other}", "numa0: ((3 gpu, 2 nic), nvme), ((gpu, 2 nic), nvme); "),
        (f"{kind} {vendor} 1 {path}", "numa0: ((2 gpu, 2 nic), nvme), ((gpu, 2 nic), nvme); "),
    ):
        told = topology("\n".join([*lines[:first], changed, *lines[first + 1 :]]))
        assert told.startswith(begin)


def test_functions_of_one_card_are_one_card() -> None:
    ways = [("pci0000:00", "0000:00:01.0", f"0000:01:00.{at}") for at in range(2)]
    two = "".join(function("nic", 0, *way) for way in ways)
    assert topology(f"{two}end\n") == "numa0: 2-function nic"


def test_a_virtual_machine_is_flat() -> None:
    flat = "".join(function("gpu", -1, "pci0000:00", f"0000:00:0{at}.0") for at in range(4, 8))
    assert topology(f"{flat}end\n") == "(4 gpu)"


def test_no_device_of_interest() -> None:
    told = topology(function("vga", 0, "pci0000:00", "0000:00:01.0") + "end\n")
    assert told == topology("end\n")
    assert told.startswith("none")


def test_it_is_asked_of_sysfs(tmp_path: Path) -> None:
    for address, class_id, vendor in (
        ("0000:11:00.0", "0x030200", "0x10de"), ("0000:12:00.0", "0x020700", "0x15b3"),
        ("0000:12:00.2", "0x020700", "0x15b3"), ("0000:13:00.0", "0x0c0330", "0x8086"),
    ):  # fmt: skip
        device = f"sys/devices/pci0000:10/0000:10:01.0/{address}"
        write(tmp_path, {f"{device}/class": f"{class_id}\n", f"{device}/vendor": f"{vendor}\n",
                         f"{device}/numa_node": "1\n"})  # fmt: skip
        (tmp_path / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/bus/pci/devices" / address).symlink_to(tmp_path / device)
    (tmp_path / "sys/devices/pci0000:10/0000:10:01.0/0000:12:00.2/physfn").symlink_to("../x")
    (tmp_path / "sys/devices/pci0000:10/0000:10:01.0/x").mkdir()
    assert topology(asked(topology, tmp_path, "/sys/bus/")) == "numa1: (gpu, nic)"


@pytest.mark.parametrize("text", ["", "hello\n", "hello\nend\n", TOPOLOGY.removesuffix("end\n")])
def test_what_is_cut_short_or_something_else(text: str) -> None:
    with pytest.raises(ParseError):
        topology(text)


def test_a_path_without_end() -> None:
    deep = "/".join(f"0000:{at % 256:02x}:00.{at % 8}" for at in range(130))
    assert "gpu" in topology(f"0x030200 0x10de 0 /sys/{deep}\nend\n")
    # The same name as a bridge and as a device, which no kernel has.
    told = "0x030200 0x10de 0 /sys/a/b.0\n0x030200 0x10de 0 /sys/a/b.0/c.0\n"
    topology(f"{told}0x030200 0x10de 0 /sys/a/b\nend\n")
    assert topology(TOPOLOGY.replace("\n", "\r\n")) == SHAPE
