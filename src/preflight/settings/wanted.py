"""Results that are no pass -> what to write so that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from preflight.judge.conditions import holds
from preflight.judge.operators import NUMERIC, OPERATORS, shown
from preflight.model import Check, Result, Status
from preflight.writable import UNLIMITED, VALUE

KINDS = ("sysctl", "sysfs", "limit")


class Change(Struct, frozen=True):
    """One parameter and the value that it is to have."""

    kind: str  # sysctl | sysfs | limit
    name: str  # net.core.somaxconn
    value: str
    why: str = ""
    current: str = ""  # as the report shows it
    check: str = ""


class LeftOut(Struct, frozen=True):
    """A parameter that is not to be set on a host, or cannot be, and why."""

    name: str
    reason: str


class Wanted(Struct, frozen=True):
    """What one host needs. `unknown`: why nobody knows."""

    changes: tuple[Change, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    unknown: str = ""


def wanted(checks: Iterable[Check], results: Iterable[Result]) -> Wanted:
    """What of one host's results can be changed: those of checks with the key `set`."""
    settable = {check.id: check for check in checks if check.set}
    found: dict[tuple[str, str], Change] = {}
    left: dict[str, LeftOut] = {}
    for one in results:
        check = settable.get(one.check)
        if check is None or one.status is Status.PASS:
            continue
        kind, name = target(check)
        value = value_of(check)
        if one.status not in (Status.WARN, Status.FAIL):
            left[name] = LeftOut(name, one.reason)
        elif not VALUE.fullmatch(value):
            left[name] = LeftOut(name, f"{value!r} is no value that can be written")
        else:
            found[kind, name] = Change(kind, name, value, check.why, shown(one.measured), check.id)
    changes = tuple(sorted(found.values(), key=lambda one: (KINDS.index(one.kind), one.name)))
    return Wanted(changes, tuple(left.values()))


def by_reason(left: Iterable[LeftOut]) -> dict[str, list[str]]:
    """The reasons, each with the names that it holds for."""
    names: dict[str, list[str]] = {}
    for one in left:
        names.setdefault(one.reason, []).append(one.name)
    return names


def target(check: Check) -> tuple[str, str]:
    """The kind and the name of what the check's `set` writes."""
    return next((kind, check.set[kind]) for kind in KINDS if kind in check.set)


def value_of(check: Check) -> str:
    """The value to write: the one that is declared as far as it passes the check, for a user or a
    profile may have changed the threshold; else the threshold itself."""
    declared: Mapping[str, Any] = check.warn_unless or check.fail_unless
    ((operator, argument),) = declared.items()
    threshold = _text(argument)
    value = check.set.get("value", "")
    if "THRESHOLD" in value:
        return value.replace("THRESHOLD", threshold)
    numeric = operator in NUMERIC or check.fact.endswith(".number")
    as_read = _number(value) if numeric else value
    passes = value == UNLIMITED or (value and _passes(operator, as_read, argument))
    return value if passes else threshold


def _passes(operator: str, value: Any, argument: Any) -> bool:
    known = operator in OPERATORS and not OPERATORS[operator].many
    return known and not isinstance(argument, dict) and holds(value, operator, argument)


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


def _text(argument: Any) -> str:
    """A threshold as the kernel reads it; of several values the first."""
    if isinstance(argument, Sequence) and not isinstance(argument, str):
        return _text(argument[0]) if argument else ""
    if isinstance(argument, bool):
        return str(int(argument))
    if isinstance(argument, float) and argument.is_integer():
        return str(int(argument))
    return str(argument)
