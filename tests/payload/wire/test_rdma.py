"""RDMA by perftest: what is started where, what becomes of programs that do not come to their end,
and what a report says of it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from preflight.payload.collectives.plan import Plan
from preflight.payload.wire import adapters, gpus, programs, rdma
from preflight.payload.wire.refused import meaning
from tests.lab.perftest import Perftest
from tests.lab.wire_hosts import WireHosts
from tests.payload.wire.judged import judged, tabled

ROCE = {
    0: ("fe80:0000:0000:0000:0a00:00ff:fe00:0001", "IB/RoCE v1"),
    1: ("0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1"),
    3: ("0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2"),
    5: ("0000:0000:0000:0000:0000:ffff:0a00:0002", "RoCE v2"),
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Perftest:
    found = Perftest(tmp_path)
    monkeypatch.setattr(adapters, "SYS", tmp_path / "sys")
    return found


def over(lab: Perftest, hosts: int, wire: str = "rdma") -> WireHosts:
    names = [f"h{number}" for number in range(1, hosts + 1)]
    addresses = [f"127.0.0.{number}" for number in range(1, hosts + 1)]
    plan = Plan(hosts=names, addresses=addresses, wire=wire, device="cpu")
    return WireHosts(plan, str(lab.base / "sys"), lab.environment())


def test_the_slow_adapter_is_named_and_no_peer_of_it(lab: Perftest) -> None:
    lab.adapter("mlx5_0", layer="Ethernet", gids=ROCE)
    lab.node(0, "0")
    lab.told = {"h3": {"mlx5_0": {"gbits": 190.0}}}
    texts = over(lab, 3, "auto").told()
    reports, tables = judged(texts), tabled(texts)
    found = {host: [(one.check, one.subject) for one in each.results
                    if one.status.value in ("WARN", "FAIL", "ERROR")]
             for host, each in reports.items()}  # fmt: skip
    slow = [("rdma.bandwidth", f"mlx5_0 {way} write bandwidth{many}") for way, many in
            (("loopback", ""), ("to h2", ""), ("to h2", " of 4 queue pairs"))]  # fmt: skip
    assert found["h1"] == found["h2"] == []
    assert sorted(found["h3"]) == sorted([*slow, ("wire.host", "mlx5_0")])
    words = [argv for _, argv, _ in lab.started()]
    # The lowest address of IPv4 that is RoCE v2; the processors of the adapter's node.
    assert {argv[argv.index("-x") + 1] for argv in words} == {"3"}
    assert {tuple(cpus) for _, _, cpus in lab.started()} == {(0,)}
    assert {argv[argv.index("-q") + 1] for argv in words if "-q" in argv} == {"1", "4"}
    links, _ = tables["h1"]
    assert "mlx5_0 (400 Gb/s, Ethernet, GID index 3)" in links["notes"][0]
    assert [row["% slower"] for row in tables["h3"][0]["rows"]] == [51.5]


def test_adapters_that_are_slow_all_at_once_are_told(lab: Perftest) -> None:
    """In a host by itself, which takes no other."""
    for name in ("mlx5_0", "mlx5_1"):
        lab.adapter(name)
    lab.told = {"": {name: {"together": 200.0} for name in ("mlx5_0", "mlx5_1")}}
    plan = Plan(wire="auto", device="cpu")
    told = WireHosts(plan, str(lab.base / "sys"), lab.environment()).told()
    (report,) = judged(told).values()
    (warned,) = [one for one in report.results if one.status.value == "WARN"]
    assert (warned.check, warned.measured) == ("wire.loopback", 0.51)
    speeds = [one for one in report.results if one.check == "rdma.bandwidth"]
    assert [one.status.value for one in speeds] == ["PASS", "PASS"]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("memlock", "ulimit -l"),
        ("retry", "no packets get through between these ports"),
        ("version", "perftest is 6.06 here and 5.60 there"),
    ],
)
def test_what_a_program_refused_is_told_with_what_to_type(
    lab: Perftest, fault: str, text: str
) -> None:
    lab.adapter("mlx5_0")
    wrong = {"version": "5.60"} if fault == "version" else {"mlx5_0": {"fault": fault}}
    lab.told = {"h2": wrong}
    host = over(lab, 2)
    orders = [{"test": 0, "do": "rdma", "hosts": [0, 1], "nics": [["mlx5_0"]] * 2, "gpu": False}]
    lines = [line for _, at, line in host.run(orders, 60) if at == 0]
    assert lines and all(text in line["trouble"] for line in lines)


def test_programs_that_hang_are_ended_and_named(
    lab: Perftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.adapter("mlx5_0")
    lab.told = {"": {"mlx5_0": {"fault": "hang"}}}
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOST", "")
    monkeypatch.setattr(rdma, "_LIMIT_S", 0.5)
    began = time.monotonic()
    order = {"do": "rdma", "hosts": [0], "nics": [["mlx5_0"]], "gpu": False}
    (line,) = list(rdma.rdma(Plan(), 0, order))
    assert time.monotonic() - began < 5
    assert "ib_write_bw -d mlx5_0" in line["trouble"] and "did not end within" in line["trouble"]


def test_what_it_takes_is_told_where_there_is_none(lab: Perftest) -> None:
    lab.adapter("mlx5_0")
    lab.absent()
    (report,) = judged({"input": over(lab, 2).told()["h1"]}).values()
    reasons = {one.reason for one in report.results if one.check == "wire.host"}
    assert reasons == {"no ib_write_bw: apt-get install perftest, or dnf install perftest"}
    assert {one.status.value for one in report.results if one.check == "wire.host"} == {"ERROR"}


def test_adapters_of_storage_are_left_out_and_named_ones_taken(lab: Perftest) -> None:
    for name in ("mlx5_0", "mlx5_2", "mlx5_10"):
        lab.adapter(name)
    lab.adapter("mlx5_1", rate="100 Gb/sec (2X HDR)")
    lab.adapter("mlx5_3", state="1: DOWN")
    lab.adapter("rdmap0s6", layer="Unspecified", kind="4: <unknown>")

    def names(chosen: str = "") -> list[str]:
        return [one["nic"] for one in adapters.adapters(chosen)]

    assert names() == ["mlx5_0", "mlx5_2", "mlx5_10"]
    assert names("mlx5_1") == ["mlx5_1", "mlx5_10"]
    assert names("=mlx5_1,mlx5_2:1") == ["mlx5_1", "mlx5_2"]
    assert names("^mlx5_1") == ["mlx5_0", "mlx5_2"]
    assert names("^=mlx5_1") == ["mlx5_0", "mlx5_2", "mlx5_10"]


def test_the_gpu_with_the_longest_common_way_is_the_nearest() -> None:
    gpus = [f"/sys/devices/pci0000:{bus}/0000:{bus}:01.0/gpu" for bus in ("10", "40", "80")]
    assert adapters.nearest("/sys/devices/pci0000:40/0000:40:01.0/nic", gpus) == 1


def test_gpu_memory_is_that_of_the_gpu_near_the_adapter(
    lab: Perftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By NVML's bus ids, which are longer than those of sysfs."""
    for bus in ("1b", "9b"):
        place = lab.base / f"sys/devices/pci{bus}/0000:{bus}:00.0"
        place.mkdir(parents=True)
        folder = lab.base / "sys/bus/pci/devices"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / place.name).symlink_to(place)
    monkeypatch.setattr("preflight.payload.alone.visible_gpus", lambda: [(0, "1B"), (1, "9B")])
    told = lambda handle: SimpleNamespace(busId=f"00000000:{handle}:00.0".encode())  # noqa: E731
    monkeypatch.setattr("pynvml.nvmlDeviceGetPciInfo", told)
    gpus.places.cache_clear()
    nic = {"nic": "mlx5_1", "port": 1, "gid": None, "cpus": [], "rate_gbits": 400.0,
           "place": str(lab.base / "sys/devices/pci9b/0000:9c:00.0")}  # fmt: skip
    words = rdma.words(rdma.Test("ib_write_bw", gpu=True), rdma.End(0, nic, 4711), "10.0.0.2")
    gpus.places.cache_clear()
    assert words[-2:] == ["--use_cuda=1", "10.0.0.2"]


def test_the_version_and_gpu_memory_are_of_the_build(
    lab: Perftest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.told = {"": {"cuda": True}}
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOST", "")
    assert (programs.version(), programs.knows_cuda()) == ("6.06", True)
    lab.told = {}
    lab.environment()
    assert not programs.knows_cuda()


def test_words_that_nobody_knows_are_passed_on() -> None:
    text = "----\n Dual-port       : OFF\t\tDevice         : mlx5_0\n something new went wrong\n"
    assert meaning(text, ("6.06", "6.06")) == "something new went wrong"
    assert meaning("", ("6.06", "6.06")) == "it printed nothing"
