"""NUMA nodes from sysfs, numactl and lscpu, which speaks many languages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from preflight.assemble.host import assemble
from preflight.cpulists import parse
from preflight.errors import ParseError
from preflight.facts.numa import NumaNode
from preflight.model import Missing, Raw
from preflight.probes.numa import numa
from preflight.probes.numactl import numactl
from preflight.probes.system import lscpu
from preflight.recognise import recognise
from tests.conftest import sample
from tests.probes.test_setup import asked, write
from tests.written import NUMA


def test_two_sockets_and_the_memory_of_a_gpu() -> None:
    found = numa(NUMA)
    assert isinstance(found, tuple)
    first, _, of_gpu = found
    assert first == NumaNode(
        "node0",
        96,
        "0-47,96-143",
        1056293812 << 10,
        1020000000 << 10,
        100 * 1020000000 / 1056293812,
        (10, 21, 80),
        1,
        "numa",
    )
    assert (of_gpu.cpus, of_gpu.cpu_list, of_gpu.line) == (0, "", 3)


@pytest.mark.parametrize("shell", ["sh", "busybox"])
def test_it_is_asked_of_sysfs(tmp_path: Path, shell: str) -> None:
    base = "/sys/devices/system/node"
    meminfo = (
        "Node {0} MemTotal:       {1} kB\nNode {0} MemFree:        {2} kB\nNode {0} Dirty: 1 kB\n"
    )
    lists = (("0-47,96-143", "10 21 80", 1056293812, 1020000000),
             ("48-95,144-191", "21 10 80", 1056904860, 1030000000),
             ("", "80 80 10", 97871872, 97871872))  # fmt: skip
    for at, (cpus, distance, total, free) in enumerate(lists):
        node = f"{base}/node{at}"
        write(tmp_path, {f"{node}/cpulist": f"{cpus}\n", f"{node}/distance": f"{distance}\n",
                         f"{node}/meminfo": meminfo.format(at, total, free)})  # fmt: skip
    write(tmp_path, {"/sys/devices/system/cpu/online": "0-191\n", f"{base}/online": "0-2\n"})
    if shell == "busybox":
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/sh").symlink_to("/usr/bin/busybox")
        if not Path("/usr/bin/busybox").exists():
            pytest.skip("busybox is not installed")
    text = asked(numa, tmp_path, "/sys/devices/system")
    assert text == NUMA


def test_this_machine_is_read() -> None:
    online = Path("/sys/devices/system/cpu/online")
    if not Path("/sys/devices/system/node/online").exists():
        pytest.skip("this kernel knows no NUMA nodes")
    *argv, script = numa.probe.command.argv  # type: ignore[attr-defined]
    done = subprocess.run([*argv, script], capture_output=True, text=True, check=True)
    nodes = numa(done.stdout)
    listed = [parse(str(node.cpu_list)) for node in nodes]  # type: ignore[union-attr]
    assert sorted(cpu for each in listed for cpu in each) == list(parse(online.read_text()))
    assert all(node.total_bytes for node in nodes)  # type: ignore[union-attr]


def test_a_kernel_without_nodes() -> None:
    found = numa("end")
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


@pytest.mark.parametrize(
    "text", ["", "node0/cpulist:0\n", "node0/cpu:0-3\nend", NUMA.removesuffix("end\n")]
)
def test_what_is_cut_short_or_something_else(text: str) -> None:
    with pytest.raises(ParseError):
        numa(text)


def test_what_the_kernel_leaves_out_is_missing() -> None:
    (node,) = numa("node0/cpulist:0-x\nnode0/distance:\nend")  # type: ignore[misc]
    assert node.distances == ()
    for value in (node.cpus, node.cpu_list, node.total_bytes, node.free_bytes):
        assert isinstance(value, Missing)


def test_numactl_lists_processors_one_by_one() -> None:
    first, second = numactl(sample("sysinfo/numactl_H_2node_60cpu_gcp.txt"))
    assert (first.cpu_list, second.cpu_list) == ("0-14,30-44", "15-29,45-59")
    odd = "available: 1 nodes (0)\nnode 0 cpus: 0 x\nnode 0 size: 1 MB\n"
    assert isinstance(numactl(odd)[0].cpu_list, Missing)


#: The label of a node's processors in the translations of util-linux, with its colon.
LABELS = {
    "en": "NUMA node{} CPU(s):", "de": "NUMA-Knoten{} CPU(s):",
    "fr": "N\u0153ud NUMA\u00a0{} de processeur(s)\u00a0:", "es": "CPU(s) del nodo NUMA {}:",
    "ja": "NUMA \u30ce\u30fc\u30c9 {} CPU:", "zh_CN": "NUMA \u8282\u70b9{} CPU\uff1a",
    "vi": "CPU n\u00fat{} NUMA:", "pl": "Procesory w\u0119z\u0142a NUMA {}:",
    "pt_BR": "CPU(s) de n\u00f3{} NUMA:", "cs": "CPU NUMA uzlu {}:",
    "tr": "NUMA d\u00fc\u011f\u00fcm{} i\u015flemci:", "sv": "NUMA-nod{} CPU(er):",
}  # fmt: skip
#: The other rows: the architecture, how many CPUs, how many nodes.
ROWS = {
    "en": ("Architecture:", "CPU(s):", "NUMA node(s):"),
    "de": ("Architektur:", "CPU(s):", "NUMA-Knoten:"),
    "fr": ("Architecture\u00a0:", "Processeur(s)\u00a0:", "N\u0153ud(s) NUMA\u00a0:"),
    "ja": ("\u30a2\u30fc\u30ad\u30c6\u30af\u30c1\u30e3:", "CPU:", "NUMA \u30ce\u30fc\u30c9\u6570:"),
    "zh_CN": ("\u67b6\u6784\uff1a", "CPU:", "NUMA \u8282\u70b9\uff1a"),
}


@pytest.mark.parametrize("language", LABELS)
def test_lscpu_in_any_language(language: str) -> None:
    architecture, cpus, nodes = ROWS.get(language, ROWS["de"])
    label = LABELS[language]
    text = (
        f"{architecture}        x86_64\n{cpus}     192\n  {nodes}   2\n"
        f"  {label.format(0)}    0-47,96-143\n  {label.format(1)}    48-95,144-191\n"
        "Flags:  fpu vme\n"
    )
    cpu = lscpu(text)
    assert [(node.name, node.cpu_list, node.cpus) for node in cpu.nodes] == [
        ("node0", "0-47,96-143", 96), ("node1", "48-95,144-191", 96),
    ]  # fmt: skip
    assert (cpu.numa_nodes, cpu.cpus, cpu.hypervisor) == (2, 192, "none")
    (raw,) = recognise(f"$ lscpu\n{text}".encode(), "x.txt")
    assert raw.probe == "lscpu"
    assert lscpu(str(raw.stdout)).nodes == tuple(
        NumaNode(node.name, node.cpus, node.cpu_list, line=node.line, probe="lscpu")
        for node in cpu.nodes
    )


def test_lscpu_as_json() -> None:
    rows = [
        {"field": "Architecture:", "data": "x86_64"},
        {"field": "CPU(s):", "data": "64"},
        {"field": "Vendor ID:", "data": "AuthenticAMD", "children": [
            {"field": "Model name:", "data": "AMD EPYC 7763", "children": [
                {"field": "Flags:", "data": "fpu hypervisor"}]}]},
        {"field": "NUMA:", "data": None, "children": [
            {"field": "NUMA node(s):", "data": "2"},
            {"field": "NUMA node0 CPU(s):", "data": "0-31"},
            {"field": "NUMA node1 CPU(s):", "data": "32-63"}]},
    ]  # fmt: skip
    text = json.dumps({"lscpu": rows}, indent=3)
    cpu = lscpu(text)
    assert (cpu.model, cpu.cpus, cpu.numa_nodes, cpu.hypervisor) == (
        "AMD EPYC 7763", 64, 2, "unknown",
    )  # fmt: skip
    assert [node.cpu_list for node in cpu.nodes] == ["0-31", "32-63"]
    (raw,) = recognise(text.encode(), "x.json")
    assert raw.probe == "lscpu"


@pytest.mark.parametrize("text", ['{"lscpu": [', "{}", '{"lscpu": 3}', "[" * 9000, "{" * 9000])
def test_what_is_no_json_of_lscpu(text: str) -> None:
    with pytest.raises(ParseError):
        lscpu(text)


def test_the_best_that_tells_counts() -> None:
    given = {
        "lscpu": "CPU(s): 4\nNUMA node0 CPU(s): 0-3\n",
        "numactl": "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 9 MB\n",
        "numa": "node0/cpulist:0-3\nnode0/distance:10\nnode0/meminfo:Node 0 MemTotal: 1024 kB\nend",
    }
    for names, probe, total in (
        (("lscpu",), "lscpu", None), (("lscpu", "numactl"), "numactl", 9 << 20),
        (("lscpu", "numactl", "numa"), "numa", 1 << 20),
    ):  # fmt: skip
        raws = [Raw("n", name, stdout=given[name]) for name in names]
        (node,) = assemble("n", raws).host.numa_nodes  # type: ignore[misc]
        assert (node.probe, node.cpu_list) == (probe, "0-3")
        assert total is None or node.total_bytes == total


def test_a_report_of_an_environment_holds_lscpu() -> None:
    name = "torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt"
    raws = recognise(sample(name).encode(), "x.txt")
    nodes = assemble("n", raws).host.numa_nodes
    assert [(node.name, node.cpu_list, node.probe) for node in nodes] == [  # type: ignore[union-attr]
        ("node0", "0-103", "collect-env"),
        ("node1", "104-207", "collect-env"),
    ]
