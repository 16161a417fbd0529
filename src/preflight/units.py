"""Sizes, rates, durations and numbers, read and printed; the only place that tells GiB from GB."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from preflight.errors import UsageError

_PREFIXES = "KMGTPE"
_NUMBER = r"(\d{1,18}(?:\.\d{1,9})?)"
_SIZE = re.compile(_NUMBER + r"\s*(?:([kmgtpe])(i?))?(b?)", re.IGNORECASE)
_RATE = re.compile(_NUMBER + r"\s*(?:([KMGTPEkmgtpe])(i?))?(B|b|bit)(?:/s|ps)")
_DURATION_PART = re.compile(
    r"(\d{1,12}(?:\.\d{1,9})?)\s*(us|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d|weeks?|w)",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(\d{1,18}(?:\.\d{1,9})?(?:[eE]\+?\d{1,3})?)\s*([KMBTkmbt]?)")
_MANY = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_STEPS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def number(value: float, digits: int = 3) -> str:
    """A number for people: whole numbers in full, others with `digits` significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_bytes(text: str) -> int:
    """`64MiB`, `1.5 GB`, `4k`, `4096` in bytes; raises UsageError.

    A bare letter counts in 1024, as fio, dd and nccl-tests take it; with a B it counts in 1000,
    with iB in 1024.
    """
    match = _SIZE.fullmatch(text.strip())
    # A capital before a small b, as in 400 Gb, is how the makers of networks write bits.
    if match is None or (match[4] == "b" and match[2] and match[2].isupper()):
        raise UsageError(
            f"{text!r} is not a size in bytes",
            "write a number and a unit: 64KiB, 1.5GB, 10G (G alone means GiB)",
        )
    binary = bool(match[3]) or not match[4]
    return round(Decimal(match[1]) * _factor(match[2], 1024 if binary else 1000))


def parse_count(text: str) -> float:
    """`7e9`, `7B`, `2T`, `1,000,000`: how many, in steps of 1000; raises UsageError."""
    match = _COUNT.fullmatch(text.strip().replace(",", ""))
    count = float(match[1]) * _MANY[match[2].upper()] if match else 0.0
    if not 0 < count < math.inf:
        raise UsageError(f"{text!r} is not a count", "write a number above 0: 7e9, 7B, 2T")
    return count


def format_bytes(count: float, *, decimal: bool = False) -> str:
    """`79.6 GiB`, or with `decimal` `85.5 GB`."""
    value, prefix = _scaled(count, 1000 if decimal else 1024)
    middle = "i" if prefix and not decimal else ""
    return f"{number(value)} {prefix}{middle}B"


def parse_rate(text: str) -> float:
    """`25 GB/s`, `1.5GiB/s`, `400 Gb/s`, `400Gbps` in bytes per second; raises UsageError."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a rate",
            "write bytes as 25GB/s or 25GiB/s, bits as 400Gb/s (a capital B is a byte)",
        )
    rate = Decimal(match[1]) * _factor(match[2], 1024 if match[3] else 1000)
    return float(rate if match[4] == "B" else rate / 8)


def format_rate(bytes_per_s: float, *, bits: bool = False) -> str:
    """`25 GB/s`, or with `bits` `200 Gb/s`; always in steps of 1000, as links are sold."""
    value, prefix = _scaled(bytes_per_s * 8 if bits else bytes_per_s, 1000)
    return f"{number(value)} {prefix}{'b' if bits else 'B'}/s"


def parse_duration(text: str) -> float:
    """`5m`, `72h`, `1h30m`, `2 d 3 h`, `250ms`, or seconds without a unit; raises UsageError."""
    told = text.strip()
    if re.fullmatch(_NUMBER, told):
        return float(told)
    parts = list(_DURATION_PART.finditer(told))
    rest = _DURATION_PART.sub("", told).strip()
    units = [_unit_of_time(part[2]) for part in parts]
    if not parts or rest or len(set(units)) < len(units):
        raise UsageError(
            f"{text!r} is not a duration", "write a number and a unit: 90s, 5m, 1h30m, 3d"
        )
    return math.fsum(
        float(part[1]) * _SECONDS[unit] for part, unit in zip(parts, units, strict=True)
    )


def format_duration(seconds: float) -> str:
    """The two largest units that matter: `2 d 3 h`, `5 min 3 s`, `1.9 s`, `250 ms`."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if seconds < 1:
        scale, unit = (1e3, "ms") if seconds >= 1e-3 or not seconds else (1e6, "us")
        return "0 s" if not seconds else f"{number(float(seconds * scale))} {unit}"
    if seconds < 59.95:
        return f"{number(float(seconds))} s"
    if not math.isfinite(seconds):
        return str(seconds)
    return _in_steps(round(seconds))


def _in_steps(total: int) -> str:
    # Rounded to the smaller of the two units first: 23 h 59 min 59 s is one day.
    at = next(i for i, (_, size) in enumerate(_STEPS) if total >= size)
    grain = _STEPS[min(at + 1, len(_STEPS) - 1)][1]
    total = (total + grain // 2) // grain * grain
    at = next(i for i, (_, size) in enumerate(_STEPS) if total >= size)
    words = []
    for unit, size in _STEPS[at : at + 2]:
        count, total = divmod(total, size)
        if count:
            words.append(f"{count:,} {unit}")
    return " ".join(words)


def _unit_of_time(word: str) -> str:
    lower = word.lower()
    return lower if lower in ("us", "ms") else lower[0]


def _factor(prefix: str | None, base: int) -> int:
    return base ** (_PREFIXES.index(prefix.upper()) + 1) if prefix else 1


def _scaled(value: float, base: int) -> tuple[float, str]:
    step = 0
    while abs(value) >= base and step < len(_PREFIXES):
        value /= base
        step += 1
    return value, ("", *_PREFIXES)[step]
