"""RDMA devices: the question put to a tree of our own, and the answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.model import Missing
from preflight.probes.nics import nics
from tests.probes.test_setup import asked, write
from tests.setup_text import NICS, nic


def _device(root: Path, name: str, address: str, netdev: str, *, virtual: bool = False) -> None:
    """One adapter as sysfs has it: a directory on PCI, and the class that points to it."""
    device = f"sys/devices/pci0000:15/0000:15:01.0/{address}"
    of_class = f"{device}/infiniband/{name}"
    write(root, {
        f"{of_class}/hca_type": "MT4129\n", f"{of_class}/board_id": "MT_0000000838\n",
        f"{of_class}/fw_ver": "28.39.1002\n", f"{device}/numa_node": "1\n",
        f"{of_class}/ports/1/state": "4: ACTIVE\n", f"{of_class}/ports/1/phys_state": "5: LinkUp\n",
        f"{of_class}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
        f"{of_class}/ports/1/link_layer": "InfiniBand\n", f"{device}/net/{netdev}/mtu": "4092\n",
        f"{device}/net/{netdev}/dev_port": "0\n", f"{device}/net/{netdev}/speed": "400000\n",
    })  # fmt: skip
    (root / of_class / "device").symlink_to("../..")
    if virtual:
        (root / device / "physfn").symlink_to(".")
    (root / "sys/class/infiniband").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/infiniband" / name).symlink_to(root / of_class)


def test_adapters_are_asked_and_read(tmp_path: Path) -> None:
    _device(tmp_path, "mlx5_0", "0000:18:00.0", "ib0")
    _device(tmp_path, "mlx5_1", "0000:18:00.2", "ib1", virtual=True)
    found = nics(asked(nics, tmp_path, "/sys/class"))
    first, second = found.devices
    assert (first.name, first.address, first.firmware) == ("mlx5_0", "0000:18:00.0", "28.39.1002")
    assert (first.hca, first.board_id, first.numa_node) == ("MT4129", "MT_0000000838", 1)
    assert (first.virtual, second.virtual) == (False, True)
    port = found.ports[0]
    assert (port.name, port.state, port.phys_state) == ("mlx5_0/1", "ACTIVE", "LinkUp")
    assert (port.rate_gbits, port.lanes, port.link_layer) == (400.0, 4, "InfiniBand")
    assert (port.netdev, port.mtu_bytes, port.netdev_rate_gbits) == ("ib0", 4092, 400.0)


def test_a_machine_without_adapters(tmp_path: Path) -> None:
    (tmp_path / "sys/class/net").mkdir(parents=True)
    found = nics(asked(nics, tmp_path, "/sys/class"))
    assert (found.devices, found.ports) == ((), ())


def test_two_ports_of_one_device_have_their_own_interfaces() -> None:
    text = (
        "nic mlx4_0\nfw_ver 2.42.5000\nnuma_node -1\n"
        "port 1\nstate 4: ACTIVE\nrate 56 Gb/sec (4X FDR)\nlink_layer InfiniBand\n"
        "port 2\nstate 1: DOWN\nphys_state 7: Phy Test\nrate 2.5 Gb/sec (4X SDR)\n"
        "netdev ib1\ndev_port 1\nmtu 2044\nspeed -1\nnetdev ib0\ndev_port 0\nmtu 65520\nend\n"
    )
    found = nics(text)
    one, two = found.ports
    assert (one.netdev, one.mtu_bytes, two.netdev, two.mtu_bytes) == ("ib0", 65520, "ib1", 2044)
    assert (two.state, two.phys_state, two.rate_gbits) == ("DOWN", "Phy Test", 2.5)
    assert isinstance(two.netdev_rate_gbits, Missing)
    assert isinstance(found.devices[0].numa_node, Missing)
    assert found.devices[0].numa_node.kind == "not-applicable"


def test_an_adapter_without_an_interface() -> None:
    (port,) = nics("nic rdmap0s6\nfw_ver 0.0.0.0\nport 1\nstate 4: ACTIVE\nend\n").ports
    assert isinstance(port.mtu_bytes, Missing)
    assert port.mtu_bytes.kind == "not-applicable"
    assert isinstance(port.rate_gbits, Missing)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("state 4: ACTIVE", "state ACTIVE?", "state"),
        ("rate 400 Gb/sec (4X NDR)", "rate fast", "rate_gbits"),
        ("mtu 4092", "mtu ٤٠٩٢", "mtu_bytes"),
    ],
)
def test_a_value_in_another_form_is_not_known(old: str, new: str, field: str) -> None:
    port = nics(NICS.replace(old, new)).ports[0]
    value = getattr(port, field)
    assert isinstance(value, Missing)
    assert value.kind == "unreadable"


def test_the_lines_that_show_it() -> None:
    found = nics(NICS)
    lines = NICS.splitlines()
    assert [lines[one.line - 1] for one in found.devices] == ["nic mlx5_0", "nic mlx5_1"]
    assert [lines[one.line - 1] for one in found.ports] == ["port 1", "port 1"]
    assert nics(NICS.replace("\n", "\r\n")) == found


def test_what_is_cut_short_or_something_else() -> None:
    for text in ("", "hello\n", NICS.removesuffix("end\n"), "port 1\nend\n", nic("mlx5_0", "x")):
        with pytest.raises(ParseError):
            nics(text)
