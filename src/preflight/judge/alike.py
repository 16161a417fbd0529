"""Which of many values are alike: equal, or numbers that lie close together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from preflight.facts.system import UNLIMITED


def is_number(value: Any) -> bool:
    """Whether it is a number; yes and no are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_number(value: Any) -> Any:
    """A limit that is "unlimited" is more than any number; everything else stays what it is."""
    return math.inf if value == UNLIMITED else value


def same(value: Any, wanted: Any) -> bool:
    """Equal, and of one kind: `true` is not `1`, `"1"` is not `1`; 1 and 1.0 are the same."""
    if is_number(value) and is_number(wanted):
        return bool(value == wanted)
    if isinstance(value, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(value) == len(wanted) and all(map(same, value, wanted))
    return type(value) is type(wanted) and value == wanted


def wrong_type(value: Any, wanted: Any) -> bool:
    """Whether an operator that compares numbers was given something else."""
    return not (is_number(value) and is_number(wanted))


def within(argument: Any) -> float:
    """The fraction by which two values of `uniform` may differ and still be alike."""
    return float(argument.get("within", 0.0)) if isinstance(argument, dict) else 0.0


def is_stated(argument: Any) -> bool:
    """Whether `uniform` was given the value itself, in place of what most have."""
    return isinstance(argument, dict) and "value" in argument


def as_stated(value: Any, argument: dict[str, Any]) -> bool:
    """Whether a value is the stated one."""
    wanted, most = argument["value"], within(argument)
    if most and is_number(value) and is_number(wanted):
        return bool(abs(value - wanted) <= most * abs(wanted))
    return same(value, wanted)


def parts(values: Sequence[Any], most: float = 0.0) -> list[list[int]]:
    """The positions of values that are alike, each part in one list, smaller numbers first where
    `most` is given: numbers are sorted then, and cut where neighbours differ by more than that
    fraction of the larger one. Otherwise values are alike that are equal and of one type."""
    equal: dict[tuple[object, ...], list[int]] = {}
    numbers = [at for at, value in enumerate(values) if most and is_number(value)]
    close: list[list[int]] = []
    for at in sorted(numbers, key=values.__getitem__):
        value = values[at]
        if close and value - values[close[-1][-1]] <= most * abs(value):
            close[-1].append(at)
        else:
            close.append([at])
    for at in sorted(set(range(len(values))) - set(numbers)):
        # The types too: 1 and true are equal to Python.
        equal.setdefault((type(values[at]), repr(values[at])), []).append(at)
    return [*close, *equal.values()]
