"""What the samples list: lines, processes, MIG instances; and that the table is whole."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from preflight.facts.gpu import Gpu
from preflight.model import Missing
from preflight.probes.nvidia_smi.derived import DERIVED
from preflight.probes.nvidia_smi.fields import SOURCES
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from tests.conftest import sample
from tests.probes.test_nvidia_smi_samples import HEADS, MIB, NA, read, seen


def test_the_line_of_a_gpu_is_its_own() -> None:
    for name in HEADS:
        form = "xml" if name.endswith(".xml") else "q"
        lines = sample(f"nvidia_smi_{form}/{name}").split("\n")
        for gpu in read(name).gpus:
            domain, rest = gpu.bus_id[:8], gpu.bus_id[9:]
            shown = lines[gpu.line - 1].lower()
            opening = f'<gpu id="{domain}:{rest}">' if form == "xml" else "gpu 0000"
            assert not gpu.bus_id or (opening in shown and rest in shown)


def test_mig_instances() -> None:
    instances = read("a100_sxm4_80gb_mig_535.54.xml").gpus[0].mig.instances
    assert not isinstance(instances, Missing)
    assert [(i.gpu_instance, i.multiprocessors, i.memory_bytes) for i in instances] == [
        (number, 14, 19968 * MIB) for number in (3, 4, 5, 6)
    ]


def processes(name: str, index: int = 0) -> list[tuple[Any, ...]]:
    found = read(name).gpus[index].processes
    assert not isinstance(found, Missing)
    return [(p.pid, p.kind, seen(p.name), seen(p.memory_bytes)) for p in found]


def test_processes() -> None:
    assert processes("tesla_t4_515.105.xml") == [
        (675, "G", "/usr/lib/xorg/Xorg", 22 * MIB),
        (5762, "C", "python", 1005 * MIB),
    ]
    assert processes("titan_v_560.35_workstation.txt") == [
        (100607, "G", "/usr/lib/xorg/Xorg", 142 * MIB),
        (100838, "G", "/usr/bin/gnome-shell", 33 * MIB),
        (101815, "G", "/opt/test", 111 * MIB),
    ]
    windows = processes("grid_p4_1q_vgpu_513.46_windows.xml")
    assert len(windows) == 13
    assert windows[0] == (1188, "C+G", NA, NA)
    assert windows[-1] == (15104, "C+G", "C:\\Windows\\explorer.exe", NA)


def test_a_process_name_may_hold_anything() -> None:
    [(pid, kind, name, _)] = processes("rtx4090_x8_535.154_idle.txt", 4)
    assert (kind, pid > 0) == ("C", True)
    assert name == (
        "[celeryd: worker_task_a@worker-a-56b58fc7c6-abcde:MainProcess] -active- "
        "(-A run.worker.app worker -Q queue_a -l info -P solo -n worker_task_a@%h -E)"
    )


def test_a_virtual_gpu_says_so() -> None:
    gpu = read("grid_p4_1q_vgpu_513.46_windows.xml").gpus[0]
    why = Missing("not-applicable", "a virtual GPU does not report it")
    assert gpu.temperature.gpu_c == gpu.clocks.sm_mhz == gpu.pcie.width == gpu.power.draw_w == why
    assert gpu.temperature.margin_c == why


def leaves(group: Struct | type[Struct], above: str = "") -> set[str]:
    found = set()
    for one in structs.fields(group):
        inner = one.default_factory if isinstance(one.default_factory, type) else None
        if inner is not None and issubclass(inner, Struct):
            found |= leaves(inner, above + one.name + ".")
        else:
            found.add(above + one.name)
    return found


def test_every_fact_has_a_source_in_both_forms() -> None:
    own = {"index", "name", "bus_id", "line", "probe", "answers", "unreadable", "processes"}
    own |= {"throttle.hw_thermal_more_s", "throttle.hw_power_brake_more_s"}
    own |= {"graphical", "inforom_corrupted", "design", "memory.unexplained_mib"}
    own |= {fact for fact in leaves(Gpu) if fact.startswith("nvlink.")}
    wanted = leaves(Gpu) - own - {"mig.instances"} - (DERIVED.keys() - SOURCES["xml"].keys())
    assert len(wanted) == 93
    assert SOURCES["xml"].keys() == SOURCES["text"].keys() == wanted


def test_the_version_of_the_inforom_is_that_of_its_image() -> None:
    xml = nvidia_smi_xml(sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml"))
    text = nvidia_smi_text(sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"))
    assert xml.gpus[0].inforom == "G506.0212.00.01"
    assert {gpu.inforom for gpu in text.gpus} == {"G520.0200.00.05"}
