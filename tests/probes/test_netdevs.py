"""Interfaces: the question put to a tree of our own, recorded texts, cut short, and odd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.errors import ParseError
from preflight.facts.nics import Netdevs
from preflight.model import Missing
from preflight.probes.netdevs.bonding import bonding
from preflight.probes.netdevs.ethtool import ethtool
from preflight.probes.netdevs.ip_addr import ip_addr
from preflight.probes.netdevs.mlnx_qos import mlnx_qos
from preflight.probes.netdevs.sysfs import locate, netdevs
from tests import network_text
from tests.probes.test_setup import asked, write


def named(found: Netdevs) -> dict[str, Any]:
    return {one.name: one for one in found.devices}


def _interface(root: Path, name: str, files: dict[str, str], device: str = "") -> None:
    folder = f"sys/class/net/{name}"
    write(root, {f"{folder}/{file}": f"{value}\n" for file, value in files.items()})
    if device:
        (root / "sys/devices" / device).mkdir(parents=True, exist_ok=True)
        (root / folder / "device").symlink_to(root / "sys/devices" / device)


def _host(root: Path) -> None:
    nic = "pci0000:15/0000:15:01.0/0000:18:00.0"
    _interface(root, "eth0", {
        "mtu": "9000", "speed": "100000", "operstate": "up", "carrier": "1",
        "carrier_changes": "3", "statistics/rx_missed_errors": "7",
        "statistics/rx_crc_errors": "0",
    }, nic)  # fmt: skip
    write(root, {f"sys/devices/{nic}/sriov_numvfs": "2\n"})
    (root / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    (root / f"sys/devices/{nic}/driver").symlink_to(root / "sys/bus/pci/drivers/mlx5_core")
    _interface(root, "eth1", {"mtu": "1500", "operstate": "down", "speed": "-1",
                              "bonding_slave/mii_status": "down"},
               "pci0000:15/0000:15:01.0/0000:18:00.3")  # fmt: skip
    (root / "sys/devices/pci0000:15/0000:15:01.0/0000:18:00.3/physfn").symlink_to(".")
    _interface(root, "bond0", {"mtu": "1500", "bonding/mode": "802.3ad 4", "operstate": "up",
                               "bonding/slaves": "eth0 eth1", "speed": "100000"})  # fmt: skip
    for member in ("eth0", "eth1"):
        (root / "sys/class/net" / member / "master").symlink_to(root / "sys/class/net/bond0")
    _interface(root, "br0", {"mtu": "1500", "bridge/bridge_id": "8000"})
    _interface(root, "lo", {"mtu": "65536"})
    _interface(root, "veth1", {"mtu": "1500"})
    write(root, {"proc/net/route": "Iface\tDestination\tGateway\nbond0\t00000000\t010200C0\n"
                 "eth0\t000A0A0A\t00000000\n"})  # fmt: skip


def test_interfaces_are_asked_and_read(tmp_path: Path) -> None:
    _host(tmp_path)
    found = named(netdevs(asked(netdevs, tmp_path, "/sys/class/net", "/proc/net/route")))
    assert set(found) == {"eth0", "eth1", "bond0", "br0"}
    eth0, eth1, bond0 = found["eth0"], found["eth1"], found["bond0"]
    assert (eth0.address, eth0.driver, eth0.kind) == ("0000:18:00.0", "mlx5_core", "physical")
    assert (eth0.rate_gbits, eth0.mtu_bytes, eth0.master) == (100.0, 9000, "bond0")
    assert (eth0.carrier, eth0.carrier_changes, eth0.rx_missed) == (True, 3, 7)
    assert (eth0.virtual_functions, eth0.default_route) == (2, False)
    assert eth1.kind == "virtual-function"
    assert isinstance(eth1.rate_gbits, Missing)
    assert (bond0.kind, bond0.members, bond0.members_down) == ("bond", ("eth0", "eth1"), ("eth1",))
    assert (bond0.member_rates_gbits, bond0.default_route) == ((100.0,), True)
    assert found["br0"].kind == "bridge"


def test_a_recorded_answer() -> None:
    text = network_text.NETDEVS
    found = named(netdevs(text))
    assert found["bond0"].ipv4 == ("192.0.2.7/24",)
    assert found["eno1"].ipv4 == ()
    lines = text.split("\n")
    assert lines[found["eno2"].line - 1] == "netdev eno2"
    assert lines[locate(text, found["eno2"].line, "rate_gbits") - 1] == "speed 100000"


def test_without_ip_or_routes_that_is_not_known() -> None:
    text = network_text.NETDEVS.replace("addresses\n", "").replace("routes\n", "")
    found = named(netdevs(text))
    assert isinstance(found["bond0"].ipv4, Missing)
    assert found["bond0"].ipv4.kind == "no-tool"
    assert isinstance(found["bond0"].default_route, Missing)


def test_ethtool() -> None:
    found = named(ethtool(network_text.ethtool(slow="mlx5_3")))
    first, slow = found["ens0np0"], found["ens1np0"]
    assert (first.rate_gbits, slow.rate_gbits, slow.rate_max_gbits) == (400.0, 200.0, 400.0)
    assert (first.rx_ring, first.rx_ring_max) == (8192, 8192)
    assert (first.channels, first.channels_max) == (63, 63)
    assert (first.pause_rx, first.pause_tx, first.carrier) == (False, False, True)


def test_ethtool_of_a_link_that_is_down() -> None:
    text = "Settings for eth0:\n\tSupported link modes:   10000baseT/Full\n\tSpeed: Unknown!\n" \
           "\tLink detected: no (No cable)\n"  # fmt: skip
    (one,) = ethtool(text).devices
    assert one.carrier is False
    assert isinstance(one.rate_gbits, Missing)
    assert one.rate_max_gbits == 10.0


def test_a_list_of_modes_without_its_end() -> None:
    text = "Ring parameters for 0:\nSupported link modes:\nCurrent hardware settings:\nl"
    (one,) = ethtool(text).devices
    assert isinstance(one.rx_ring, Missing)


def test_ethtool_i_tells_the_driver() -> None:
    text = "driver: mlx5_core\nversion: 5.15.0\nfirmware-version: 28.39.1002 (MT_0000000838)\n" \
           "bus-info: 0000:18:00.0\n"  # fmt: skip
    (one,) = ethtool(text).devices
    assert (one.driver, one.firmware, one.address) == ("mlx5_core", "28.39.1002", "0000:18:00.0")


def test_ip_addr() -> None:
    found = named(ip_addr(network_text.IP_ADDR))
    assert set(found) == {"eno1", "ens0np0", "bond0", "docker0"}
    assert (found["eno1"].master, found["bond0"].members) == ("bond0", ("eno1",))
    assert (found["ens0np0"].ipv4, found["ens0np0"].mtu_bytes) == (("10.10.1.1/24",), 4200)
    assert (found["docker0"].kind, found["docker0"].carrier) == ("bridge", False)


def test_bonding() -> None:
    (one,) = bonding(network_text.BONDING).devices
    assert one.name == "bond(eno1+eno2)"
    assert (one.members_down, one.member_rates_gbits) == ((), (100.0,))


def test_mlnx_qos() -> None:
    (one,) = mlnx_qos(network_text.MLNX_QOS).devices
    assert (one.pfc, one.trust, one.lossless) == ((3,), "dscp", True)


def test_mlnx_qos_of_several_interfaces() -> None:
    other = network_text.MLNX_QOS.replace("dscp", "pcp")
    answers = {"ens0np0": network_text.MLNX_QOS, "ens1np0": "", "ens2np0": other}
    text = "".join(f"interface {name}\n{told}\n" for name, told in answers.items()) + "end\n"
    found = mlnx_qos(text).devices
    assert [(one.name, one.trust) for one in found] == [("ens0np0", "dscp"), ("ens2np0", "pcp")]
    assert all("enabled" in text.split("\n")[one.line - 1] for one in found)
    assert mlnx_qos("end\n").devices == ()


@pytest.mark.parametrize("read", [netdevs, ethtool, ip_addr, bonding, mlnx_qos])
def test_what_is_something_else_is_refused(read: Callable[[str], Netdevs]) -> None:
    for text in ("", "\n", "hello\n", "GPU0 GPU1\n"):
        with pytest.raises(ParseError):
            read(text)


def test_a_list_cut_short_is_refused() -> None:
    lines = network_text.NETDEVS.splitlines(keepends=True)
    for at in range(len(lines)):
        with pytest.raises(ParseError):
            netdevs("".join(lines[:at]))
