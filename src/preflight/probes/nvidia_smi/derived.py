"""Facts of a GPU that follow from others; what follows from a missing value is that Missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from preflight.model import NOT_IN_INPUT, Known, Missing

#: Fact ("pcie.width") -> value.
Facts = dict[str, Known[Any]]

#: What a virtual GPU leaves to its host: it prints N/A or 0.
_VIRTUAL = ("temperature.", "clocks.", "power.", "pcie.")
#: How the name of a virtual GPU ends, in a guest only: "GRID T4-16Q", "NVIDIA A100-1-5CME",
#: "M10-2B4" (NVIDIA vGPU software, "Virtual GPU Types": memory in GB, then its series).
_GUEST = re.compile(r".{1,80}-\d{1,3}(?:[ABCQ]\d?|CME)")
_OF_HOST = Missing("not-applicable", "a virtual GPU does not report it")
_RELATIVE = Missing("not-applicable", "this card gives its limits as T.Limit, not in degrees")


def name_guest(facts: Facts) -> None:
    """A table does not tell of virtualization, but the card's name does."""
    product = facts["product"]
    guest = isinstance(product, str) and _GUEST.fullmatch(product)
    if guest and facts["virtualization"] is NOT_IN_INPUT:
        facts["virtualization"] = "VGPU"


def leave_to_host(facts: Facts) -> None:
    if facts["virtualization"] != "VGPU":
        return
    for fact, value in facts.items():
        none = value == 0 or (isinstance(value, Missing) and value.kind == "not-applicable")
        if none and fact.startswith(_VIRTUAL):
            facts[fact] = _OF_HOST


def _worst(*values: Known[Any]) -> Missing:
    """Of several missing values the one that a person must know of."""
    gone = [value for value in values if isinstance(value, Missing)]
    order = {"not-applicable": 1, "not-in-input": 2}
    return min(gone, key=lambda missing: order.get(missing.kind, 0))


def _combine(do: Callable[[Any, Any], Any], a: Known[Any], b: Known[Any]) -> Known[Any]:
    return _worst(a, b) if isinstance(a, Missing) or isinstance(b, Missing) else do(a, b)


def _difference(a: Known[int], b: Known[int]) -> Known[int]:
    return _combine(lambda x, y: x - y, a, b)


def _limit_or_relative(name: str) -> Callable[[Facts], Known[Any]]:
    def derive(facts: Facts) -> Known[Any]:
        relative = not isinstance(facts["temperature.slowdown_tlimit_c"], Missing)
        limit = facts[name]
        return _RELATIVE if limit == NOT_IN_INPUT and relative else limit

    return derive


def _margin(facts: Facts) -> Known[int]:
    """Degrees left to the slowdown point. T.Limit is the distance to the maximum operating
    temperature, and the slowdown point lies that far beyond it (-2 C: two degrees)."""
    relative = _difference(facts["temperature.tlimit_c"], facts["temperature.slowdown_tlimit_c"])
    absolute = _difference(facts["temperature.slowdown_c"], facts["temperature.gpu_c"])
    for margin in (relative, absolute):
        if not isinstance(margin, Missing):
            return margin
    return _worst(relative, absolute)


def _percent(draw: float, limit: float) -> Known[float]:
    return 100 * draw / limit if limit > 0 else Missing("unreadable", "the enforced limit is 0 W")


def _mib(value: Known[int]) -> Known[int]:
    return value if isinstance(value, Missing) else value >> 20


#: Busy from here on: below, a job waits for something at times, and its GPUs cool down.
_BUSY_PERCENT = 90
_BETWEEN = Missing("not-applicable", "it is neither idle nor at full work")


def _what(missing: Missing) -> str:
    return "is N/A" if missing.kind == "not-applicable" else f"({missing.text})"


def _load(facts: Facts) -> Known[str]:
    """Idle where nothing ran and the driver says so, by the reason for its clocks or by a state
    from P8 on, in which a GPU rests."""
    busy, state = facts["utilization_percent"], facts["performance_state"]
    if isinstance(busy, Missing):
        return Missing(busy.kind, f"the load is not known: utilisation {_what(busy)}")
    if busy >= _BUSY_PERCENT:
        return "busy"
    rests = isinstance(state, str) and state.lstrip("P").isdigit() and int(state.lstrip("P")) >= 8
    return "idle" if busy == 0 and (facts["throttle.idle"] is True or rests) else _BETWEEN


#: fact -> how it follows from the others; later ones may use earlier ones.
DERIVED: dict[str, Callable[[Facts], Known[Any]]] = {
    "temperature.slowdown_c": _limit_or_relative("temperature.slowdown_c"),
    "temperature.memory_max_c": _limit_or_relative("temperature.memory_max_c"),
    "temperature.margin_c": _margin,
    "temperature.memory_margin_c": lambda facts: _difference(
        facts["temperature.memory_max_c"], facts["temperature.memory_c"]
    ),
    "power.limit_percent": lambda facts: _combine(
        _percent, facts["power.draw_w"], facts["power.limit_w"]
    ),
    "load": _load,
    "memory.total_mib": lambda facts: _mib(facts["memory.total_bytes"]),
    "retired.total_pages": lambda facts: _combine(
        lambda single, double: single + double,
        facts["retired.single_bit"],
        facts["retired.double_bit"],
    ),
}

#: fact -> the facts whose line shows it, best first.
SHOWN_BY: dict[str, tuple[str, ...]] = {
    "temperature.margin_c": ("temperature.tlimit_c", "temperature.gpu_c"),
    "temperature.memory_margin_c": ("temperature.memory_c",),
    "power.limit_percent": ("power.draw_w",),
    "throttle.hw_thermal_more_s": ("throttle.hw_thermal_s",),
    "throttle.hw_power_brake_more_s": ("throttle.hw_power_brake_s",),
    "load": ("utilization_percent",),
    "memory.total_mib": ("memory.total_bytes",),
    "memory.unexplained_mib": ("memory.used_bytes",),
    "retired.total_pages": ("retired.single_bit", "retired.double_bit"),
}
