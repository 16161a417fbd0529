"""Whether a check is for a host (`when`) and for one of its elements (`where`), and how values are
said in its results."""

from __future__ import annotations

from functools import cache
from typing import Any

from preflight.facts.host import Host
from preflight.judge import paths
from preflight.judge.alike import as_number, is_number, wrong_type
from preflight.judge.operators import NUMERIC, OPERATORS, shown
from preflight.judge.paths import Reached
from preflight.model import STATUS_OF_MISSING, Check, Missing, Scalar, Status
from preflight.units import format_bytes, format_duration

#: Each path is parsed once.
parsed = cache(paths.parse)
#: Sizes from here on are said in GiB or TiB: who compares them counts modules.
_LARGE_BYTES = 1 << 30


def not_for(host: Host, check: Check) -> str | Missing:
    """Why the check is not for this host; empty where it is, Missing where that is not known or
    does not apply."""
    if check.host_only and isinstance(host.container, str) and host.container != "none":
        return Missing("not-applicable", "belongs to the host, not to a container")
    for text, wanted in () if check.row.get("stated") else check.when.items():
        value = paths.reach(host, parsed(text))[0].value
        if isinstance(value, Missing):
            return value
        if not _condition(value, wanted):
            return f"only where {text} is {_phrase(wanted)}; here it is {shown(value)}"
    return ""


def left_out(check: Check, one: Reached) -> str | Missing:
    """Why `where` leaves this element out; empty where it does not."""
    stated = check.row.get("stated")  # by the user, for every element
    for text, wanted in () if stated or one.element is None else check.where.items():
        value = below(one.element, text)
        if isinstance(value, Missing):
            if _is_not(wanted) and STATUS_OF_MISSING[value.kind] is Status.SKIP:
                continue  # what the device does not have, it has not with this value either
            return value
        if not _condition(value, wanted):
            return f"only where {text[1:]} is {_phrase(wanted)}; here it is {shown(value)}"
    return ""


def below(element: Any, text: str) -> Any:
    """The value at a path that begins with a dot: below an element."""
    return paths.value_at(element, tuple(text[1:].split(".")))


def holds(value: Any, operator: str, argument: Any) -> bool:
    """Whether a value is as one operator wants it."""
    if operator == "present":
        return isinstance(value, Missing) is not argument
    if operator in NUMERIC:
        value, argument = as_number(value), as_number(argument)
        if wrong_type(value, argument):
            return False
    return OPERATORS[operator].holds(value, argument)


def short(value: Any) -> Scalar:
    """The value as a report shows it: a list by its parts, never a record printed whole."""
    if isinstance(value, Missing):
        return None
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        named = [getattr(part, "name", part) for part in value]
        return shown(named) if named else "none"
    return str(value)


def with_unit(check: Check, value: Any) -> str:
    """A value within a text, where no unit can stand behind it."""
    unit = parsed(check.fact).unit
    if unit == "s" and isinstance(value, (int, float)):
        return format_duration(value)
    if unit == "bytes" and is_number(value) and value >= _LARGE_BYTES:
        return format_bytes(value)
    return f"{shown(value)} {unit}" if unit else shown(value)


def _condition(value: Any, wanted: Any) -> bool:
    ((name, argument),) = _operator(wanted).items()
    return holds(value, name, argument)


def _phrase(wanted: Any) -> str:
    ((name, argument),) = _operator(wanted).items()
    return OPERATORS[name].phrase(argument)


def _operator(wanted: Any) -> dict[str, Any]:
    return wanted if isinstance(wanted, dict) else {"equals": wanted}


def _is_not(wanted: Any) -> bool:
    return isinstance(wanted, dict) and "not" in wanted
