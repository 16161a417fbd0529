"""The words and numbers of nvidia-smi turned into values, or into the reason why there is none.

Every reader takes one field's text and returns the value or a Missing; none raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from preflight.model import Known, Missing, MissingKind

# NVML's return codes in words (nvmlReturn_t in nvml.h; nvidia-smi prints nvmlErrorString), plus the
# words that nvidia-smi adds of its own. In lower case, without brackets.
_NOT_APPLICABLE = (
    "n/a",
    "not applicable",
    "not supported",
    "not available",
    "not available in wddm driver model",
    "not found",
    "function not found",
    "requested functionality has been deprecated",
    "deprecated",
)
_DENIED = ("insufficient permissions", "permission denied", "no permission")
# A GPU that says this of any field no longer answers: NVML_ERROR_GPU_IS_LOST. A sentence may follow
# ("Reboot the system to recover this GPU").
_LOST = ("gpu is lost",)
# NVML_ERROR_RESET_REQUIRED: the GPU is there, and the driver holds it back until it is reset.
_RESET = ("gpu requires reset", "gpu requires restart")
_ERRORS = (
    *_LOST,
    *_RESET,
    "unknown error",
    "err!",
    "error",
    "timeout",
    "uninitialized",
    "invalid argument",
    "insufficient size",
    "insufficient memory",
    "insufficient external power",
    "interrupt request issue",
    "corrupted inforom",
    "driver not loaded",
    "argument version mismatch",
    "the operating system has blocked the request",
    "gpu access blocked by the operating system",
    "internal error",
    "no data",
)
_ERROR_WORDS = frozenset(_ERRORS)
_KINDS: dict[str, MissingKind] = {
    **dict.fromkeys(_NOT_APPLICABLE, "not-applicable"),
    **dict.fromkeys(_DENIED, "denied"),
    **dict.fromkeys((*_ERRORS, "unknown"), "unreadable"),
}

_NUMBER = re.compile(r"(-?[0-9]{1,20})(\.[0-9]{1,9})?\s*([A-Za-z%()]*)")
_LANES = re.compile(r"x?([0-9]{1,2})x?", re.IGNORECASE)
_GENERATION = re.compile(r"(?:gen\s?)?([0-9])", re.IGNORECASE)
_PCI_ID = re.compile(r"(?:0x)?([0-9a-f]{8})", re.IGNORECASE)
_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-9a-f]))?", re.I)

# NVML_VALUE_NOT_AVAILABLE is -1 (nvml.h): printed unsigned, in 64 and 32 bits and as MiB.
_NO_VALUE = frozenset({"18446744073709551615", "4294967295", "17592186044415"})

_COUNT: dict[str, float] = {"": 1, "bank(s)": 1}
_CELSIUS: dict[str, float] = {"c": 1}
_PERCENT: dict[str, float] = {"%": 1}
_MEGAHERTZ: dict[str, float] = {"mhz": 1, "ghz": 1000, "khz": 0.001}
_SECONDS: dict[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1}
_WATTS: dict[str, float] = {"w": 1, "kw": 1000, "mw": 0.001}
# nvidia-smi counts in powers of two; drivers before 331 wrote MB for what is now MiB.
_BYTES: dict[str, float] = {
    "b": 1, "bytes": 1, "kib": 2**10, "kb": 2**10, "mib": 2**20, "mb": 2**20, "gib": 2**30,
    "gb": 2**30, "tib": 2**40, "tb": 2**40,
}  # fmt: skip
_FLAGS = {
    "yes": True, "no": False, "active": True, "not active": False, "true": True, "false": False,
}  # fmt: skip
_BANDWIDTH = {"full": False, "degraded": True}


@lru_cache(maxsize=4096)  # each value is looked at several times, and most GPUs say the same
def _words(text: str) -> str:
    return text.strip().strip("[]").rstrip(".").lower()


def missing_of(text: str) -> Missing | None:
    """Why `text` is no value, None where it may be one."""
    said = _words(text)
    kind = _KINDS.get(said)
    if kind is None and not said.startswith((*_LOST, *_RESET)):
        return None
    found = text.strip().strip("[]")
    if kind == "not-applicable":
        return Missing(kind, f"nvidia-smi says {found}")
    return Missing(kind or "unreadable", found)


def is_lost(text: str) -> bool:
    """Whether `text` says that the GPU no longer answers."""
    return _words(text).startswith(_LOST)


def needs_reset(text: str) -> bool:
    """Whether `text` says that the GPU answers again only after a reset."""
    return _words(text).startswith(_RESET)


def is_error(text: str) -> bool:
    """Whether `text` is an error in a value's place; plain "Unknown" is not, it may be a type."""
    said = _words(text)
    return said in _ERROR_WORDS or said.startswith((*_LOST, *_RESET))


