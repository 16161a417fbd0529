"""The fields of `nvidia-smi -q`: one table for its XML and its text.

A section is a path of tags below <gpu> and the path of labels (whose case does not count) below the
GPU's line in the text; its rows name facts, how their text is read, their tags and their labels.
Driver generations name things differently: "|" parts spellings, and a fact may stand in several
sections; the first spelling that gives a value counts. "a + b" is a sum; an addend with "?" may be
absent.

Names as printed by drivers 375 to 595, and by nvsmi_device_v11.dtd to v13.dtd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from preflight.model import Known
from preflight.probes.values import (
    bytes_of,
    celsius,
    count,
    degraded,
    flag,
    generation,
    lanes,
    megahertz,
    pci_id,
    percent,
    seconds,
    switch,
    watts,
    word_of,
    words,
)

Form = Literal["xml", "text"]
Convert = Callable[[str], Known[Any]]
_Row = tuple[str, Convert, str, str]
_Section = tuple[str, str, tuple[_Row, ...]]

# nvidia-smi(1); drivers before 384 wrote blanks where later ones write underscores.
_COMPUTE_MODE = word_of(
    "Default", "Exclusive Thread", "Exclusive_Thread", "Exclusive Process", "Exclusive_Process",
    "Prohibited",
)  # fmt: skip
_PERFORMANCE_STATE = word_of(*(f"P{state}" for state in range(16)))
_VIRTUALIZATION = word_of("None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA")
_FABRIC_STATE = word_of("Not Started", "In Progress", "Completed")

# fmt: off
_IDENTITY: tuple[_Section, ...] = (
    ("", "", (
        ("product", words, "product_name", "Product Name"),
        ("brand", words, "product_brand", "Product Brand"),
        ("architecture", words, "product_architecture", "Product Architecture"),
        ("uuid", words, "uuid", "GPU UUID"),
        ("serial", words, "serial", "Serial Number"),
        ("vbios", words, "vbios_version", "VBIOS Version"),
        ("persistence", switch, "persistence_mode", "Persistence Mode"),
        ("addressing", words, "addressing_mode", "Addressing Mode"),
        ("display_active", switch, "display_active", "Display Active"),
        ("compute_mode", _COMPUTE_MODE, "compute_mode", "Compute Mode"),
        ("performance_state", _PERFORMANCE_STATE, "performance_state", "Performance State"),
        ("fan_percent", percent, "fan_speed", "Fan Speed"),
        ("recovery_action", words, "gpu_recovery_action", "GPU Recovery Action"),
    )),
    ("inforom_version", "Inforom Version", (
        ("inforom", words, "img_version", "Image Version"),
    )),
    ("gpu_virtualization_mode", "GPU Virtualization Mode", (
        ("virtualization", _VIRTUALIZATION, "virtualization_mode", "Virtualization Mode"),
    )),
    ("utilization", "Utilization", (("utilization_percent", percent, "gpu_util", "GPU"),)),
    ("gpu_reset_status", "GPU Reset Status", (
        ("reset_required", flag, "reset_required", "Reset Required"),
        ("reset_recommended", flag,
         "drain_and_reset_recommended", "Drain and Reset Recommended"),
    )),
    ("mig_mode", "MIG Mode", (
        ("mig.mode", switch, "current_mig", "Current"),
        ("mig.mode_pending", switch, "pending_mig", "Pending"),
    )),
    ("fb_memory_usage", "FB Memory Usage", (
        ("memory.total_bytes", bytes_of, "total", "Total"),
        ("memory.used_bytes", bytes_of, "used", "Used"),
    )),
    ("fabric", "Fabric", (
        ("fabric.state", _FABRIC_STATE, "state", "State"),
        ("fabric.status", words, "status", "Status"),
        ("fabric.clique_id", words, "cliqueId", "CliqueId"),
        ("fabric.cluster_uuid", words, "clusterUuid", "ClusterUUID"),
    )),
    ("fabric/health", "Fabric/Health", (
        ("fabric.health", words, "summary", "Summary"),
        ("fabric.bandwidth_degraded", degraded, "bandwidth", "Bandwidth"),
        ("fabric.route_recovery", flag,
         "route_recovery_in_progress", "Route Recovery in progress"),
        ("fabric.route_unhealthy", flag, "route_unhealthy", "Route Unhealthy"),
        ("fabric.access_timeout_recovery", flag,
         "access_timeout_recovery", "Access Timeout Recovery"),
        ("fabric.incorrect_configuration", words,
         "incorrect_configuration", "Incorrect Configuration"),
        ("fabric.partition_assigned", flag, "partition_assigned", "Partition Assigned"),
    )),
)

_PCIE: tuple[_Section, ...] = (
    ("pci", "PCI", (
        ("pci_device", pci_id, "pci_device_id", "Device Id"),
        ("pcie.replays", count, "replay_counter", "Replays Since Reset"),
    )),
    ("pci/pci_gpu_link_info/pcie_gen", "PCI/GPU Link Info/PCIe Generation", (
        ("pcie.gen", generation, "current_link_gen", "Current"),
        ("pcie.gen_max", generation, "max_link_gen", "Max"),
        ("pcie.gen_device_max", generation, "max_device_link_gen", "Device Max"),
        ("pcie.gen_host_max", generation, "max_host_link_gen", "Host Max"),
    )),
    ("pci/pci_gpu_link_info/link_widths", "PCI/GPU Link Info/Link Width", (
        ("pcie.width", lanes, "current_link_width", "Current"),
        ("pcie.width_max", lanes, "max_link_width", "Max"),
    )),
)

# Before Ampere each cache has its own count, by bits, and Total is all of them with the device
# memory: it counts only where the memory is not told by itself. CBU and the texture caches are not
# in every generation.
_CACHES = (
    "register_file + l1_cache + l2_cache + texture_memory? + texture_shm? + cbu?",
    "Register File + L1 Cache + L2 Cache + Texture Memory? + Texture Shared? + CBU?",
)
_PARITY = (
    "sram_uncorrectable | sram_uncorrectable_parity + sram_uncorrectable_secded",
    "SRAM Uncorrectable | SRAM Uncorrectable Parity + SRAM Uncorrectable SEC-DED",
)
_ECC: tuple[_Section, ...] = (
    ("ecc_mode", "ECC Mode", (
        ("ecc.mode", switch, "current_ecc", "Current"),
        ("ecc.mode_pending", switch, "pending_ecc", "Pending"),
    )),
    *((f"ecc_errors/{span}", f"ECC Errors/{span.title()}", (
        (f"ecc.{span}_sram_corrected", count, "sram_correctable", "SRAM Correctable"),
        (f"ecc.{span}_sram_uncorrected", count, *_PARITY),
        (f"ecc.{span}_dram_corrected", count, "dram_correctable", "DRAM Correctable"),
        (f"ecc.{span}_dram_uncorrected", count, "dram_uncorrectable", "DRAM Uncorrectable"),
    )) for span in ("volatile", "aggregate")),
    *((f"ecc_errors/{span}/{bits}_bit", f"ECC Errors/{span.title()}/{bits.title()} Bit", (
        (f"ecc.{span}_sram_{kind}", count, *_CACHES),
        (f"ecc.{span}_dram_{kind}", count, "device_memory | total", "Device Memory | Total"),
    )) for span in ("volatile", "aggregate")
       for bits, kind in (("single", "corrected"), ("double", "uncorrected"))),
    ("ecc_errors/aggregate", "ECC Errors/Aggregate", (
        ("ecc.sram_threshold_exceeded", flag, "sram_threshold_exceeded", "SRAM Threshold Exceeded"),
    )),
    ("ecc_errors", "ECC Errors", (
        ("ecc.channel_repair_pending", flag, "channel_repair_pending", "Channel Repair Pending"),
        ("ecc.tpc_repair_pending", flag, "tpc_repair_pending", "TPC Repair Pending"),
        ("ecc.unrepairable_memory", flag, "unrepairable_memory", "Unrepairable Memory"),
    )),
)

_WORN: tuple[_Section, ...] = (
    ("retired_pages", "Retired Pages", (
        ("retired.single_bit", count,
         "multiple_single_bit_retirement/retired_count", "Single Bit ECC"),
        ("retired.double_bit", count, "double_bit_retirement/retired_count", "Double Bit ECC"),
        ("retired.pending", flag,
         "pending_blacklist | pending_retirement", "Pending Page Blacklist | Pending"),
    )),
    ("remapped_rows", "Remapped Rows", (
        ("remap.corrected", count, "remapped_row_corr", "Correctable Error"),
        ("remap.uncorrected", count, "remapped_row_unc", "Uncorrectable Error"),
        ("remap.pending", flag, "remapped_row_pending", "Pending"),
        ("remap.failure", flag, "remapped_row_failure", "Remapping Failure Occurred"),
    )),
    ("remapped_rows/row_remapper_histogram", "Remapped Rows/Bank Remap Availability Histogram",
     tuple((f"remap.banks_{left}", count, f"row_remapper_histogram_{left}", left.title())
           for left in ("max", "high", "partial", "low", "none"))),
)

#: fact, end of its tag, its label.
_REASONS = (
    ("idle", "gpu_idle", "Idle"),
    ("applications_clocks", "applications_clocks_setting", "Applications Clocks Setting"),
    ("sw_power_cap", "sw_power_cap", "SW Power Cap"),
    ("hw_slowdown", "hw_slowdown", "HW Slowdown"),
    ("hw_thermal", "hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown"),
    ("hw_power_brake", "hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown"),
    ("sync_boost", "sync_boost", "Sync Boost"),
    ("sw_thermal", "sw_thermal_slowdown", "SW Thermal Slowdown"),
)
_STATE: tuple[_Section, ...] = (
    *((f"clocks_{word}_reasons", f"Clocks {word.title()} Reasons", tuple(
        (f"throttle.{fact}", flag, f"clocks_{word}_reason_{tag}", label)
        for fact, tag, label in _REASONS
    )) for word in ("event", "throttle")),  # "throttle" until driver 530
    ("clocks_event_reasons_counters", "Clocks Event Reasons Counters", tuple(
        (f"throttle.{fact}_s", seconds, f"clocks_event_reasons_counters_{tag}", label)
        for fact, tag, label in (
            ("hw_thermal", "hw_therm_slowdown", "HW Thermal Slowdown"),
            ("hw_power_brake", "hw_power_brake", "HW Power Braking"),
        )
    )),
    ("temperature", "Temperature", (
        ("temperature.gpu_c", celsius, "gpu_temp", "GPU Current Temp"),
        ("temperature.tlimit_c", celsius, "gpu_temp_tlimit", "GPU T.Limit Temp"),
        ("temperature.slowdown_c", celsius, "gpu_temp_slow_threshold", "GPU Slowdown Temp"),
        ("temperature.slowdown_tlimit_c", celsius,
         "gpu_temp_slow_tlimit_threshold", "GPU Slowdown T.Limit Temp"),
        ("temperature.memory_c", celsius, "memory_temp", "Memory Current Temp"),
        ("temperature.memory_max_c", celsius,
         "gpu_temp_max_mem_threshold", "Memory Max Operating Temp"),
    )),
    # The average is what `power.draw` of --query-gpu means on Ampere and later.
    ("gpu_power_readings", "GPU Power Readings", (
        ("power.draw_w", watts, "average_power_draw | power_draw | instant_power_draw",
         "Average Power Draw | Power Draw | Instantaneous Power Draw"),
        ("power.limit_w", watts, "current_power_limit", "Current Power Limit"),
        ("power.default_limit_w", watts, "default_power_limit", "Default Power Limit"),
        ("power.max_limit_w", watts, "max_power_limit", "Max Power Limit"),
    )),
    ("power_readings", "Power Readings", (
        ("power.draw_w", watts, "power_draw", "Power Draw"),
        ("power.limit_w", watts,
         "enforced_power_limit | power_limit", "Enforced Power Limit | Power Limit"),
        ("power.default_limit_w", watts, "default_power_limit", "Default Power Limit"),
        ("power.max_limit_w", watts, "max_power_limit", "Max Power Limit"),
    )),
    ("clocks", "Clocks", (
        ("clocks.sm_mhz", megahertz, "sm_clock", "SM"),
        ("clocks.memory_mhz", megahertz, "mem_clock", "Memory"),
    )),
    ("max_clocks", "Max Clocks", (
        ("clocks.sm_max_mhz", megahertz, "sm_clock", "SM"),
        ("clocks.memory_max_mhz", megahertz, "mem_clock", "Memory"),
    )),
    ("applications_clocks", "Applications Clocks", (
        ("clocks.application_mhz", megahertz, "graphics_clock", "Graphics"),
    )),
    ("default_applications_clocks", "Default Applications Clocks", (
        ("clocks.default_application_mhz", megahertz, "graphics_clock", "Graphics"),
    )),
)
# fmt: on
_SECTIONS = (*_IDENTITY, *_PCIE, *_ECC, *_WORN, *_STATE)


class Addend(NamedTuple):
    """One field that a fact is, or is a part of."""

    path: str
    optional: bool = False


class Source(NamedTuple):
    """Where one form of the report has a fact: spellings, best first, each a sum of fields."""

    convert: Convert
    spellings: tuple[tuple[Addend, ...], ...]


def _spellings(section: str, names: str) -> Iterator[tuple[Addend, ...]]:
    for spelling in names.split(" | "):
        yield tuple(
            Addend(f"{section}/{name.rstrip('?')}".lstrip("/"), name.endswith("?"))
            for name in spelling.split(" + ")
        )


def _sources(form: Form) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for tags, labels, rows in _SECTIONS:
        for fact, convert, tag_names, label_names in rows:
            where = (tags, tag_names) if form == "xml" else (labels.lower(), label_names.lower())
            before = found[fact].spellings if fact in found else ()
            found[fact] = Source(convert, (*before, *_spellings(*where)))
    return found


def _labels(form: Form) -> dict[str, str]:
    found: dict[str, str] = {}
    for tags, labels, rows in _SECTIONS:
        for _, _, tag_names, label_names in rows:
            shown = [a.path for sum_ in _spellings(labels, label_names) for a in sum_]
            paths = [a.path for sum_ in _spellings(tags, tag_names) for a in sum_]
            keys = paths if form == "xml" else [path.lower() for path in shown]
            found.update(zip(keys, shown, strict=False))
    return found


#: By form: fact -> where it stands.
SOURCES: dict[Form, dict[str, Source]] = {"xml": _sources("xml"), "text": _sources("text")}
#: By form: path -> the labels that a person knows it by. Its keys are all paths of the table.
LABELS: dict[Form, dict[str, str]] = {"xml": _labels("xml"), "text": _labels("text")}
