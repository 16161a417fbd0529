"""What one check over the fleet compares, and how a value of it is said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.judge.conditions import parsed, with_unit
from preflight.judge.operators import OPERATORS, shown
from preflight.judge.peers import Group, Peer
from preflight.model import Check, Evidence


class Compared(Struct):
    """What one check compares. `total` hosts are in the report, `hosts` gave an answer; `unknown`:
    those of whom no value is known."""

    check: Check
    total: int
    hosts: tuple[str, ...]
    groups: list[Group]
    unknown: list[Peer]

    @property
    def across(self) -> list[Group]:
        """The groups that span hosts: within one host its own checks compare."""
        return [group for group in self.groups if len(group.hosts) > 1]


def wanted(check: Check, name: str, argument: Any) -> str:
    """What was expected; distances and values in the fact's own unit."""
    if name == "near":
        return f"within {with_unit(check, argument)} of the median"
    if name == "median":
        low, high = (with_unit(check, each) for each in argument)
        return f"a median of {low} to {high}"
    if name == "uniform" and isinstance(argument, dict) and "value" in argument:
        return with_unit(check, argument["value"])
    return OPERATORS[name].phrase(argument)


def span(check: Check, values: Sequence[Any]) -> str:
    """`91 C`, or `85 to 92 C` where they differ."""
    low, high = min(values), max(values)
    first, last = with_unit(check, low), with_unit(check, high)
    if first == last:
        return first
    unit = parsed(check.fact).unit
    # Either may be said in another unit than the fact's, such as minutes.
    both = unit and first == f"{shown(low)} {unit}" and last == f"{shown(high)} {unit}"
    return f"{shown(low) if both else first} to {last}"


def evidence(*shown_by: Sequence[Peer]) -> tuple[Evidence, ...]:
    """A line for each value, with the host that it is of: a value's line is read once."""
    found = []
    for peers in shown_by:
        lines = ((peer.host, peer.reading.evidence) for peer in peers if peer.reading.evidence)
        for host, seen in islice(lines, 1):
            found.append(replace(seen, text=f"{host}: {seen.text}"))
    return tuple(found)
