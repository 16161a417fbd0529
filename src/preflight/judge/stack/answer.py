"""What the judges of the stack share: what is missing, what shows it, how a result is made."""

from __future__ import annotations

from typing import Any

from preflight.facts.host import Host
from preflight.facts.stack_pieces import Stack
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

#: "Somebody else's result tells it", "it has none": no fault of this check.
NONE = "none"


def unknown(stack: Stack, *names: str) -> Missing | None:
    """Why one of these pieces is not known; one that could not be read before one not told."""
    found = [value for name in names if isinstance(value := getattr(stack, name), Missing)]
    return min(found, key=lambda missing: missing.kind == "not-in-input", default=None)


def text(stack: Stack, name: str) -> str:
    """The version of a piece; empty where it is not known or there is none."""
    value = getattr(stack, name)
    return value if isinstance(value, str) and value != NONE else ""


def shown(stack: Stack, *names: str) -> tuple[Evidence, ...]:
    """The lines that told these pieces."""
    found = [stack.told_by[name] for name in names if name in stack.told_by]
    return tuple(Evidence(one.probe, line=one.line) for one in dict.fromkeys(found))


def skip(host: Host, check: Check, reason: str, measured: Any = None) -> Result:
    """Not for this host, and why."""
    return result(check, host.name, Status.SKIP, measured, reason=reason)


def undetermined_for(host: Host, check: Check, missing: Missing) -> Result:
    """Not known, and why."""
    return undetermined(check, host.name, missing)
