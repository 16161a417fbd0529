"""The shape of a machine's PCI: alike where machines are built alike, and only there."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from preflight.assemble.pci.shape import shape
from preflight.probes.pci.tree import pci_tree
from tests.setup_text import TOPOLOGY, board_of_8, function

SHAPE = "numa0: 2 x ((2 gpu, 2 nic), nvme); numa1: 2 x ((2 gpu, 2 nic), nvme)"


def topology(text: str) -> str:
    told = shape(pci_tree(text))
    assert isinstance(told, str)
    return told


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
    line = lines[first]
    here, path = line.rpartition(" ")[::2]
    other = path.replace("pci0000:10", "pci0000:20").replace("0000:10:01.0", "0000:20:01.0")
    other = other.replace("0000:11:00.0", "0000:21:00.0")
    assert other != path
    for changed, begin in (
        (f"{here} {other}", "numa0: ((3 gpu, 2 nic), nvme), ((gpu, 2 nic), nvme); "),
        (line.replace(" 0xa1 0 ", " 0xa1 1 "), "numa0: ((2 gpu, 2 nic), nvme), ((gpu, 2 nic)"),
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


def test_a_virtual_function_is_what_somebody_made() -> None:
    whole = function("nic", 0, "pci0000:00", "0000:00:01.0", "0000:01:00.0")
    made = whole.replace("01:00.0", "01:00.2")
    assert topology(f"{whole}{made}end\n") == "numa0: 2-function nic"
    assert topology(whole + made.replace(" 12 - ", " 12 vf ") + "end\n") == "numa0: nic"


def test_a_path_without_end() -> None:
    deep = "/".join(f"0000:{at % 256:02x}:00.{at % 8}" for at in range(130))
    assert "gpu" in topology(function("gpu", 0, deep) + "end\n")
    # The same name as a bridge and as a device, which no kernel has.
    one = function("gpu", 0, "pci0000:00", "0000:00:01.0")
    two = function("gpu", 0, "pci0000:00", "0000:00:01", "0000:01:00.0")
    assert "gpu" in topology(f"{one}{two}end\n")
    assert topology(TOPOLOGY.replace("\n", "\r\n")) == SHAPE
