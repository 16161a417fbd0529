"""The operators of checks: is the value as wanted, and how a person says what was wanted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median, median_high, median_low
from typing import Any

from msgspec import Struct

from preflight.judge.alike import as_stated, is_number, is_stated, parts, same, within
from preflight.judge.versions import is_version, version_holds
from preflight.model import Missing
from preflight.units import number as shown_number


class Operator(Struct, frozen=True):
    """`accepts` holds the argument at load; `holds` judges; `phrase` says what was expected.

    `many`: judges a list of values at once (needs `across`) and names the positions that are off.
    """

    accepts: Callable[[Any], bool]
    wants: str
    holds: Callable[[Any, Any], bool]
    phrase: Callable[[Any], str]
    many: bool = False


def shown(value: Any) -> str:
    """A value as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return shown_number(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(part) for part in value) if value else "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(part)}" for key, part in value.items())
    return str(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_scalar_or_list(value: Any) -> bool:
    return _is_list(value) or isinstance(value, (bool, int, float, str))


def _is_pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except re.error:
        return False


def _is_uniform(value: Any) -> bool:
    """True; or how far apart, the value itself, or both."""
    if not isinstance(value, dict):
        return value is True
    fraction = value.get("within", 0.5)
    fits = is_number(fraction) and 0 < fraction < 1
    return fits and bool(value) and set(value) <= {"within", "value"}


def _all_alike(wanted: Any) -> str:
    if is_stated(wanted):
        return shown(wanted["value"])
    return f"all within {within(wanted):.0%}" if within(wanted) else "all the same"


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _is_outlier(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"mad", "at_least", "of"}
        and all(map(is_number, value.values()))
    )


def majority(values: Sequence[Any]) -> Any | None:
    """The value that more than half of them have; None where there is none ("mixed")."""
    value, count = Counter(map(repr, values)).most_common(1)[0]
    if count * 2 <= len(values) and len(set(map(repr, values))) > 1:
        return None
    return next(each for each in values if repr(each) == value)


def off_majority(values: Sequence[Any], wanted: Any) -> list[int]:
    """Positions that differ from the majority, all of them where there is none; or from the value
    that is stated."""
    if is_stated(wanted):
        return [at for at, value in enumerate(values) if not as_stated(value, wanted)]
    found = sorted(parts(values, within(wanted)), key=len, reverse=True)
    if len(found) < 2:
        return []
    odd = found[1:] if 2 * len(found[0]) > len(values) else found
    return sorted(at for part in odd for at in part)


def outliers(values: Sequence[float], wanted: dict[str, float]) -> list[int]:
    """Positions beyond `mad` median absolute deviations *and* `at_least` (a fraction) off the
    median, of at least `of` values; the factor 1.4826 makes the MAD comparable with a standard
    deviation (Hampel 1974, doi 10.1080/01621459.1974.10482962)."""
    if len(values) < wanted["of"]:
        return []
    middle = median(values)
    mad = 1.4826 * median(abs(value - middle) for value in values)
    return [
        at
        for at, value in enumerate(values)
        if abs(value - middle) > wanted["mad"] * mad
        and abs(value - middle) > wanted["at_least"] * abs(middle)
    ]


def centre(values: Sequence[float]) -> tuple[float, float]:
    """The two values in the middle, which are one where their number is odd: two halves that
    differ have a median at which nobody is."""
    return median_low(values), median_high(values)


def far(values: Sequence[float], distance: float) -> list[int]:
    """Positions farther than `distance` off the median, in the values' own unit. Of two halves
    that are farther than that from each other all are."""
    middle = centre(values)
    return [at for at, value in enumerate(values) if max(abs(value - m) for m in middle) > distance]


def off_centre(values: Sequence[float], wanted: Sequence[float]) -> list[int]:
    """All positions where no value in the middle is between two numbers, else none."""
    low, high = wanted
    if any(low <= middle <= high for middle in centre(values)):
        return []
    return list(range(len(values)))


def unknown(values: Sequence[Any], _wanted: Any) -> list[int]:
    """Positions without a value."""
    return [at for at, value in enumerate(values) if isinstance(value, Missing)]


