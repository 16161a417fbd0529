"""Ports as InfiniBand tools and sysfs tell of them: every form, cut short, and odd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.errors import ParseError
from preflight.facts.nics import Nics
from preflight.model import Missing
from preflight.probes.infiniband.ibstat import ibstat, ibstatus
from preflight.probes.infiniband.ibv_devinfo import ibv_devinfo
from preflight.probes.infiniband.rdma_link import ibdev2netdev, rdma_link, show_gids
from preflight.probes.nics import nics
from tests import network_text
from tests.conftest import sample
from tests.probes.test_setup import asked, write

READERS: dict[Callable[[str], Nics], str] = {
    ibstat: network_text.ibstat(),
    ibstatus: network_text.IBSTATUS,
    ibv_devinfo: network_text.IBV_DEVINFO,
    rdma_link: network_text.RDMA_LINK,
    show_gids: network_text.SHOW_GIDS,
    ibdev2netdev: network_text.IBDEV2NETDEV,
}


def port(found: Nics, at: int = 0) -> Any:
    return found.ports[at]


def test_ibstat() -> None:
    found = ibstat(sample("infiniband/ibstat_a100_9hca_active.txt"))
    nic: Any = found.devices[1]
    assert (nic.name, nic.hca, nic.firmware) == ("mlx5_1", "MT4126", "28.37.1014")
    one = port(found, 1)
    assert (one.name, one.state, one.phys_state) == ("mlx5_1/1", "ACTIVE", "LinkUp")
    assert (one.rate_gbits, one.lid, one.sm_lid) == (200.0, 1369, 83)
    assert one.link_layer == "InfiniBand"


def test_ibstat_rates_of_old_links() -> None:
    text = network_text.ibstat().replace("Rate: 400", "Rate: 40 (FDR10)", 1)
    assert port(ibstat(text)).rate_gbits == 40.0


def test_ibstatus() -> None:
    one = port(ibstatus(network_text.IBSTATUS))
    assert (one.name, one.state, one.phys_state) == ("mlx5_0/1", "ACTIVE", "LinkUp")
    assert (one.rate_gbits, one.lanes, one.lid, one.sm_lid) == (400.0, 4, 0x4B, 1)


def test_ibv_devinfo() -> None:
    found = ibv_devinfo(network_text.IBV_DEVINFO)
    nic: Any = found.devices[0]
    assert (nic.hca, nic.board_id, nic.transport) == ("MT4129", "MT_0000000838", "InfiniBand")
    one = port(found)
    assert (one.state, one.phys_state, one.rate_gbits) == ("ACTIVE", "LinkUp", 400.0)
    assert (one.lanes, one.active_mtu_bytes, one.link_layer) == (4, 4096, "Ethernet")
    assert [(gid.index, gid.kind) for gid in one.gids] == [
        (0, "RoCE v1"), (1, "RoCE v2"), (2, "RoCE v1"), (3, "RoCE v2"),
    ]  # fmt: skip
    assert one.gids[3].ipv4 == "10.10.1.1"
    assert isinstance(one.gids[1].ipv4, Missing)


def test_an_adapter_of_another_maker() -> None:
    found = ibv_devinfo(sample("infiniband/ibv_devinfo_cx5_and_iwarp_ports_down.txt"))
    assert [(nic.hca, nic.transport) for nic in found.devices] == [
        ("MT4119", "InfiniBand"), ("25608", "iWARP"),
    ]  # fmt: skip
    assert [one.state for one in found.ports] == ["DOWN"] * 3


@pytest.mark.parametrize("text", [
    network_text.RDMA_LINK, network_text.RDMA_LINK_JSON,
    network_text.RDMA_LINK.replace("link mlx5_0/1 ", "0/1: mlx5_0/1: "),
])  # fmt: skip
def test_rdma_link(text: str) -> None:
    found = rdma_link(text)
    assert [(one.name, one.state, one.phys_state) for one in found.ports] == [
        ("mlx5_0/1", "ACTIVE", "LinkUp"), ("mlx5_1/1", "ACTIVE", "LinkUp"),
        ("mlx5_2/1", "DOWN", "Disabled"),
    ]  # fmt: skip
    assert [one.link_layer for one in found.ports] == ["InfiniBand", "Ethernet", "Ethernet"]
    assert (port(found).sm_lid, port(found, 1).netdev) == (1, "eno1")


def test_show_gids() -> None:
    one = port(show_gids(network_text.SHOW_GIDS))
    assert (one.name, one.netdev) == ("mlx5_0/1", "ens0np0")
    assert [(gid.index, gid.kind, str(gid.ipv4)[:9]) for gid in one.gids][2:] == [
        (2, "IB/RoCE v1", "10.10.1.1"), (3, "RoCE v2", "10.10.1.1"),
    ]  # fmt: skip


def test_ibdev2netdev() -> None:
    found = ibdev2netdev(network_text.IBDEV2NETDEV)
    assert [one.netdev for one in found.ports] == ["ens0np0", "eno1"]
    assert found.devices[1].address == "0000:a1:00.0"
    assert isinstance(found.devices[0].address, Missing)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_what_is_something_else_is_refused(read: Callable[[str], Nics]) -> None:
    for text in ("", "\n\n", "hello\n", "GPU0 GPU1\n", "{}", "[]", "[1]\n"):
        with pytest.raises(ParseError):
            read(text)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_text_cut_anywhere_is_read_or_refused(read: Callable[[str], Nics]) -> None:
    text = READERS[read]
    whole = {one.name: one for one in read(text).ports}
    for at in range(0, min(len(text), 900), 7):
        try:
            found = read(text[:at])
        except ParseError:
            continue
        for one in found.ports:
            # What was told is told; nothing else is a state.
            same = one.name in whole and one.state == whole[one.name].state
            assert same or isinstance(one.state, Missing)


def test_a_port_without_its_state_cannot_be_read() -> None:
    text = network_text.ibstat()
    for cut in (text[: text.index("Physical state")].rpartition("\n\t\tState")[0],
                text[: text.index("\tPort 1:")]):  # fmt: skip
        one = port(ibstat(cut))
        assert isinstance(one.state, Missing)
        assert one.state.kind == "unreadable"


def _sysfs_tables(root: Path, name: str) -> None:
    device = f"sys/devices/pci0000:15/0000:18:00.0/infiniband/{name}"
    zero = "0000:0000:0000:0000:0000:0000:0000:0000\n"
    base = f"{device}/ports/1"
    write(root, {
        f"{device}/hca_type": "MT4129\n", f"{device}/fw_ver": "28.39.1002\n",
        f"{device}/node_type": "1: CA\n", f"{base}/state": "4: ACTIVE\n",
        f"{base}/rate": "400 Gb/sec (4X NDR)\n", f"{base}/link_layer": "Ethernet\n",
        f"{base}/lid": "0x0\n", f"{base}/sm_lid": "0x0\n",
        f"{base}/gids/0": "fe80:0000:0000:0000:a288:c2ff:fec0:0001\n", f"{base}/gids/1": zero,
        f"{base}/gids/10": "0000:0000:0000:0000:0000:ffff:0a0a:0101\n",
        f"{base}/gid_attrs/types/0": "RoCE v2\n", f"{base}/gid_attrs/types/10": "RoCE v2\n",
        f"{base}/gid_attrs/ndevs/10": "ens0np0\n", f"{base}/counters/link_downed": "4\n",
        f"{base}/counters/VL15_dropped": "1\n", f"{base}/hw_counters/out_of_buffer": "9\n",
        f"{base}/counters/symbol_error": "18446744073709551615\n",
        f"{base}/counters/port_rcv_data": "5\n",
    })  # fmt: skip
    (root / device / "device").symlink_to("../..")
    (root / "sys/class/infiniband").mkdir(parents=True)
    (root / "sys/class/infiniband" / name).symlink_to(root / device)


def test_addresses_and_counters_are_asked_and_read(tmp_path: Path) -> None:
    _sysfs_tables(tmp_path, "mlx5_0")
    text = asked(nics, tmp_path, "/sys/class")
    assert "gids/1:" not in text  # empty entries do not travel
    assert "port_rcv_data" not in text
    one = port(nics(text))
    assert [(gid.index, gid.kind, str(gid.netdev)[:7]) for gid in one.gids][1:] == [
        (10, "RoCE v2", "ens0np0")
    ]
    assert (one.lid, one.transport) == (0, "InfiniBand")
    errors = one.errors
    assert (errors.link_downed, errors.vl15_dropped, errors.out_of_buffer) == (4, 1, 9)
    assert errors.symbol_error == 2**64 - 1
    assert isinstance(errors.port_rcv_errors, Missing)
    assert text.split("\n")[errors.line - 1].endswith("symbol_error:18446744073709551615")


def test_a_long_table_is_cut() -> None:
    rows = "".join(
        f"mlx5_0/ports/1/gids/{at}:0000:0000:0000:0000:0000:ffff:0a0a:{at:04x}\n"
        f"mlx5_0/ports/1/gid_attrs/types/{at}:RoCE v2\n"
        for at in range(1, 250)
    )
    text = network_text.sysfs(most=1, logins=False).replace("end\n", f"{rows}end\n")
    assert len(port(nics(text)).gids) == 64
