"""What a variable of the environment does: its row of checks/data/env_vars.yaml, for explain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from preflight.cli.wrapped import wrapped

if TYPE_CHECKING:
    from preflight.env_table import Recipe

_NAME = re.compile(r"(?:export\s+)?([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=.*)?")

#: A regular expression that is a list of words.
_ONLY_WORDS = re.compile(r"[\w|]+")


def explained(words: str) -> list[str]:
    """The lines that tell of a variable; none where the words are no variable that is known."""
    match = _NAME.fullmatch(words)
    if match is None:
        return []
    from preflight import env_table

    name = match[1]
    recipes = [one for one in env_table.table().recipes if name in one.set]
    if name not in env_table.known_names() and not recipes:
        return []
    family = env_table.family_of(name)
    lines = list(_row(name))
    for recipe in recipes:
        lines += wrapped(_said(recipe), "  - ")
    if len(lines) == 1:
        lines.append("the name is known; what it does is not documented\n")
    return [*lines, *wrapped(f"source     {family.source}" if family else "")]


def _row(name: str) -> Iterator[str]:
    from preflight.env_table import variables

    row = variables().get(name)
    if row is None:
        yield f"{name}\n\n"
        return
    yield f"{name}: {row.does}\n\n" if row.does else f"{name}\n\n"
    takes = row.one_of or row.told or row.like or (row.words and f"a list of {row.words}")
    if row.between:
        takes = f"{row.between[0]:.0f} to {row.between[1]:.0f}"
    told = {
        "takes": takes, "default": row.default, "read since": row.since,
        "read until": row.until, "deprecated": row.deprecated, "now": row.successor,
    }  # fmt: skip
    for label, value in told.items():
        if value:
            yield from wrapped(f"{label:<10} {value}")


def _said(recipe: Recipe) -> str:
    plain = {name: _ONLY_WORDS.fullmatch(pattern) for name, pattern in recipe.set.items()}
    settings = ", ".join(
        f"{name}={pattern[0].replace('|', ' or ')}" if pattern else name
        for name, pattern in plain.items()
    )
    told = f"{settings}: {recipe.told}"
    return f"{told}; {recipe.instead}" if recipe.instead else told
