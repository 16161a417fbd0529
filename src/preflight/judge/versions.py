"""Versions, compared part by part as numbers: `>=525.60.13,<600`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d[\w.+-]*)\s*")


def is_version(value: Any) -> bool:
    """Whether it is a list of conditions on a version."""
    return isinstance(value, str) and all(map(_CLAUSE.fullmatch, value.split(",")))


def _parts(version: str) -> tuple[tuple[int, str], ...]:
    # '535.54.03' -> ((535, ''), (54, ''), (3, '')): compared as numbers, a letter after a number.
    return tuple(
        (int(digits), rest) for digits, rest in re.findall(r"(\d+)([a-z]*)", version.lower())
    )


def _compare_versions(left: str, right: str) -> int:
    a, b = _parts(left), _parts(right)
    width = max(len(a), len(b))
    padded_a, padded_b = (side + ((0, ""),) * (width - len(side)) for side in (a, b))
    return (padded_a > padded_b) - (padded_a < padded_b)


_COMPARISONS: dict[str, Callable[[int], bool]] = {
    ">=": lambda order: order >= 0,
    "<=": lambda order: order <= 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    ">": lambda order: order > 0,
    "<": lambda order: order < 0,
}


def version_holds(value: Any, wanted: str) -> bool:
    """Whether a version meets all of the conditions."""
    clauses = (_CLAUSE.fullmatch(part) for part in wanted.split(","))
    return isinstance(value, str) and all(
        clause and _COMPARISONS[clause[1]](_compare_versions(value, clause[2]))
        for clause in clauses
    )
