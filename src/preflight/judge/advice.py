"""Advice as it is typed on this host: with the value in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from preflight.judge.conditions import holds
from preflight.judge.operators import NUMERIC, OPERATORS
from preflight.model import Check
from preflight.writable import KINDS, UNLIMITED


def typed(check: Check) -> tuple[str, ...]:
    """The steps of a check, with the value that it sets in place of VALUE."""
    if not check.set:
        return check.fix
    value = value_of(check)
    return tuple(step.replace("VALUE", value) for step in check.fix)


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
