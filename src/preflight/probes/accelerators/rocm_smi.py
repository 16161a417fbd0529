"""AMD GPUs, from the JSON of rocm-smi (rocm_smi_lib's python_smi_tools; keys differ in case by
version)."""

from __future__ import annotations

import json
import re
from typing import Any

from preflight.errors import ParseError
from preflight.facts.accelerators import Accelerator, AcceleratorAnswer
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "rocm-smi"
_ASK = ["rocm-smi", "--showproductname", "--showbus", "--showtemp", "--showpower",
        "--showdriverversion", "--json"]  # fmt: skip
_CARD = re.compile(r"card(\d{1,4})", re.ASCII)
_NO_HEALTH = Missing("not-applicable", "rocm-smi tells no health in one word")
_ABSENT = Missing("not-applicable", "rocm-smi does not tell it of this GPU")
#: Field -> its keys in small letters, best first.
_KEYS = {
    "product": ("card series", "card model", "card sku"),
    "address": ("pci bus",),
    "temperature_c": ("temperature (sensor junction) (c)", "temperature (sensor edge) (c)"),
    "power_w": (
        "current socket graphics package power (w)", "average graphics package power (w)",
    ),
}  # fmt: skip


@probe(_PROBE, _ASK, timeout_s=15)
def rocm_smi(text: str) -> AcceleratorAnswer:
    """One object: card0, card1 ..., and `system` with the driver. Warnings may stand before it."""
    start = text.find("{")
    try:
        document = json.loads(text[start:]) if start >= 0 else None
    except (ValueError, RecursionError) as error:
        raise ParseError(f"expected JSON: {error}", text.count("\n", 0, start) + 1) from None
    if not isinstance(document, dict):
        raise ParseError(f"expected a JSON object, got {text.strip()[:80]!r}", 1)
    found = [
        _card(name, card, text)
        for name, card in document.items()
        if _CARD.fullmatch(name) and isinstance(card, dict)
    ]
    if not found:
        raise ParseError("expected card0, card1 ... in the JSON", 1)
    system = document.get("system")
    version = _value(system if isinstance(system, dict) else {}, ("driver version",))
    return AcceleratorAnswer(tuple(found), version, probe=_PROBE)


def _card(name: str, card: dict[str, Any], text: str) -> Accelerator:
    told: dict[str, Any] = {field: _value(card, keys) for field, keys in _KEYS.items()}
    for field in ("temperature_c", "power_w"):
        told[field] = _number(told[field])
    line = text.count("\n", 0, text.find(f'"{name}"')) + 1
    return Accelerator(name, "AMD", **told, health=_NO_HEALTH, line=line, probe=_PROBE)


def _value(card: dict[str, Any], keys: tuple[str, ...]) -> Known[str]:
    lower = {key.lower(): str(value).strip() for key, value in card.items()}
    told = (lower[key] for key in keys if lower.get(key, "N/A") not in ("", "N/A"))
    return next(told, _ABSENT)


def _number(value: Known[str]) -> Known[float]:
    if isinstance(value, Missing):
        return value
    try:
        return float(value)
    except ValueError:
        return Missing("unreadable", f"{value[:40]!r} is no number")
