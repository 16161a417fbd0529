"""What a host counts, of files as the kernel lays them out; what is not there is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.payload.collectives import counters as module
from preflight.payload.collectives.counters import counters, interfaces, read
from preflight.payload.collectives.growing import Growing
from preflight.payload.collectives.plan import Plan

FILES = {
    "sys/class/net/bond0/statistics/rx_packets": "100\n",
    "sys/class/net/bond0/carrier_down_count": "1\n",
    "sys/class/net/bond0/lower_eth0/x": "",
    "sys/class/net/eth0/statistics/rx_crc_errors": "7\n",
    "sys/class/net/eth5/statistics/rx_packets": "9\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "3\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "N/A\n",
    "sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": "5\n",
    "sys/class/infiniband/mlx5_0/device/net/ib0/x": "",
    "sys/class/net/ib0/statistics/tx_dropped": "4\n",
    "sys/bus/pci/devices/0000:18:00.0/class": "0x020700\n",
    "sys/bus/pci/devices/0000:18:00.0/aer_dev_correctable": "RxErr 2\nTOTAL_ERR_COR 2\n",
    "sys/bus/pci/devices/0000:18:00.0/aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0\n",
    "sys/bus/pci/devices/0000:19:00.0/class": "0x010802\n",
    "sys/bus/pci/devices/0000:19:00.0/aer_dev_fatal": "TOTAL_ERR_FATAL 1\n",
    "proc/net/snmp": "Tcp: RtoMin InSegs OutSegs RetransSegs\nTcp: 200 50 60 2\nUdp: A\nUdp: 1\n",
    "proc/net/netstat": "TcpExt: TCPOFOQueue Other\nTcpExt: 4 5\n",
}  # fmt: skip


def test_it_is_read_of_what_carries_and_of_what_that_is_made_of(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    assert read(tmp_path, ["bond0"]) == {
        "net": {
            "bond0": {"rx_packets": 100, "carrier_down_count": 1}, "eth0": {"rx_crc_errors": 7},
            "ib0": {"tx_dropped": 4},
        },
        "rdma": {"mlx5_0/1": {"symbol_error": 3, "out_of_sequence": 5}},
        "pci": {"0000:18:00.0": {"correctable": 2, "fatal": 0}},
        "tcp": {"InSegs": 50, "OutSegs": 60, "RetransSegs": 2, "TCPOFOQueue": 4},
    }  # fmt: skip


def test_a_host_that_counts_nothing_tells_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, ["eth0"]) == {"net": {}, "rdma": {}, "pci": {}, "tcp": {}}


def test_what_grows_from_window_to_window_is_told_once_and_traffic_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    folder = tmp_path / "sys/class/net/eth0/statistics"
    folder.mkdir(parents=True)
    names = ("rx_packets", "rx_dropped", "tx_errors")
    growing = None
    for round_, values in enumerate(((5, 1, 0), (900, 4, 0), (950, 4, 0))):
        for name, value in zip(names, values, strict=True):
            (folder / name).write_text(str(value), encoding="ascii")
        growing = growing or Growing(Plan(interface="eth0"), tmp_path)
        if round_:
            assert growing.grew() == ({"eth0": {"rx_dropped": 3}} if round_ == 1 else {})
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert Growing(Plan(interface="eth0"), tmp_path).last == {}


def test_this_host_has_a_loopback_and_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    (line,) = counters(Plan(device="cpu"), 0, {"when": "before"})
    assert line["net"]["lo"]["rx_packets"] >= 0 and line["tcp"]["OutSegs"] >= 0


def test_ethtool_tells_of_pauses_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "ethtool"
    tool.write_text("#!/bin/sh\necho '     rx_prio3_pause: 12'; echo '     rx_bytes: 5'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert module._pauses("eth0") == {"rx_prio3_pause": 12}
    tool.write_text("#!/bin/sh\necho 'no stats available' >&2; exit 94\n")
    assert module._pauses("eth0") == {}


def test_each_of_several_interfaces_is_counted() -> None:
    assert interfaces(Plan(interface="eth0,eth1", hosts=["a", "b"])) == ["eth0", "eth1"]
