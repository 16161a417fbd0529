"""YAML without surprises: no repeated keys, no aliases, no `on` that is true, lines for errors.

Built on PyYAML's C scanner; plain scalars are read by one small table in place of YAML 1.1's, in
which `on` is true, `10:20` is 620 and `010` is 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from preflight.errors import UsageError

_SCALARS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"|~|null"), lambda _: None),
    (re.compile(r"true|false"), lambda text: text == "true"),
    (re.compile(r"[-+]?[0-9]{1,300}"), int),
    (re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?"), float),
)


class Lined(dict[str, Any]):
    """A mapping that knows the line where it began."""

    line: int = 0


def load(text: str, name: str) -> Any:
    """The document in `text`; UsageError with file and line for anything out of order."""
    import yaml  # late: most commands read no YAML, see judge/compiled.py

    # Without the C scanner the catalogue would take five times as long to read.
    try:
        loader = yaml.CSafeLoader(text)
    except UnicodeEncodeError:  # of bytes that were no UTF-8
        raise UsageError(f"{name}: is not UTF-8") from None
    try:
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{name}:{line}: {getattr(error, 'problem', None) or error}") from None
    finally:
        loader.dispose()
    return None if node is None else _build(node, name, set())


def scalar(text: str) -> Any:
    """A plain scalar: null, true/false, a decimal number, else the text itself."""
    return next((read(text) for pattern, read in _SCALARS if pattern.fullmatch(text)), text)


def _build(node: Any, name: str, seen: set[int]) -> Any:
    if id(node) in seen:
        raise UsageError(f"{name}:{_line(node)}: anchors and aliases are not taken here")
    seen.add(id(node))
    if node.id == "scalar":
        return node.value if node.style else scalar(node.value)
    if node.id == "sequence":
        return [_build(child, name, seen) for child in node.value]
    return _mapping(node, name, seen)


def _mapping(node: Any, name: str, seen: set[int]) -> Lined:
    built, lines = Lined(), dict[str, int]()
    built.line = _line(node)
    for key_node, value_node in node.value:
        key, line = key_node.value, _line(key_node)
        if not isinstance(key, str):
            raise UsageError(f"{name}:{line}: a key must be a word")
        if key in lines:
            raise UsageError(f"{name}:{line}: key {key!r} stands already in line {lines[key]}")
        lines[key] = line
        built[key] = _build(value_node, name, seen)
    return built


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