def _unreadable(text: str, what: str) -> Missing:
    return Missing("unreadable", f"'{text.strip()[:60]}' is no {what}")


def _number(text: str, units: Mapping[str, float], what: str) -> Known[float]:
    """`text` in the unit whose factor is 1; a number without a fraction stays exact."""
    gone = missing_of(text)
    if gone is not None:
        return gone
    match = _NUMBER.fullmatch(text.strip())
    factor = units.get(match[3].lower()) if match else None
    if match is None or factor is None:
        return _unreadable(text, what)
    if match[1] in _NO_VALUE:
        return Missing("unreadable", f"{match[1]} stands for no value")
    return (float(match[1] + match[2]) if match[2] else int(match[1])) * factor


def _whole(text: str, units: Mapping[str, float], what: str) -> Known[int]:
    value = _number(text, units, what)
    return value if isinstance(value, Missing) else round(value)


def words(text: str) -> Known[str]:
    """Any text. Empty: the device has none (NVML returns an empty string then)."""
    return missing_of(text) or text.strip() or Missing("not-applicable", "empty in nvidia-smi")


def word_of(*known: str) -> Callable[[str], Known[str]]:
    """A reader of fields that have one of a few words. Any other is not a value: NVML's errors are
    words too, and new ones come with new drivers."""
    allowed = frozenset(known)

    def read(text: str) -> Known[str]:
        said = text.strip()
        return missing_of(text) or (said if said in allowed else _unreadable(text, "known word"))

    return read


switch = word_of("Enabled", "Disabled")


def count(text: str) -> Known[int]:
    """How many: "0", "192 bank(s)". Never negative, never broken."""
    value = _number(text, _COUNT, "count")
    if isinstance(value, Missing):
        return value
    return value if isinstance(value, int) and value >= 0 else _unreadable(text, "count")


def celsius(text: str) -> Known[int]:
    """Degrees; a distance to a limit (T.Limit) may be negative."""
    return _whole(text, _CELSIUS, "temperature in C")


def percent(text: str) -> Known[int]:
    return _whole(text, _PERCENT, "percentage")


def megahertz(text: str) -> Known[int]:
    return _whole(text, _MEGAHERTZ, "frequency in MHz")


def watts(text: str) -> Known[float]:
    value = _number(text, _WATTS, "power in W")
    return value if isinstance(value, Missing) else float(value)


def seconds(text: str) -> Known[float]:
    """Seconds from "90000000 us"."""
    value = _number(text, _SECONDS, "time")
    return value if isinstance(value, Missing) else float(value)


def bytes_of(text: str) -> Known[int]:
    """Bytes from "81559 MiB"."""
    return _whole(text, _BYTES, "amount of memory")


def lanes(text: str) -> Known[int]:
    """PCIe lanes from "16x"."""
    match = _LANES.fullmatch(text.strip())
    return int(match[1]) if match else missing_of(text) or _unreadable(text, "link width")


def generation(text: str) -> Known[int]:
    """PCIe generation from "4" or "Gen4"."""
    match = _GENERATION.fullmatch(text.strip())
    return int(match[1]) if match else missing_of(text) or _unreadable(text, "PCIe generation")


def flag(text: str) -> Known[bool]:
    """Yes or No, Active or Not Active."""
    value = _FLAGS.get(_words(text))
    return missing_of(text) or _unreadable(text, "yes or no") if value is None else value


def degraded(text: str) -> Known[bool]:
    """Whether a bandwidth is degraded: Full or Degraded."""
    value = _BANDWIDTH.get(_words(text))
    return missing_of(text) or _unreadable(text, "bandwidth state") if value is None else value


def pci_id(text: str) -> Known[str]:
    """Device and vendor, "0x233010de" from "233010DE" or "0x233010DE"."""
    match = _PCI_ID.fullmatch(text.strip())
    return "0x" + match[1].lower() if match else missing_of(text) or _unreadable(text, "PCI id")


def bus_id(text: str) -> str:
    """A PCI address as the facts write it: "00000000:1b:00.0"; what is none in lower case."""
    match = _BUS_ID.fullmatch(text.strip())
    if match is None:
        return text.strip().lower()
    domain, bus, device, function = match.groups("0")
    return f"{domain:>08}:{bus:>02}:{device:>02}.{function}".lower()
