"""A cluster of several kinds of hosts: ten with eight A100, six with four H100 and twice the
memory, other adapters and another board. Each kind is compared with itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from bench.inputs import BUSES, on_host, small_xml
from preflight.collect import examine_one_of_many
from preflight.judge.fleet import judge_fleet
from preflight.judge.load import load
from preflight.judge.overrides import select
from preflight.model import Check, Raw, Result, Status
from tests.conftest import sample
from tests.fleet_sample import tuned
from tests.setup_text import SETUP, function, nic
from tests.written import DIMM, DIMMS, MODULES, SERVICES

MEANT_SO = ("fleet.gpu.product.same", "fleet.gpu.count.same", "fleet.gpu.listed.same")
FLEET = [check for check in load().checks if check.across == "fleet"]
SMALL_NIC = "".join(nic(f"mlx5_{at}", f"0000:{0x30 + at:02x}:00.0") for at in range(4))
H100_ADAPTERS = SMALL_NIC.replace("MT4129", "MT4123").replace("400 Gb/sec (4X NDR)", "200 Gb/sec")
A100_MEM_KB, H100_MEM_KB = 2113000000, 4227000000
#: Kernels of one kind leave a little more or less.
ROUND_KB = 4000000

_ODD_TOPOLOGY = "".join(
    function(kind, 0, "pci0000:20", f"0000:20:0{at}.0", f"0000:2{at}:00.0")
    for at, kind in enumerate(("gpu", "nic", "gpu", "nic", "gpu", "nic", "gpu", "nic"))
)


@cache
def _a100() -> dict[str, str]:
    return {
        "pci": "".join(f"0000:{bus}:00.0 0x030200 0x10de 0x20b2 nvidia\n" for bus in BUSES).lower()
        + "end\n",
        "meminfo": f"MemTotal: {A100_MEM_KB} kB\nMemAvailable: 2050000000 kB\n",
        "lscpu": "Model name: AMD EPYC 7763\nSocket(s): 2\nCPU(s): 256\nNUMA node(s): 8\n",
        "nvidia-smi": tuned(small_xml()).replace("535.54.03", "535.161.08"),
        "services": SERVICES,
        "driver-module": MODULES,
        "dmidecode": DIMMS,
        "os-release": 'PRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
        **SETUP,
    }


@cache
def _h100() -> dict[str, str]:
    whole = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
    four = whole[: whole.index("GPU 00000000:9B:00.0")].replace(
        "Attached GPUs                             : 8",
        "Attached GPUs                             : 4",
    )
    addresses = ("19", "3b", "4c", "5d")
    return _a100() | {
        "pci": "".join(f"0000:{bus}:00.0 0x030200 0x10de 0x2330 nvidia\n" for bus in addresses)
        + "end\n",
        "meminfo": f"MemTotal: {H100_MEM_KB} kB\nMemAvailable: 4100000000 kB\n",
        "lscpu": "Model name: Xeon 8480\nSocket(s): 1\nCPU(s): 112\nNUMA node(s): 1\n",
        "nvidia-smi": four,
        "services": SERVICES.replace("535.161.08", "535.161.07"),
        "driver-module": MODULES.replace(
            "nvidia 5", "nvidia_peermem 16384 0 - Live 0x0000000000000000\nnvidia 5"
        ),
        "dmidecode": "".join(map(DIMM.format, range(8))),
        "board": SETUP["board"].replace("SYS-821GE-TNHR", "XE9680").replace("2.1", "1.7"),
        "nics": f"{H100_ADAPTERS}end\n",
        "pci-tree": f"{_ODD_TOPOLOGY}end\n",
        "sysctls": SETUP["sysctls"].replace("cpu.driver intel_pstate", "cpu.driver acpi-cpufreq"),
    }


def _raws(name: str, number: int, told: dict[str, str]) -> list[Raw]:
    identity = f"hostname {name}\nkernel 6.8.0\nuid 0\n"
    raws = [Raw(name, "identity", ("sh",), 0, identity)]
    for probe, text in told.items():
        if probe == "nvidia-smi":
            probe = "nvidia-smi" if text.startswith("<") else "nvidia-smi-q"
            text = on_host(text, number)
        raws.append(Raw(name, probe, (probe,), 0, text))
    return raws


def cluster(**odd: dict[str, str]) -> list[list[Raw]]:
    """node[01-10] with A100, node[11-16] with H100; `odd`: answers of one host that are others."""
    hosts = []
    for number in range(1, 17):
        name, told = f"node{number:02}", dict(_a100() if number <= 10 else _h100())
        if number in (2, 12):
            told["meminfo"] = told["meminfo"].replace("0000 kB", "1234 kB", 1)
        hosts.append(_raws(name, number, told | odd.get(name, {})))
    return hosts


def off(hosts: Sequence[list[Raw]], *skip: str, checks: Sequence[Check] = FLEET) -> list[Result]:
    kept = select(checks, skip=skip)
    found = [examine_one_of_many(raws[0].host, raws, kept).readings for raws in hosts]
    results = judge_fleet([one for one in found if one], kept)
    return [one for one in results if one.status not in (Status.PASS, Status.SKIP)]


def named(results: Sequence[Result]) -> dict[str, str]:
    return {one.check: one.subject for one in results}


def test_a_mixed_fleet_is_told_to_be_one_with_what_to_type() -> None:
    found = off(cluster())
    assert {one.check for one in found} == set(MEANT_SO)
    for one in found:
        assert f"--skip {one.check}" in " ".join(one.fix).replace("'", "")
        assert one.subject.startswith("node[11-16]")


def test_where_it_is_meant_so_nothing_healthy_alarms() -> None:
    assert off(cluster(), *MEANT_SO) == []


def test_a_host_of_the_smaller_kind_that_lost_half_of_its_memory_is_named() -> None:
    half = {"meminfo": f"MemTotal: {H100_MEM_KB // 2} kB\nMemAvailable: 1000 kB\n"}
    (one,) = off(cluster(node13=half), *MEANT_SO)
    assert (one.check, one.subject, one.status) == ("fleet.memory.same", "node13", Status.FAIL)
    assert str(one.measured).startswith("1.97 TiB; the other 5 have 3.94 TiB")
    assert one.reason == "compared among those with gpu product NVIDIA H100 80GB HBM3"
    # The line that shows it, not the one beside it.
    assert one.evidence[0].text == f"node13: MemTotal: {H100_MEM_KB // 2} kB"


def test_each_kind_has_its_own_odd_hosts() -> None:
    shorter = f"{H100_ADAPTERS[: H100_ADAPTERS.index('nic mlx5_3')]}end\n"
    socket = _a100()["lscpu"].replace("Socket(s): 2", "Socket(s): 1")
    found = off(cluster(node14={"nics": shorter}, node03={"lscpu": socket}), *MEANT_SO)
    assert named(found) == {
        "fleet.cpu.sockets.same": "node03",
        "fleet.nic.count.same": "node14",
        "fleet.nic.model.same": "node14 mlx5_3",
    }


def test_an_absent_adapter_is_not_held_against_hosts_of_another_kind() -> None:
    # mlx5_2 and mlx5_3 are on six of sixteen hosts, and on all of their kind.
    hosts = cluster()
    assert off(hosts[8:], *MEANT_SO) == []  # 2 of one kind, 6 of the other


def test_hosts_without_gpus_are_a_kind() -> None:
    bare = {"pci": "end\n", "pci-tree": "end\n", "nics": "end\n", "sysctls": SETUP["sysctls"]}
    plain = {
        probe: text
        for probe, text in (_a100() | bare).items()
        if probe not in ("nvidia-smi", "services", "driver-module")
    }
    hosts = cluster()[:10] + [_raws(f"cpu{at}", at, plain) for at in range(4)]
    for raws in hosts[10:]:
        raws.append(Raw(raws[0].host, "nvidia-smi", ("nvidia-smi",), 127))
    found = named(off(hosts))
    assert set(found) - {"fleet.told.same"} == {"fleet.gpu.count.same", "fleet.gpu.listed.same"}
    assert found["fleet.gpu.count.same"] == "cpu[0-3]"


def test_names_of_adapters_that_changed_places() -> None:
    other = SETUP["nics"].replace("18:00.0", "xx").replace("2a:00.0", "18:00.0")
    found = off(cluster(node05={"nics": other.replace("xx", "2a:00.0")}), *MEANT_SO)
    assert [(one.check, one.subject) for one in found] == [
        ("fleet.nic.address.same", "node05 mlx5_0"), ("fleet.nic.address.same", "node05 mlx5_1"),
    ]  # fmt: skip
    assert found[0].measured == "0000:2a:00.0; the other 9 have 0000:18:00.0"


def test_a_host_whose_kind_is_not_known_is_where_its_values_are_usual() -> None:
    hosts = cluster()
    hosts[12] = [raw for raw in hosts[12] if not raw.probe.startswith("nvidia-smi")]
    hosts[12].append(Raw("node13", "nvidia-smi", ("nvidia-smi",), 124, elapsed_s=10.0))
    (one,) = off(hosts, *MEANT_SO)
    assert (one.check, one.subject, one.status) == (
        "fleet.told.same", "node13 gpus", Status.ERROR,
    )  # fmt: skip


def _with_field(xml: str, old: str, new: str) -> dict[str, Any]:
    assert old in xml
    return {"nvidia-smi": xml.replace(old, new, 1)}


def test_a_field_that_only_one_gpu_has_not_is_odd() -> None:
    xml = _a100()["nvidia-smi"]
    odd = _with_field(xml, "<persistence_mode>Enabled", "<persistence_mode>N/A")
    (one,) = off(cluster(node04=odd), *MEANT_SO)
    assert (one.check, one.subject) == ("fleet.gpu.persistence.same", "node04 gpu0")
    assert str(one.measured).startswith("N/A; the other ")


def test_a_field_that_no_gpu_of_a_model_has_is_not_odd() -> None:
    old, new = "<persistence_mode>Enabled", "<persistence_mode>N/A"
    none = {"nvidia-smi": _a100()["nvidia-smi"].replace(old, new)}
    hosts = cluster(**{f"node{at:02}": none for at in range(1, 11)})
    assert off(hosts[:10], *MEANT_SO) == []
