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


def release(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: 2.10.0a0+git1 -> (2, 10, 0); () where there is none.
    What follows them (a pre-release, the local part of PEP 440) says nothing of the release."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version.strip())
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def is_of(version: str, beginning: str) -> bool:
    """Whether it is a version of a release: 2.10.1 is of 2.10 and not of 2.1."""
    wanted = release(beginning)
    return bool(wanted) and release(version)[: len(wanted)] == wanted


def at_least(version: str, least: str) -> bool:
    """Whether a version is not older than another, by their releases."""
    mine, other = release(version), release(least)
    width = max(len(mine), len(other))
    return _filled(mine, width) >= _filled(other, width)


def _filled(parts: tuple[int, ...], width: int) -> tuple[int, ...]:
    return parts + (0,) * (width - len(parts))
