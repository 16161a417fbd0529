"""A declared check held against the vocabulary: its keys, paths and operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from preflight.expect.bounds import BOUNDS
from preflight.judge import paths
from preflight.judge.operators import OFF, OPERATORS
from preflight.judge.rules import RULES
from preflight.model import LEVELS, Action

_ID = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_KEYS = {
    "id": str, "title": str, "fact": str, "level": str, "when": dict, "where": dict, "across": str,
    "optional": bool, "host_only": bool, "fail_unless": dict, "warn_unless": dict, "why": str,
    "fix": list, "action": str, "runbook": str, "rule": str, "like": list, "everywhere": bool,
    "set": dict, "learn": list, "needs_bound": bool,
}  # fmt: skip
_REQUIRED = ("id", "title", "fact", "why", "fix", "action", "runbook")


def faults(entry: dict[str, Any]) -> Iterator[str]:
    """Everything that is wrong with one entry of a file of checks."""
    for key, value in entry.items():
        if key not in _KEYS:
            yield f"unknown key {key!r}; there is {', '.join(_KEYS)}"
        elif not isinstance(value, _KEYS[key]):
            yield f"{key} must be a {_KEYS[key].__name__}, it is {value!r}"
    for key in _REQUIRED:
        if not entry.get(key):
            yield f"{key} is missing"
    if not _ID.fullmatch(str(entry.get("id"))):
        yield "an id is words with dots between, such as gpu.ecc.uncorrected"
    choices: tuple[tuple[str, Iterable[str]], ...] = (
        ("level", LEVELS), ("action", [action.value for action in Action]),
        ("across", ("host", "fleet")), ("rule", RULES),
    )  # fmt: skip
    for key, allowed in choices:
        if key in entry and entry[key] not in allowed:
            yield f"{key} is one of {', '.join(allowed)}, not {entry[key]!r}"
    if isinstance(entry.get("fact"), str):
        yield from _path_faults(entry)
    if isinstance(entry.get("set"), dict):
        from preflight import writable

        yield from (f"set: {fault}" for fault in writable.faults(entry["set"]))


def _path_faults(entry: dict[str, Any]) -> Iterator[str]:
    try:
        path = paths.parse(entry["fact"])
        paths.check(path)
        element = None if path.chosen else paths.element_type(path)
    except ValueError as error:
        yield str(error)
        return
    yield from _fleet_faults(entry, element)
    if "rule" not in entry and not (entry.get("fail_unless") or entry.get("warn_unless")):
        yield "fail_unless or warn_unless is missing"
    for key in ("fail_unless", "warn_unless"):
        if key in entry and isinstance(entry[key], dict):
            yield from (f"{key}: {fault}" for fault in _operator_faults(entry, entry[key], element))
    for key in ("when", "where"):
        for text, wanted in (entry.get(key) or {}).items():
            yield from (f"{key}: {fault}" for fault in condition_faults(key, text, wanted, element))


def _fleet_faults(entry: dict[str, Any], element: type[Any] | None) -> Iterator[str]:
    """What is wrong with the keys of a check over the fleet."""
    if entry.get("across") != "fleet":
        yield from (f"{key} needs across: fleet" for key in ("like", "everywhere") if key in entry)
        return
    if "rule" in entry:
        yield "a rule judges one host at a time: it cannot stand beside across: fleet"
    for text in entry.get("like") or []:
        yield from (f"like: {fault}" for fault in _like_faults(text, element))
    if entry.get("everywhere") and ".name" not in (entry.get("like") or []):
        yield "everywhere needs like: [.name], by which the elements of two hosts are matched"


def _like_faults(text: Any, element: type[Any] | None) -> Iterator[str]:
    if not isinstance(text, str):
        yield f"{text!r} is no path"
    elif text.startswith(".") and element is None:
        yield f"{text!r} begins with a dot, so the fact must have [*]"
    elif "[*]" in text:
        yield f"{text!r} leads to many values; an element's own begins with a dot"
    else:
        try:
            _known_path(text, element)
        except ValueError as error:
            yield str(error)


def condition_faults(key: str, text: str, wanted: Any, element: type[Any] | None) -> Iterator[str]:
    """What is wrong with a line of `when` (path of the host) or `where` (.path of the element)."""
    if key == "where" and (element is None or not text.startswith(".")):
        yield f"{text!r} must begin with a dot and the fact must have [*]"
        return
    try:
        _known_path(text, element)
    except ValueError as error:
        yield str(error)
    if isinstance(wanted, dict):
        yield from _operator_faults({}, wanted, element)


def _known_path(text: str, element: Any) -> None:
    """Hold a path against the vocabulary: one that begins with a dot is the element's."""
    if text.startswith(".") and element is not None:
        paths.check(paths.parse(text[1:]), element)
    else:
        paths.check(paths.parse(text))


def _operator_faults(
    entry: dict[str, Any], wanted: dict[str, Any], element: type[Any] | None
) -> Iterator[str]:
    if len(wanted) != 1:
        yield f"exactly one operator of {', '.join(OPERATORS)}"
        return
    ((name, argument),) = wanted.items()
    if name not in OPERATORS:
        yield f"unknown operator {name!r}; there is {', '.join(OPERATORS)}"
    elif (name in OFF) != bool(entry.get("across")):
        yield f"{name} and `across` go together"
    elif name == "told" and entry.get("across") != "fleet":
        yield "told needs across: fleet"  # within a host each check tells what it cannot read
    elif isinstance(argument, dict) and not OPERATORS[name].many:
        yield from _reference_faults(argument, element)
    elif not OPERATORS[name].accepts(argument):
        yield f"{name} takes {OPERATORS[name].wants}, not {argument!r}"


def _reference_faults(argument: dict[str, Any], element: type[Any] | None) -> Iterator[str]:
    if set(argument) == {"fact"}:
        text = str(argument["fact"])
        try:
            _known_path(text, element)
        except ValueError as error:
            yield str(error)
    elif set(argument) in ({"bound"}, {"bound", "fraction"}):
        if argument["bound"] not in BOUNDS:
            yield f"unknown bound {argument['bound']!r}; there is {', '.join(BOUNDS)}"
        if not isinstance(argument.get("fraction", 1.0), (int, float)):
            yield "fraction must be a number"
    else:
        yield "a value is a literal, {fact: PATH} or {bound: NAME, fraction: N}"
