"""What the payload writes of eight busy H100 in a minute, and of GPUs that are not well."""

from __future__ import annotations

import json
from typing import Any

CARD = {
    "name": "NVIDIA H100 80GB HBM3", "sm_max_mhz": 1980, "memory_max_mhz": 2619, "slowdown_c": 89,
    "shutdown_c": 92, "memory_max_c": 95, "pcie_gen_max": 5, "pcie_width_max": 16,
}  # fmt: skip
COUNTERS = {
    "ecc_corrected": 3, "ecc_uncorrected": 0, "pcie_replays": 7, "nvlink_replays": 0,
    "nvlink_recoveries": 0, "nvlink_crc": 0, "nvlink_tx_kib": 10**9, "nvlink_rx_kib": 10**9,
}  # fmt: skip
SAMPLE = {
    "throttle": ["sw_power_cap"], "reasons": 4, "sm_mhz": 1755, "memory_mhz": 2619,
    "power_w": 690.0, "power_limit_w": 700.0, "gpu_c": 61, "memory_c": 71, "margin_c": 28,
    "utilization_percent": 99, "memory_utilization_percent": 40, "memory_used_bytes": 7 * 10**10,
    "performance_state": 0, "pcie_gen": 5, "pcie_width": 16, "pcie_tx_kbps": 1500000,
    "pcie_rx_kbps": 1500000,
}  # fmt: skip


def watch_lines(
    *,
    gpus: int = 8,
    every: dict[str, Any] | None = None,
    one: dict[int, dict[str, Any]] | None = None,
    grown: dict[int, dict[str, int]] | None = None,
    gone: dict[int, dict[str, Any]] | None = None,
    seconds: int = 60,
) -> str:
    """Seven samples of each GPU. `every`: values of all, `one`: of some GPUs; `grown`: counters at
    the end; `gone`: the line with which a GPU ends in the middle."""
    lines: list[dict[str, Any]] = [
        {"preflight": "watch/1", "seconds": seconds, "interval_s": seconds / 6, "python": "3.11.7"},
        {"gpus": gpus, "driver": "535.161.08"},
    ]
    bus = [f"00000000:{16 + gpu:02X}:00.0" for gpu in range(gpus)]
    lines += [
        {"gpu": gpu, "bus_id": bus[gpu], "card": CARD, "counters": COUNTERS, "errors": {}}
        for gpu in range(gpus)
    ]
    for number in range(7):
        at_s = seconds * number / 6
        for gpu in range(gpus):
            ended = (gone or {}).get(gpu)
            if ended and number >= 3:
                lines += [{"gpu": gpu, "t": at_s, **ended}] if number == 3 else []
                continue
            told = {**SAMPLE, **(every or {}), **(one or {}).get(gpu, {})}
            # No two are quite alike.
            told["power_w"] += gpu % 3
            told["sm_mhz"] += 5 * (gpu % 3)
            told["gpu_c"] += gpu % 4
            lines.append({"gpu": gpu, "t": at_s, **told})
    lines += [
        {"gpu": gpu, "t": seconds, "last": True, "errors": {},
         "counters": {**COUNTERS, **(grown or {}).get(gpu, {})}}
        for gpu in range(gpus) if gpu not in (gone or {})
    ]  # fmt: skip
    lines.append({"end": "done", "t": seconds, "samples": 7 * gpus})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def _reasons(mask: int, *names: str) -> dict[str, Any]:
    return {"reasons": mask, "throttle": list(names)}


#: Name -> the answers of a host.
WATCHES: dict[str, dict[str, str]] = {
    name: {"watch": text}
    for name, text in {
        "watch": watch_lines(),
        "watch-brake": watch_lines(
            one={2: {**_reasons(0x8C, "sw_power_cap", "hw_slowdown", "hw_power_brake"),
                     "sm_mhz": 345, "power_w": 190}}
        ),
        "watch-hot": watch_lines(
            one={3: {**_reasons(0x68, "hw_slowdown", "sw_thermal", "hw_thermal"), "gpu_c": 88,
                     "margin_c": 0}}
        ),
        "watch-warm": watch_lines(one={3: {**_reasons(0x20, "sw_thermal"), "memory_c": 95}}),
        "watch-unnamed": watch_lines(one={3: _reasons(0x8, "hw_slowdown")}),
        "watch-set": watch_lines(every={**_reasons(2, "applications_clocks"), "sm_mhz": 1900}),
        "watch-locked": watch_lines(
            every={**_reasons(2, "applications_clocks"), "sm_mhz": 1900}, one={1: {"sm_mhz": 700}}
        ),
        "watch-free": watch_lines(every={**_reasons(0), "sm_mhz": 1950}),
        "watch-low": watch_lines(every={**_reasons(0), "sm_mhz": 1950}, one={1: {"sm_mhz": 700}}),
        "watch-weak": watch_lines(
            one={6: {"sm_mhz": 1300, "power_w": 480, "gpu_c": 80, "memory_c": 90}}
        ),
        "watch-idle": watch_lines(one={4: {**_reasons(1, "idle"), "utilization_percent": 0}}),
        "watch-grown": watch_lines(
            grown={6: {"ecc_uncorrected": 1, "ecc_corrected": 9, "pcie_replays": 500,
                       "nvlink_replays": 4, "nvlink_recoveries": 1, "nvlink_crc": 60000}}
        ),
        "watch-lost": watch_lines(gone={3: {"lost": "NVML_ERROR_GPU_IS_LOST", "call": "sm_mhz"}}),
        "watch-hung": watch_lines(gone={5: {"silent_s": 11, "call": "sm_mhz", "state": "D"}}),
    }.items()
}  # fmt: skip
