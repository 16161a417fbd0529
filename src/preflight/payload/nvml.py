"""What is asked of NVML: tables of calls, each value or the name of the error that came instead.

Function and constant names are those of nvml.h (docs.nvidia.com/deploy/nvml-api), as nvidia-ml-py
has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

Call = tuple[str, Callable[[Any], Any]]

#: Clocks event (throttle) reasons by bit: a mask may hold several (nvml.h, nvmlClocksEventReasons).
REASONS = (
    (0x1, "idle"),
    (0x2, "applications_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clocks"),
)

#: NVML's field ids (nvml.h, NVML_FI_DEV_*).
_MEMORY_TEMP = 82
_NVLINK_TX_KIB, _NVLINK_RX_KIB = 138, 139
_ALL_LINKS = 0xFFFFFFFF  # the scope of a field that is summed over all links
#: Per link: NVML_FI_DEV_NVLINK_ERROR_DL_{REPLAY,RECOVERY,CRC}, since driver 530.
_LINK_FIELDS = {"replays": 161, "recoveries": 162, "crc": 163}
#: The older call: NVML_NVLINK_ERROR_DL_{REPLAY,RECOVERY,CRC_FLIT,CRC_DATA}.
_LINK_COUNTERS = {"replays": (0,), "recoveries": (1,), "crc": (2, 3)}
_MOST_LINKS = 18


class LostError(Exception):
    """The GPU no longer answers: the error's name and the call that met it."""


#: After these NVML's own advice is a reset or a reboot.
_LOST = (15, 16)  # NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED


def error_name(error: Any) -> str:
    """NVML_ERROR_NOT_SUPPORTED; of a code that this table does not know, its number."""
    names = (
        name
        for name, value in vars(pynvml).items()
        if name.startswith("NVML_ERROR_") and value == error.value
    )
    return next(names, f"NVML_ERROR_{error.value}")


def names_of(mask: int) -> list[str]:
    """The names of all bits of a mask; a bit that is not known by its number."""
    known = [name for bit, name in REASONS if mask & bit]
    rest = mask & ~sum(bit for bit, _ in REASONS)
    return known + ([f"{rest:#x}"] if rest else [])


def ask(
    calls: tuple[Call, ...], handle: Any, now: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Values by name (None where there is none) and the errors that came instead.

    `now` is told of each call before it is made. Raises LostError.
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, call in calls:
        now(name)
        values[name] = None
        try:
            values[name] = call(handle)
        except pynvml.NVMLError as error:
            errors[name] = error_name(error)
            if error.value in _LOST:
                raise LostError(errors[name], name) from error
        except AttributeError:  # a pynvml that is older than the function
            errors[name] = "NVML_ERROR_FUNCTION_NOT_FOUND"
        except (TypeError, ValueError, IndexError) as error:
            errors[name] = type(error).__name__
    return values, errors


def _field(handle: Any, field: int, scope: int = 0) -> int:
    """The value of one field; NVMLError where it has none."""
    found = pynvml.nvmlDeviceGetFieldValues(handle, [(field, scope)])[0]
    if found.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(found.nvmlReturn)
    # nvmlValueType_t: double, unsigned int, unsigned long, unsigned long long, signed ...
    kinds = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return int(getattr(found.value, kinds[found.valueType]))


def _reasons(handle: Any) -> int:
    try:
        return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except AttributeError:
        pass
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
    return int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))  # before driver 535


def _ecc(kind: int) -> Callable[[Any], int]:
    return lambda handle: int(
        pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC)
    )


def _nvlink(what: str) -> Callable[[Any], int]:
    """The sum over all links that are up."""

    def total(handle: Any) -> int:
        counts = []
        for link in range(_MOST_LINKS):
            try:
                if not pynvml.nvmlDeviceGetNvLinkState(handle, link):
                    continue
            except pynvml.NVMLError as error:
                if link and error.value == pynvml.NVML_ERROR_INVALID_ARGUMENT:
                    break  # there are no more
                raise
            counts.append(_of_link(handle, link, what))
        if not counts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return sum(counts)

    return total


def _of_link(handle: Any, link: int, what: str) -> int:
    try:
        return _field(handle, _LINK_FIELDS[what], link)
    except pynvml.NVMLError as error:
        if error.value in _LOST:
            raise
    counters = _LINK_COUNTERS[what]
    return sum(int(pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, link, one)) for one in counters)


def _threshold(which: int) -> Callable[[Any], int]:
    return lambda handle: int(pynvml.nvmlDeviceGetTemperatureThreshold(handle, which))


def _clock(kind: int) -> Callable[[Any], int]:
    return lambda handle: int(pynvml.nvmlDeviceGetClockInfo(handle, kind))


def _rate(direction: int) -> Callable[[Any], int]:
    return lambda handle: int(pynvml.nvmlDeviceGetPcieThroughput(handle, direction))


#: What a card is and where its limits lie: asked once.
CARD: tuple[Call, ...] = (
    ("name", lambda handle: pynvml.nvmlDeviceGetName(handle)),
    ("sm_max_mhz", lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    (
        "memory_max_mhz",
        lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    ),
    ("slowdown_c", _threshold(1)),
    ("shutdown_c", _threshold(0)),
    ("memory_max_c", _threshold(2)),
    ("pcie_gen_max", lambda handle: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
    ("pcie_width_max", lambda handle: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
)

#: What only grows: asked at the start and at the end. Error counts are since the driver was loaded.
COUNTERS: tuple[Call, ...] = (
    ("ecc_corrected", _ecc(0)),
    ("ecc_uncorrected", _ecc(1)),
    ("pcie_replays", lambda handle: pynvml.nvmlDeviceGetPcieReplayCounter(handle)),
    ("nvlink_replays", _nvlink("replays")),
    ("nvlink_recoveries", _nvlink("recoveries")),
    ("nvlink_crc", _nvlink("crc")),
    ("nvlink_tx_kib", lambda handle: _field(handle, _NVLINK_TX_KIB, _ALL_LINKS)),
    ("nvlink_rx_kib", lambda handle: _field(handle, _NVLINK_RX_KIB, _ALL_LINKS)),
)

#: Asked again and again.
SAMPLE: tuple[Call, ...] = (
    ("reasons", _reasons),
    ("sm_mhz", _clock(1)),
    ("memory_mhz", _clock(2)),
    ("power_w", lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
    ("power_limit_w", lambda handle: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
    ("gpu_c", lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
    ("memory_c", lambda handle: _field(handle, _MEMORY_TEMP)),
    ("margin_c", lambda handle: pynvml.nvmlDeviceGetMarginTemperature(handle)),
    ("utilization_percent", lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
    (
        "memory_utilization_percent",
        lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).memory,
    ),
    ("memory_used_bytes", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).used),
    ("performance_state", lambda handle: pynvml.nvmlDeviceGetPerformanceState(handle)),
    ("pcie_gen", lambda handle: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
    ("pcie_width", lambda handle: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
    # KB/s, measured by the driver over 20 ms.
    ("pcie_tx_kbps", _rate(pynvml.NVML_PCIE_UTIL_TX_BYTES)),
    ("pcie_rx_kbps", _rate(pynvml.NVML_PCIE_UTIL_RX_BYTES)),
)