#: Operators over many values: the positions that are off.
OFF: dict[str, Callable[[Sequence[Any], Any], list[int]]] = {
    "uniform": off_majority,
    "outlier": outliers,
    "near": far,
    "median": off_centre,
    "told": unknown,
}

OPERATORS: dict[str, Operator] = {
    "equals": Operator(
        _is_scalar_or_list, "a value or a list", same, shown
    ),
    "not": Operator(
        _is_scalar_or_list,
        "a value or a list",
        lambda value, wanted: not same(value, wanted),
        lambda wanted: f"anything but {shown(wanted)}",
    ),
    "one_of": Operator(
        _is_list,
        "a list",
        lambda value, wanted: any(same(value, each) for each in wanted),
        lambda wanted: f"one of {shown(wanted)}" if len(wanted) > 1 else shown(wanted),
    ),
    "contains": Operator(
        _is_scalar_or_list,
        "a value or a list",
        lambda value, wanted: all(
            each in value for each in (wanted if isinstance(wanted, list) else [wanted])
        ),
        lambda wanted: f"contains {shown(wanted)}",
    ),
    "subset_of": Operator(
        lambda value: value == [] or _is_list(value),
        "a list",
        lambda value, wanted: all(any(same(each, one) for one in wanted) for each in value),
        lambda wanted: f"nothing but {shown(wanted)}" if wanted else "none",
    ),
    "min": Operator(
        is_number, "a number", lambda value, wanted: bool(value >= wanted),
        lambda wanted: f"at least {shown(wanted)}",
    ),
    "max": Operator(
        is_number, "a number", lambda value, wanted: bool(value <= wanted),
        lambda wanted: f"at most {shown(wanted)}",
    ),
    "between": Operator(
        _is_range, "[low, high]", lambda value, wanted: bool(wanted[0] <= value <= wanted[1]),
        lambda wanted: f"{shown(wanted[0])} to {shown(wanted[1])}",
    ),
    "matches": Operator(
        _is_pattern,
        "a regular expression",
        lambda value, wanted: isinstance(value, str) and bool(re.fullmatch(wanted, value)),
        lambda wanted: f"matches {wanted}",
    ),
    "without": Operator(
        _is_pattern,
        "a regular expression",
        lambda value, wanted: isinstance(value, str) and not re.search(wanted, value, re.I),
        lambda _: "no state that means a fault",
    ),
    "length": Operator(
        lambda value: isinstance(value, int) and not isinstance(value, bool),
        "a whole number",
        lambda value, wanted: len(value) == wanted,
        lambda wanted: "none" if wanted == 0 else f"{wanted} of them",
    ),
    "present": Operator(
        lambda value: isinstance(value, bool),
        "true or false",
        lambda value, wanted: wanted is True,
        lambda wanted: "present" if wanted else "absent",
    ),
    "version": Operator(
        is_version, '">=1.2,<2"', version_holds, lambda wanted: f"version {wanted}"
    ),
    "uniform": Operator(
        _is_uniform,
        "true or {within: FRACTION}",
        lambda values, wanted: not off_majority(values, wanted),
        _all_alike,
        many=True,
    ),
    "outlier": Operator(
        _is_outlier,
        "{mad: N, at_least: FRACTION, of: N}",
        lambda values, wanted: not outliers(values, wanted),
        lambda wanted: f"within {shown(wanted['mad'])} MAD and {wanted['at_least']:.0%} of the "
        "median",
        many=True,
    ),
    "told": Operator(
        lambda value: value is True,
        "true",
        lambda values, wanted: not unknown(values, wanted),
        lambda _: "told by each host where most told it",
        many=True,
    ),
    "near": Operator(
        is_number,
        "a number",
        lambda values, wanted: not far(values, wanted),
        lambda wanted: f"within {shown(wanted)} of the median",
        many=True,
    ),
    "median": Operator(
        _is_range,
        "[low, high]",
        lambda values, wanted: not off_centre(values, wanted),
        lambda wanted: f"a median of {shown(wanted[0])} to {shown(wanted[1])}",
        many=True,
    ),
}  # fmt: skip

#: Operators whose value and argument must be numbers.
NUMERIC = frozenset({"min", "max"})
