"""Operators: strict in type, and each seen to hold and to fail."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.judge.operators import OFF, OPERATORS, majority, outliers, shown
from preflight.model import Missing

TABLE: list[tuple[str, Any, Any, bool]] = [
    ("equals", 1, 1, True),
    ("equals", 1.0, 1, True),
    ("equals", True, 1, False),
    ("equals", 1, True, False),
    ("equals", "1", 1, False),
    ("equals", ["a", 1], ["a", 1], True),
    ("not", "Prohibited", "Prohibited", False),
    ("not", "Default", "Prohibited", True),
    ("not", True, 1, True),
    ("one_of", "P0", ["P0", "P1"], True),
    ("one_of", True, [1, 2], False),
    ("contains", "a,b", "b", True),
    ("contains", ("a", "b"), ["a", "c"], False),
    ("subset_of", ("a",), ["a", "b"], True),
    ("subset_of", ("a", "z"), ["a", "b"], False),
    ("min", 5, 5, True),
    ("min", 4.9, 5, False),
    ("max", 5, 5, True),
    ("max", 6, 5, False),
    ("between", 5, [1, 5], True),
    ("between", 0, [1, 5], False),
    ("matches", "v1.2", r"v\d+\.\d+", True),
    ("matches", "v1.2b", r"v\d+\.\d+", False),
    ("without", "Presence detected", "ierr|thermal trip", True),
    ("without", "IERR, Presence detected", "ierr|thermal trip", False),
    ("length", (), 0, True),
    ("length", ("x",), 0, False),
    ("version", "535.54.03", ">=525.60.13,<600", True),
    ("version", "525.9", ">=525.60.13", False),
    ("version", "2.14.3", ">=2.9", True),
    ("version", "600.1", "<600", False),
    ("version", "2.0", "==2", True),
    ("version", "2.1rc1", "!=2.1", True),
    ("uniform", [1, 1, 1], True, True),
    ("uniform", [1, 1, 2], True, False),
    ("uniform", [True, 1], True, False),
    ("uniform", [100, 101, 102], {"within": 0.02}, True),
    ("uniform", [100, 103, 100], {"within": 0.02}, False),
    ("uniform", ["a", "a"], {"value": "a"}, True),
    ("uniform", ["a", "a"], {"value": "b"}, False),
    ("uniform", [True], {"value": 1}, False),
    ("uniform", [100, 101], {"value": 102, "within": 0.02}, True),
    ("told", [True, True], True, True),
    ("told", [True, Missing("timeout", "30 s")], True, False),
    ("near", [0, 400], 300, False),
    ("near", [0, 0, 400, 400], 300, False),
    ("near", [0, 200], 300, True),
    ("median", [0, 400], [-10, 10], True),
    ("median", [390, 400], [-10, 10], False),
    ("outlier", [700, 702, 699, 701, 500], {"mad": 5, "at_least": 0.08, "of": 4}, False),
    ("outlier", [700, 702, 699, 701, 690], {"mad": 5, "at_least": 0.08, "of": 4}, True),
    ("outlier", [700, 500, 700], {"mad": 5, "at_least": 0.08, "of": 4}, True),
    ("near", [0, 1, 1, -9], 10, True),
    ("near", [3600, 3601, 0], 10, False),
    ("median", [3600, 0, 1], [-10, 10], True),
    ("median", [3600, 3601, 0], [-10, 10], False),
]


@pytest.mark.parametrize(("name", "value", "wanted", "holds"), TABLE)
def test_operator(name: str, value: Any, wanted: Any, holds: bool) -> None:
    assert OPERATORS[name].accepts(wanted)
    assert OPERATORS[name].holds(value, wanted) is holds


def test_every_operator_is_seen_to_hold_and_to_fail() -> None:
    seen = {(name, holds) for name, _, _, holds in TABLE}
    assert seen == {
        (name, holds) for name in OPERATORS if name != "present" for holds in (True, False)
    }


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("equals", None), ("equals", {}), ("equals", []), ("one_of", "x"), ("one_of", []),
        ("min", "5"), ("min", True), ("between", [1]), ("between", 5), ("matches", "("),
        ("length", 1.5), ("length", True), ("present", 1), ("version", "1.2"), ("version", 1.2),
        ("uniform", False), ("outlier", {"mad": 5}), ("subset_of", "x"),
        ("near", "10"), ("median", 10),
    ],
)  # fmt: skip
def test_arguments_that_mean_nothing_are_refused(name: str, argument: Any) -> None:
    assert not OPERATORS[name].accepts(argument)


def test_a_majority_names_those_that_differ_and_a_tie_is_mixed() -> None:
    assert majority(["a", "a", "b"]) == "a"
    assert majority(["a", "b"]) is None
    assert majority([True, True, 1]) is True
    assert OFF["uniform"](["a", "a", "b"], True) == [2]
    assert OFF["uniform"](["a", "b"], True) == [0, 1]


def test_an_outlier_needs_both_distances() -> None:
    tight = {"mad": 5, "at_least": 0.08, "of": 4}
    assert outliers([100, 100, 100, 100, 105], tight) == []  # far in MAD, near in share
    assert outliers([100, 100, 100, 100, 120], tight) == [4]


def test_what_is_far_off_is_named_and_a_median_is_everybodys() -> None:
    assert OFF["near"]([3600, 3601, 0], 10) == [2]
    assert OFF["near"]([0, 100], 10) == [0, 1]
    assert OFF["median"]([3600, 3601, 0], [-10, 10]) == [0, 1, 2]


def test_values_are_shown_as_a_person_writes_them() -> None:
    assert shown(True) == "yes"
    assert shown(()) == "none"
    assert shown([1, "a"]) == "1, a"
    assert shown(1980) == "1,980"
