"""What is known of variables: checks/data/env_vars.yaml, whose head says what its keys mean."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.kept import kept

_TABLE = "checks/data/env_vars.yaml"


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """Variables whose names begin alike. Lists are words of a text."""

    name: str
    prefixes: str
    unknown: str
    source: str
    version: str = ""
    others: str = ""
    by_name: str = ""


class Variable(Struct, frozen=True, forbid_unknown_fields=True):
    """One variable: what it takes, and which versions read it."""

    name: str
    does: str = ""
    one_of: str = ""
    words: str = ""
    between: tuple[float, float] | None = None
    like: str = ""
    told: str = ""
    default: str = ""
    since: str = ""
    until: str = ""
    deprecated: str = ""
    successor: str = ""
    of: str = ""  # whose versions these are, where not the family's


class Recipe(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that do nothing, contradict each other or harm."""

    check: str
    set: dict[str, str]
    told: str
    unset: str = ""
    links: str = ""
    compare: Literal["", "unlike", "above"] = ""
    instead: str = ""


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    families: tuple[Family, ...]
    variables: tuple[Variable, ...]
    recipes: tuple[Recipe, ...]
    allocator: dict[str, str]


@cache
def table() -> Table:
    """The file, read at its first use; ValidationError where it is out of order."""
    path = datafiles.root() / _TABLE
    place = path.parent / "__pycache__" / "env_vars.msgpack"
    return kept(place, Table, [path, Path(__file__)], lambda: _read(path))


def _read(path: Path) -> Table:
    document = strict_yaml.load(path.read_text(encoding="utf-8"), _TABLE)
    return msgspec.convert(_plain(document), Table)


def _plain(value: object) -> object:
    """The document in Python's own types."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


@cache
def variables() -> dict[str, Variable]:
    """The rows by name."""
    return {row.name: row for row in table().variables}


@cache
def known_names() -> frozenset[str]:
    """All names that are no mistake."""
    named = {name for family in table().families for name in family.by_name.split()}
    return frozenset(named | set(variables()))


@cache
def family_of(name: str) -> Family | None:
    """The family with the longest beginning that fits."""
    fitting = [
        (len(prefix), at)
        for at, family in enumerate(table().families)
        for prefix in family.prefixes.split()
        if name.startswith(prefix)
    ]
    return table().families[max(fitting)[1]] if fitting else None
