"""Real reports of nvidia-smi and what each one says: one table."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from msgspec import structs

from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.model import Missing
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from tests.conftest import sample

NA, ABSENT = "not-applicable", "not-in-input"
MIB = 2**20


def read(name: str) -> NvidiaSmi:
    form = "xml" if name.endswith(".xml") else "q"
    text = sample(f"nvidia_smi_{form}/{name}")
    return nvidia_smi_xml(text) if form == "xml" else nvidia_smi_text(text)


def at(gpu: Gpu, path: str) -> Any:
    return reduce(getattr, path.split("."), gpu)


def seen(value: Any) -> Any:
    """A value, or the kind of what is missing."""
    return value.kind if isinstance(value, Missing) else value


def on(buses: str) -> tuple[str, ...]:
    return tuple(f"{bus}:00.0" for bus in buses.split())


AZURE = tuple(f"0000000{i}:00:00.0" for i in range(1, 9))

# fmt: off
#: sample -> driver, announced, bus ids without the domain where that is 0
HEADS: dict[str, tuple[str, int | str, tuple[str, ...]]] = {
    "a100_sxm4_80gb_mig_535.54.xml": ("535.54.03", 4, ("01:00.0",)),
    "a10g_515.105.xml": ("515.105.01", 1, ("00:1e.0",)),
    "tesla_t4_515.105.xml": ("515.105.01", 1, ("00:1e.0",)),
    "rtx3060_570.124.xml": ("570.124.04", 1, ("2d:00.0",)),
    "rtx4000_sff_ada_595.84_v13.xml": ("595.84", 1, ("06:00.0",)),
    "quadro_p400_418.43_old.xml": ("418.43", 1, ("43:00.0",)),
    "rtx_pro_6000_blackwell_590.44_v13.xml": ("590.44.01", 1, ("61:00.0",)),
    "rtx_a5000_x2_nvlink_590.44_v13.xml": ("590.44.01", 2, ("81:00.0", "c1:00.0")),
    "grid_p4_1q_vgpu_513.46_windows.xml": ("513.46", 1, ("00:0b.0",)),
    "h100_sxm_x8_535.161_power_brake.txt": ("535.161.08", 8, on("19 3b 4c 5d 9b bb cb db")),
    "h100_sxm_x8_535.183_one_gpu_throttled.txt": ("535.183.01", 8, on("53 64 75 86 97 a8 b9 ca")),
    "h100_sxm_535.183_truncated.txt": ("535.183.01", 8, ("53:00.0",)),
    "rtx4090_x8_535.154_idle.txt": ("535.154.05", 8, on("01 21 41 61 81 a1 c1 e1")),
    "rtx4090_x8_535.154_busy_unknown_error.txt": ("535.154.05", 8, on("01 21 41 61 81 a1 c1 e1")),
    "a10_535.129_row_remap_pending.txt": ("535.129.03", 1, ("07:00.0",)),
    "titan_v_560.35_workstation.txt": ("560.35.03", 1, ("01:00.0",)),
    "a100_510.73_row_remap_pending_excerpt.txt": ("510.73.08", 8, ("10:1c.0",)),
    "sram_uncorrectable_volatile1_aggregate5_excerpt.txt": (ABSENT, ABSENT, ("",)),
    "d_page_retirement_535.86_x8_clean.txt": ("535.86.10", 8, AZURE),
    "d_page_retirement_535.86_x8_pending_edited.txt": ("535.86.10", 8, AZURE),
    "d_clock_p100_375.66.txt": ("375.66", 4, ("00:04.0",)),
    "d_performance_v100_410.48_no_header.txt": (ABSENT, ABSENT, ("18:00.0",)),
}

CLEAN_ECC = {
    f"ecc.{span}_{memory}_{kind}": 0
    for span in ("volatile", "aggregate")
    for memory in ("sram", "dram")
    for kind in ("corrected", "uncorrected")
}
NO_ECC = dict.fromkeys(CLEAN_ECC, NA)

#: sample, GPU (None: every one) -> facts
FACTS: list[tuple[str, int | None, dict[str, Any]]] = [
    ("a100_sxm4_80gb_mig_535.54.xml", 0, {
        "product": "NVIDIA A100-SXM4-80GB", "architecture": "Ampere", "brand": "NVIDIA",
        "serial": "1156195168788", "vbios": "92.00.36.00.02", "pci_device": "0x20b210de",
        "uuid": "GPU-2d959ae9-98a5-1b29-96a6-77f081a0fe8a", "persistence": "Disabled",
        "mig.mode": "Enabled", "pcie.gen": 4, "pcie.gen_max": 4, "pcie.width": 16,
        "utilization_percent": NA, "remap.pending": NA, "remap.banks_none": NA,
        "retired.total_pages": NA, "temperature.tlimit_c": NA, "temperature.margin_c": 89 - 27,
        "temperature.memory_margin_c": 95 - 44, "power.limit_percent": 100 * 67.03 / 500,
        "reset_required": False, "recovery_action": ABSENT, "processes": (),
        "throttle.hw_slowdown": False, "answers": True, "unreadable": (), **CLEAN_ECC,
    }),
    ("a10g_515.105.xml", 0, {
        "performance_state": "P8", "pcie.gen": 1, "pcie.gen_max": 4, "pcie.width": 8,
        "pcie.width_max": 16, "throttle.idle": True, "virtualization": "Pass-Through",
        "power.draw_w": 25.58, "power.limit_w": 300.0, "temperature.memory_margin_c": NA,
        "remap.banks_max": 192, "fabric.state": ABSENT, "addressing": ABSENT,
        "pcie.gen_host_max": ABSENT,
    }),
    ("tesla_t4_515.105.xml", 0, {
        "product": "Tesla T4", "performance_state": "P0", "pcie.gen": 3, "pcie.gen_max": 3,
        "pcie.width": 8, "pcie.width_max": 16, "retired.single_bit": 0, "retired.total_pages": 0,
        "retired.pending": False, "fan_percent": NA, "memory.total_bytes": 15360 * MIB,
        "clocks.application_mhz": 585, "clocks.sm_max_mhz": 1590,
    }),
    ("rtx3060_570.124.xml", 0, {
        "pcie.gen": 1, "pcie.gen_max": 4, "pcie.width": 16, "throttle.idle": True,
        "power.draw_w": 11.60, "power.default_limit_w": 170.0, "power.max_limit_w": 190.0,
        "reset_required": NA, "recovery_action": "None", "ecc.mode": NA, "serial": NA,
        "temperature.margin_c": 95 - 42, "mig.instances": (), **NO_ECC,
    }),
    ("rtx4000_sff_ada_595.84_v13.xml", 0, {
        "pcie.gen": 1, "pcie.width": 16, "throttle.idle": True, "throttle.sw_thermal": False,
        "temperature.tlimit_c": 49, "temperature.slowdown_c": NA, "addressing": "HMM",
        "temperature.slowdown_tlimit_c": -2, "temperature.margin_c": 51,
        "clocks.application_mhz": NA, "ecc.channel_repair_pending": False,
        "ecc.tpc_repair_pending": False, "ecc.unrepairable_memory": NA, "remap.banks_max": 96,
    }),
    ("quadro_p400_418.43_old.xml", 0, {
        "architecture": ABSENT, "pcie.gen": 1, "pcie.gen_max": 3, "fan_percent": 34,
        "ecc.mode": NA, "remap.pending": ABSENT, "mig.mode": ABSENT, "mig.instances": ABSENT,
        "temperature.margin_c": 67, "power.draw_w": NA, "power.limit_percent": NA,
        "throttle.idle": True, "throttle.hw_thermal": False, "memory.used_bytes": 0, **NO_ECC,
    }),
    ("rtx_pro_6000_blackwell_590.44_v13.xml", 0, {
        "architecture": "Blackwell", "pcie.gen": 1, "pcie.gen_max": 4,
        "pcie.gen_device_max": 5, "pcie.gen_host_max": 4, "temperature.margin_c": 70,
        "temperature.memory_max_c": NA, "power.draw_w": 3.97, "power.limit_w": 300.0,
        "ecc.mode": "Disabled", "ecc.sram_threshold_exceeded": NA, "compute_mode": "Default",
        "reset_required": ABSENT, "recovery_action": "None", "display_active": "Disabled",
        "memory.used_bytes": 65720 * MIB, "fabric.status": NA, **NO_ECC,
    }),
    ("rtx_a5000_x2_nvlink_590.44_v13.xml", 0, {
        "temperature.gpu_c": 13, "throttle.idle": True, "name": "gpu0", "line": 8,
    }),
    ("rtx_a5000_x2_nvlink_590.44_v13.xml", 1, {
        "temperature.gpu_c": 15, "throttle.idle": True, "name": "gpu1", "line": 868,
    }),
    ("grid_p4_1q_vgpu_513.46_windows.xml", 0, {
        "virtualization": "VGPU", "temperature.gpu_c": NA, "temperature.margin_c": NA,
        "clocks.sm_mhz": NA, "clocks.sm_max_mhz": NA, "power.draw_w": NA, "pcie.width": NA,
        "pcie.gen": NA, "pcie.replays": NA, "throttle.hw_slowdown": NA, "remap.pending": NA,
        "memory.total_bytes": 1024 * MIB, "utilization_percent": 0, "answers": True,
    }),
    ("h100_sxm_x8_535.161_power_brake.txt", None, {
        "throttle.hw_slowdown": True, "throttle.hw_power_brake": True,
        "throttle.hw_thermal": False, "throttle.sw_thermal": False, "pcie.gen": 5,
        "pcie.width": 16, "ecc.sram_threshold_exceeded": False, "mig.mode": "Disabled",
        "mig.instances": (), "fabric.state": "Completed", "fabric.status": "Success",
        "processes": (), "reset_required": False, "unreadable": (), **CLEAN_ECC,
    }),
    ("h100_sxm_x8_535.161_power_brake.txt", 0, {
        "temperature.margin_c": 58, "temperature.slowdown_c": NA, "pcie.replays": 67,
        "power.draw_w": 67.74, "power.limit_w": 700.0, "clocks.sm_mhz": 86,
        "clocks.sm_max_mhz": 1980, "remap.banks_max": 2560, "pci_device": "0x233010de",
        "memory.total_bytes": 81559 * MIB, "line": 9, "probe": "nvidia-smi-q",
    }),
    *(
        ("h100_sxm_x8_535.183_one_gpu_throttled.txt", index, {
            "throttle.sw_power_cap": index == 2, "throttle.hw_power_brake": index == 2,
            "throttle.sw_thermal": index == 2, "throttle.idle": index != 2,
            "throttle.hw_slowdown": False,
        })
        for index in range(8)
    ),
    ("h100_sxm_x8_535.183_one_gpu_throttled.txt", 2, {
        "power.draw_w": 118.01, "temperature.gpu_c": 39,
    }),
    ("h100_sxm_535.183_truncated.txt", 0, {
        "pcie.replays": 120, "throttle.idle": True, "throttle.sync_boost": False,
        # That text says "Invalid HW Slowdown", which is no such reason.
        "throttle.hw_slowdown": ABSENT, "throttle.hw_thermal": ABSENT,
        "memory.total_bytes": ABSENT, "ecc.mode": ABSENT, "processes": ABSENT,
        "temperature.margin_c": ABSENT, "power.limit_percent": ABSENT,
        "retired.total_pages": ABSENT,
    }),
    ("rtx4090_x8_535.154_idle.txt", None, {
        "unreadable": (), "addressing": "None", "ecc.mode": "Disabled", **NO_ECC,
    }),
    ("rtx4090_x8_535.154_busy_unknown_error.txt", None, {
        "unreadable": ("Addressing Mode: Unknown Error",), "addressing": "unreadable",
        "answers": True, "product": "NVIDIA GeForce RTX 4090",
    }),
    ("a10_535.129_row_remap_pending.txt", 0, {
        "remap.uncorrected": 4, "remap.corrected": 0, "remap.pending": True,
        "remap.failure": False, "remap.banks_max": 192, "remap.banks_none": 0,
        "temperature.margin_c": 98 - 33, "power.limit_percent": 100 * 43.89 / 150,
        "pcie.gen_host_max": NA, "retired.pending": NA, **CLEAN_ECC,
    }),
    ("titan_v_560.35_workstation.txt", 0, {
        "temperature.memory_margin_c": 95 - 41, "remap.pending": NA, "mig.instances": NA,
        "pcie.gen": 1, "display_active": "Disabled", "addressing": NA, **NO_ECC,
    }),
    ("a100_510.73_row_remap_pending_excerpt.txt", 0, {
        "product": "NVIDIA A100-SXM4-80GB", "ecc.volatile_dram_corrected": 177,
        "ecc.aggregate_dram_corrected": 177, "ecc.volatile_dram_uncorrected": 0,
        "remap.pending": True, "remap.corrected": 1, "remap.banks_high": 1,
        "pcie.width": ABSENT, "ecc.mode": ABSENT, "processes": ABSENT, "line": 6,
    }),
    ("sram_uncorrectable_volatile1_aggregate5_excerpt.txt", 0, {
        "name": "gpu0", "ecc.volatile_sram_uncorrected": 1,
        "ecc.aggregate_sram_uncorrected": 5, "ecc.aggregate_dram_uncorrected": 0,
        "remap.pending": ABSENT, "product": ABSENT, "line": 1,
    }),
    ("d_page_retirement_535.86_x8_clean.txt", None, {
        "retired.total_pages": 0, "retired.pending": False, "pcie.width": ABSENT, "uuid": ABSENT,
    }),
    *(
        ("d_page_retirement_535.86_x8_pending_edited.txt", index, {
            "retired.total_pages": total, "retired.pending": pending,
        })
        for index, (total, pending) in enumerate([
            (65, False), (63, True), (0, False), (6, True),
            (0, False), (65, True), (0, False), (64, True),
        ])
    ),
    ("d_clock_p100_375.66.txt", 0, {
        "clocks.application_mhz": 1189, "clocks.default_application_mhz": 1189,
        "clocks.sm_max_mhz": 1328, "clocks.sm_mhz": 405, "clocks.memory_mhz": 715,
        "clocks.memory_max_mhz": 715, "product": ABSENT, "answers": True,
    }),
    ("d_performance_v100_410.48_no_header.txt", 0, {
        **dict.fromkeys(
            (f"throttle.{f.name}" for f in structs.fields(Gpu(0, "", "").throttle)
             if not f.name.endswith("_s")), False
        ),
        "performance_state": "P0", "ecc.mode": ABSENT,
    }),
]
# fmt: on


@pytest.mark.parametrize("name", HEADS)
def test_head_and_list(name: str) -> None:
    found = read(name)
    version, announced, addresses = HEADS[name]
    assert found.driver.state == "answers"
    assert seen(found.driver.version) == version
    assert seen(found.attached) == announced
    assert [gpu.bus_id.removeprefix("00000000:") for gpu in found.gpus] == list(addresses)
    # Which number a GPU has is known where all are listed, or where it has no address either.
    whole = announced == len(addresses) or "" in addresses
    assert [(seen(gpu.index), gpu.name) for gpu in found.gpus] == [
        (i, f"gpu{i}") if whole else (ABSENT, gpu.bus_id.removeprefix("0000"))
        for i, gpu in enumerate(found.gpus)
    ]


@pytest.mark.parametrize(("name", "index", "facts"), FACTS)
def test_facts(name: str, index: int | None, facts: dict[str, Any]) -> None:
    gpus = read(name).gpus
    for gpu in gpus if index is None else gpus[index : index + 1]:
        assert {path: seen(at(gpu, path)) for path in facts} == facts
