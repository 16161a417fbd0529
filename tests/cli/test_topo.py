"""`preflight topo` as a user runs it: here, where there is no GPU, and on recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pytest

from preflight.model import HostReport, Report
from preflight.redact.redactor import Redactor, redact_report
from preflight.reports import render
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.nccl_lines import Job
from tests.reports.drawn import drawn, topo

DEVICES = str(SAMPLES / "lspci" / "xe9680_h100_x8_cx7_vvv_devices.txt")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_this_machine_is_drawn_and_what_is_not_known_is_said() -> None:
    ran = preflight("topo")
    assert ran.rc in (0, 1, 3)
    assert "\ntopology\n" in ran.out
    assert "NUMA node" in ran.out
    assert "Traceback" not in ran.err


def test_where_there_is_no_gpu_the_machine_is_drawn_and_nothing_of_gpus_is_judged() -> None:
    if any(Path("/proc/driver/nvidia/gpus").glob("*")):
        pytest.skip("this machine has GPUs")
    ran = preflight("topo")
    assert "not known  GPUs and NVLink: no NVIDIA GPU on PCI" in ran.out
    assert "`preflight run --set gpu.count=N` makes it a failure" in " ".join(ran.out.split())


def test_the_tree_is_ascii_where_nothing_else_can_be_written() -> None:
    ran = preflight("topo", "--from", DEVICES, PYTHONIOENCODING="ascii")
    assert "|- GPU 0000:19:00.0" in ran.out and ran.out.isascii()
    assert "├─ GPU 0000:19:00.0" in preflight("topo", "--from", DEVICES, PYTHONUTF8="1").out


def test_the_picture_is_saved_beside_the_report_and_drawn_again_from_it(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("topo.svg", "topo.json", "topo.md", "again.svg")]
    saves = [word for path in files[:3] for word in ("--save", str(path))]
    ran = preflight("topo", "--from", DEVICES, *saves, "-q")
    assert len(ran.out.splitlines()) == 1
    picture = files[0].read_text(encoding="utf-8")
    expat.ParserCreate().Parse(picture, True)
    assert "GPU 0000:19:00.0" in picture
    (host,) = read(files[1])["hosts"]
    assert [node["name"] for node in host["map"]["nodes"]] == ["NUMA node 0", "NUMA node 1"]
    assert "## Topology" in files[2].read_text(encoding="utf-8")
    again = preflight("report", str(files[1]), "--save", str(files[3]))
    assert "GPU 0000:19:00.0" in again.out
    assert files[3].read_text(encoding="utf-8") == picture


def test_a_picture_of_nothing_is_not_called_saved(tmp_path: Path) -> None:
    given = tmp_path / "dmesg.txt"
    given.write_text("[    1.000000] usb 1-2: new high-speed USB device number 2 using xhci_hcd\n")
    path = tmp_path / "topo.svg"
    ran = preflight("topo", "--from", str(given), "--save", str(path))
    assert ran.rc == 3
    assert f"error: {path} was not written: there is nothing to draw" in ran.err
    assert "saved" not in ran.err
    assert not path.exists()


def test_what_draws_nothing_refuses_a_picture_and_says_what_does(tmp_path: Path) -> None:
    path = str(tmp_path / "health.svg")
    ran = preflight("gpu-health", "--from", DEVICES, "--save", path)
    assert ran.rc == 2
    assert "there is nothing to draw in this report" in ran.err
    assert f"preflight topo --save {path}" in ran.err
    stored = tmp_path / "health.json"
    preflight("gpu-health", "--from", DEVICES, "--save", str(stored), "-q")
    assert preflight("report", str(stored), "--save", path).rc == 2
    assert not Path(path).exists()


def test_run_has_no_map(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    preflight("run", "--from", DEVICES, "--save", str(path), "-q")
    assert "map" not in read(path)["hosts"][0] or read(path)["hosts"][0]["map"] is None


def test_svg_is_no_format_of_standard_output() -> None:
    ran = preflight("topo", "--from", DEVICES, "--format", "svg")
    assert ran.rc == 2
    assert "--format 'svg' is no choice" in ran.err


def redacted() -> tuple[HostReport, Report]:
    told = drawn("eight", "gpu-rack7.example.org")
    assert told.map is not None
    told.map = type(told.map)(
        told.map.nodes,
        told.map.table,
        told.map.domains,
        ("asked gpu-rack7.example.org by 10.9.8.7",),
    )
    return told, redact_report(topo(told), Redactor())


def test_redacted_maps_keep_what_is_hardware_and_lose_whose_it_is() -> None:
    told, shown = redacted()
    (host,) = shown.hosts
    assert told.map is not None and host.map is not None
    assert host.map.nodes == told.map.nodes
    assert host.map.table == told.map.table
    assert host.map.domains == told.map.domains
    assert host.advice == told.advice
    text = "".join(render(shown, "json")) + "".join(render(shown, "svg"))
    assert "rack7" not in text and "10.9.8.7" not in text


def _dgx(*, lost: str = "", rows: int = 99) -> str:
    """Eight GPUs, each with an adapter beside it, and two ports for storage beside none."""
    nics = [name for at in range(10) if (name := f"mlx5_{at}") != lost]
    names = [f"GPU{at}" for at in range(8)] + nics

    def cell(a: str, b: str) -> str:
        gpus = (a + b).count("GPU")
        beside = gpus == 1 and a[-1] == b[-1]
        return "X" if a == b else "NV18" if gpus == 2 else "PXB" if beside else "NODE"

    lines = ["\t".join(["", *names, "CPU Affinity", "NUMA Affinity"])]
    for a in names[:rows]:
        near = ["0-47", "0"] if a.startswith("GPU") else []
        lines.append("\t".join([a, *(cell(a, b) for b in names), *near]))
    return "\n".join(lines) + "\n"


def test_a_lost_adapter_makes_none_of_training_out_of_the_ports_for_storage(
    tmp_path: Path,
) -> None:
    file = tmp_path / "topo.txt"
    file.write_text(_dgx(lost="mlx5_5"), encoding="utf-8")
    ran = preflight("topo", "--from", str(file))
    assert "WARN   topo.gpu.nic.near  gpu5" in ran.out
    assert "export NCCL_IB_HCA='=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_6,mlx5_7'" in ran.out


def test_what_a_cut_matrix_does_not_show_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "topo.txt"
    file.write_text(_dgx(rows=4), encoding="utf-8")
    ran = preflight("topo", "--from", str(file))
    assert ran.rc == 3
    assert "WARN" not in ran.out
    assert "no groups: how the GPUs are joined is not known" in ran.out
    assert "NCCL_IB_HCA: which adapters carry training is not known" in ran.out


def _links(broken: str) -> str:
    """`nvidia-smi nvlink -s` of eight H100, where one says this of its links."""
    up = "\n".join(f"\t Link {at}: 26.562 GB/s" for at in range(18))
    return "".join(
        f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: GPU-{at:08d}-1111-2222-3333-444444444444)\n"
        f"{broken if at == 6 else up}\n"
        for at in range(8)
    )


@pytest.mark.parametrize("broken", [
    "NVML: Unable to retrieve NVLink information as all links are inActive",
    "\n".join(f"\t Link {at}: {'<inactive>' if at == 5 else '26.562 GB/s'}" for at in range(18)),
])  # fmt: skip
def test_a_link_that_is_down_fails_beside_a_matrix_that_shows_all(
    tmp_path: Path, broken: str
) -> None:
    links = tmp_path / "nvlink.txt"
    links.write_text(_links(broken), encoding="utf-8")
    matrix = SAMPLES / "topo" / "h100_x8_no_nic_spaces.txt"
    ran = preflight("topo", "--from", f"n={matrix}", "--from", f"n={links}")
    assert ran.rc == 1
    assert "FAIL   nvlink.up  gpu6" in ran.out


def test_a_host_that_lists_fewer_gpus_than_the_others_fails(tmp_path: Path) -> None:
    eight = SAMPLES / "nvidia_smi_q" / "h100_sxm_x8_535.161_power_brake.txt"
    text = eight.read_text(encoding="utf-8")
    seven = tmp_path / "seven.txt"
    last = text.rindex("\nGPU ")
    seven.write_text(text[:last].replace(": 8\n", ": 7\n", 1), encoding="utf-8")
    hosts = [f"h{at}={eight}" for at in range(3)] + [f"h3={seven}"]
    ran = preflight("topo", *(word for one in hosts for word in ("--from", one)))
    assert "FAIL   fleet.gpu.listed.same  h3  7; the other 3 have 8" in ran.out


def test_links_that_are_up_tell_no_pairs_on_a_board_without_switches(tmp_path: Path) -> None:
    links = tmp_path / "nvlink.txt"
    up = "\n".join(f"\t Link {at}: 26.562 GB/s" for at in range(18))
    text = _links(up)
    links.write_text(text[: text.index("GPU 4")], encoding="utf-8")
    told = " ".join(preflight("topo", "--from", str(links)).out.split())
    assert "18 NVLinks of each GPU are up; to which GPUs tells `nvidia-smi topo -m`" in told
    assert "GPU to GPU: NV18" not in told
    links.write_text(text, encoding="utf-8")
    assert "GPU to GPU: NV18, every pair of gpu[0-7]" in preflight("topo", "--from", str(links)).out


def test_a_gpu_that_the_matrix_does_not_show_has_no_fault_of_its_links(tmp_path: Path) -> None:
    matrix = tmp_path / "topo.txt"
    names = [f"GPU{at}" for at in range(7)]
    rows = [[a, *("X" if a == b else "NV18" for b in names), "0-47", "0"] for a in names]
    lines = [["", *names, "CPU Affinity", "NUMA Affinity"], *rows]
    matrix.write_text("\n".join(map("\t".join, lines)) + "\n", encoding="utf-8")
    eight = SAMPLES / "nvidia_smi_q" / "h100_sxm_x8_535.161_power_brake.txt"
    ran = preflight("topo", "--from", f"n={matrix}", "--from", f"n={eight}")
    assert "WARN   topo.matrix.whole  n  7" in ran.out
    assert "FAIL   topo" not in ran.out
    assert "group gpu7  how it is joined is not known" in ran.out


def test_of_several_nodes_a_gpu_is_on_the_one_with_its_processors(tmp_path: Path) -> None:
    """As a superchip shows them, whose GPUs are nodes of memory alone."""
    matrix, nodes = tmp_path / "topo.txt", tmp_path / "numactl.txt"
    matrix.write_text(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\tX\tNV18\t0-3\t0,2\nGPU1\tNV18\tX\t4-7\t1,3\n",
        encoding="utf-8",
    )
    each = "".join(
        f"node {at} cpus: {cpus}\nnode {at} size: 9000 MB\nnode {at} free: 8000 MB\n"
        for at, cpus in enumerate(("0 1 2 3", "4 5 6 7", "", ""))
    )
    nodes.write_text(f"available: 4 nodes (0-3)\n{each}", encoding="utf-8")
    ran = preflight("topo", "--from", f"n={matrix}", "--from", f"n={nodes}")
    assert "numactl --cpunodebind=0 --membind=0" in ran.out
    assert "numactl --cpunodebind=1 --membind=1" in ran.out


def test_what_a_log_alone_needs_besides_is_told(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    log.write_text(Job().text(), encoding="utf-8")
    hint = "the log alone does not tell what its hosts have"
    assert hint in preflight("topo", "--from", str(log)).out
    assert hint not in preflight("topo", "--from", str(log), "--from", DEVICES).out
